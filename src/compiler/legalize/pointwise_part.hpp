// SPDX-License-Identifier: Apache-2.0
// Parts of a TOSA graph that compute an elementwise function of one value with few codes: the function is
// found by running the part on every code.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/graph.hpp"

namespace carina::compiler {

/// The nodes between a result and the single value that it is a function of, operands first.
struct PointwisePart {
  std::vector<const ir::Node*> nodes;
  const ir::Value* input = nullptr;
  size_t tables = 0;  // TABLEs among the nodes
};

/// The part that ends with `last`: pointwise operators with scalar constants and tables, back to the single
/// value of type `input`, with at most 64 nodes and at least one table. Nothing if there is anything else.
std::optional<PointwisePart> pointwisePart(const ir::Node* last, DType input);

/// Parts found in a graph, by their last nodes.
template <typename Match>
class FoundParts {
 public:
  /// The match that ends with this node, null if there is none.
  const Match* at(const ir::Node* node) const {
    const auto found = matches_.find(node);
    return found == matches_.end() ? nullptr : &found->second;
  }
  /// Whether nothing but such parts needs the node.
  bool isInside(const ir::Node* node) const { return inside_.contains(node); }
  /// Adds the values that parts begin with.
  void addInputs(std::unordered_set<const ir::Value*>& values) const {
    for (const auto& [node, match] : matches_) values.insert(match.input);
  }

 protected:
  std::unordered_map<const ir::Node*, Match> matches_;
  std::unordered_set<const ir::Node*> inside_;
};

/// Whether only these nodes read the value.
bool readByNoneBut(const std::vector<const ir::Node*>& nodes, const ir::Value* value);

/// Equal for parts that compute the same in the same steps.
std::string textOf(const PointwisePart& part);

/// The part as a graph of its own, with one input of `count` elements.
std::optional<ir::Graph> graphOf(const PointwisePart& part, int64_t count);

/// Results of a part with an int8 input for the 256 codes from -128 on. Nothing if it cannot be run.
std::optional<Tensor> byteTable(const PointwisePart& part);

}  // namespace carina::compiler
