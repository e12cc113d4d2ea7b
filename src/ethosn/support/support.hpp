// SPDX-License-Identifier: Apache-2.0
// Which operations an Ethos-N78 can run. The answers and texts are those of the queries of Arm's Support
// Library 25.03; tests/ethosn compares them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ethosn/support/operation.hpp"
#include "ethosn/targets/variant.hpp"

namespace carina::ethosn {

/// EstimateOnly: networks with this operation can be estimated, but not compiled.
enum class SupportLevel : uint8_t { Unsupported, EstimateOnly, Supported };
std::string_view supportLevelName(SupportLevel level);  // "estimate-only"

struct SupportQuery {
  Operation operation;
  std::vector<TensorInfo> inputs;  // Input, Constant: the tensor itself
  /// What the caller expects; must equal the operation's outputs. A tensor without elements expects nothing.
  std::optional<std::vector<TensorInfo>> outputs;
};

struct SupportAnswer {
  SupportLevel level = SupportLevel::Supported;
  /// Why not. Also set as a warning for some supported operations (resize to sizes of different parity).
  std::string reason;
  explicit operator bool() const { return level == SupportLevel::Supported; }
};

/// The first rule that the operation violates decides. Sizes are 32-bit; sums and products of sizes that do
/// not fit 32 bits wrap as in Arm's queries, so the caller must bound shapes from files.
SupportAnswer querySupport(const Target& target, const SupportQuery& query);

}  // namespace carina::ethosn
