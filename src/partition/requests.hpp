// SPDX-License-Identifier: Apache-2.0
// What the user keeps off the NPU.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "ir/graph.hpp"

namespace carina::partition {

struct Requests {
  /// Operators ("aten.relu.default" or "relu"), node names with * and ?, module paths with * and ? (including
  /// everything below them).
  std::vector<std::string> ops, names, modules;
  /// By node name, the operator that a node was in the network as exported: `ops` applies to it as well as to
  /// the node's own.
  std::unordered_map<std::string, std::string> sourceOps;
  bool namesAreGlobs =
      false;  // of other dialects than aten: operators by name with * and ?, without the dialect

  bool empty() const { return ops.empty() && names.empty() && modules.empty(); }
  /// The requests that name the node.
  std::vector<const std::string*> matching(const ir::Node& node) const;
};

}  // namespace carina::partition
