// SPDX-License-Identifier: Apache-2.0
// einsum equations: which label every dimension of every operand and of the result has.
#pragma once

#include "ir/graph.hpp"

namespace carina::aten {

struct EinsumPlan {
  std::vector<int64_t> sizes;  // per label; the result's labels come first
  size_t outputLabels = 0;
  std::vector<std::vector<int>> operands;  // label of each dimension
  Shape output() const { return {sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(outputLabels)}; }
};

/// Letters, "..." and "->"; without an arrow the result has the letters that occur once, in alphabetical
/// order, after the dimensions of the ellipsis. Fails on sizes that do not fit.
Result<EinsumPlan> parseEinsum(std::string_view equation, const std::vector<Shape>& shapes);

}  // namespace carina::aten
