// SPDX-License-Identifier: Apache-2.0
// Values of a graph that depend on constants only.
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/graph.hpp"

namespace carina::quantize {

/// A snapshot of the graph at construction; values created later are unknown.
class ConstantCones {
 public:
  explicit ConstantCones(const ir::Graph& graph);

  /// Whether the value is a constant, or computed from constants by operators that the executor supports,
  /// with results of up to 2^24 elements.
  bool isKnown(const ir::Value* value) const { return value->isConstant() || known_.count(value) != 0; }
  /// The nodes that compute a known value, in program order.
  std::vector<const ir::Node*> nodesOf(const ir::Value* value) const;

  /// A tensor to use in place of a node's result; empty to compute the result.
  using Replacement = std::function<std::optional<Tensor>(const ir::Node& node)>;
  /// The contents of a known value. Nodes with one result may be replaced.
  Result<Tensor> contentsOf(const ir::Value* value, const Replacement& replacement = nullptr) const;

 private:
  std::unordered_set<const ir::Value*> known_;
  std::unordered_map<const ir::Node*, size_t> order_;
};

}  // namespace carina::quantize
