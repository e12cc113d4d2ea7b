// SPDX-License-Identifier: Apache-2.0
// einsum equations: the label of every dimension of the operands and of the result.
#pragma once

#include "ir/graph.hpp"

namespace carina::aten {

struct EinsumPlan {
  std::vector<int64_t> sizes;  // per label; the result's labels come first
  size_t outputLabels = 0;
  std::vector<std::vector<int>> operands;  // label of each dimension
  Shape output() const { return {sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(outputLabels)}; }
};

/// Parses letters, "..." and "->". Without an arrow the result consists of the letters that occur once, in
/// alphabetical order, after the dimensions of the ellipsis. Fails on inconsistent sizes.
Result<EinsumPlan> parseEinsum(std::string_view equation, const std::vector<Shape>& shapes);

}  // namespace carina::aten
