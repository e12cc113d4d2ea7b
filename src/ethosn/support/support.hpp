// SPDX-License-Identifier: Apache-2.0
// Which operations an Ethos-N78 can run, in the words of its compiler. The answers and texts are those of
// Arm's Support Library 25.03 (its queries): tests/ethosn compares them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ethosn/support/operation.hpp"
#include "ethosn/targets/variant.hpp"

namespace carina::ethosn {

/// EstimateOnly: the operation may stand in a network whose performance is estimated, but cannot be compiled.
enum class SupportLevel : uint8_t { Unsupported, EstimateOnly, Supported };
std::string_view supportLevelName(SupportLevel level);  // "estimate-only"

struct SupportQuery {
  Operation operation;
  std::vector<TensorInfo> inputs;  // Input, Constant: the tensor itself
  /// What the caller expects; must be what the operation makes. A tensor without elements is no expectation.
  std::optional<std::vector<TensorInfo>> outputs;
};

struct SupportAnswer {
  SupportLevel level = SupportLevel::Supported;
  /// Why not. Also of a supported operation where there is something to be said (resize to unlike parities).
  std::string reason;
  explicit operator bool() const { return level == SupportLevel::Supported; }
};

/// The first rule that the operation breaks decides. Sizes are 32-bit; sums and products of sizes that do not
/// fit 32 bits wrap as in Arm's queries, so shapes from files are bounded by the caller.
SupportAnswer querySupport(const Target& target, const SupportQuery& query);

}  // namespace carina::ethosn
