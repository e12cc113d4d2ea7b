// SPDX-License-Identifier: Apache-2.0
// Reads graphs from their text form (docs/ir.md): the inverse of print() with PrintOptions::exact.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.hpp"

namespace carina::ir {

/// The operators that a text may name.
struct OperatorSet {
  /// The descriptor of a full name ("tosa.CONV2D"); null if there is none.
  std::function<const OpDef*(std::string_view)> find;
  /// All full names, to suggest one for a misspelt name.
  std::function<std::vector<std::string>()> names;
};

/// Reads the only graph of a text and verifies it: operands are defined before their use, result types
/// equal the inferred ones (and may be left out if the operator infers them), operator verifiers succeed.
/// Errors give line and column, what was found and what was expected. Contents that the short printed form
/// leaves out (large constants, scales per channel) are rejected. The memory of a graph is proportional to
/// the text, apart from 16 MiB for "splat" constants.
Result<Graph> parse(std::string_view text, const OperatorSet& operators);

/// Limit for all "splat" constants of one text; print() writes others in full.
constexpr int64_t kMaxSplatBytes = int64_t{16} << 20;

}  // namespace carina::ir
