// SPDX-License-Identifier: Apache-2.0
// Parts of a TOSA graph that compute a function of one value of few codes, element by element: what they
// compute is found by running them on every code.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/graph.hpp"

namespace carina::compiler {

/// The nodes between a result and the one value that it is a function of, operands first.
struct PointwisePart {
  std::vector<const ir::Node*> nodes;
  const ir::Value* input = nullptr;
  size_t tables = 0;  // TABLEs among the nodes
};

/// The part that ends with `last`: pointwise operators with numbers and tables, back to the one value of type
/// `input`, of 64 nodes at most and at least one table. Nothing where there is anything else.
std::optional<PointwisePart> pointwisePart(const ir::Node* last, DType input);

/// Equal for parts that compute the same by the same steps.
std::string textOf(const PointwisePart& part);

/// The part by itself, as a graph of one input of `count` elements.
std::optional<ir::Graph> graphOf(const PointwisePart& part, int64_t count);

}  // namespace carina::compiler
