// SPDX-License-Identifier: Apache-2.0
// Parts of a TOSA graph that compute a function of one value of few codes, element by element: what they
// compute is found by running them on every code.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
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

/// Parts that were found in a graph, by their last nodes.
template <typename Match>
class FoundParts {
 public:
  /// What this node's result is; null for nodes that end no part.
  const Match* at(const ir::Node* node) const {
    const auto found = matches_.find(node);
    return found == matches_.end() ? nullptr : &found->second;
  }
  /// Whether nothing but such parts needs the node.
  bool isInside(const ir::Node* node) const { return inside_.contains(node); }

 protected:
  std::unordered_map<const ir::Node*, Match> matches_;
  std::unordered_set<const ir::Node*> inside_;
};

/// Whether these nodes alone read the value.
bool readByNoneBut(const std::vector<const ir::Node*>& nodes, const ir::Value* value);

/// Equal for parts that compute the same by the same steps.
std::string textOf(const PointwisePart& part);

/// The part by itself, as a graph of one input of `count` elements.
std::optional<ir::Graph> graphOf(const PointwisePart& part, int64_t count);

/// What a part of an int8 value gives for the 256 codes from -128 on. Nothing where it cannot be run.
std::optional<Tensor> byteTable(const PointwisePart& part);

}  // namespace carina::compiler
