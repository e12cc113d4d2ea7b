// SPDX-License-Identifier: Apache-2.0
// Tables from 8-bit codes to 32-bit numbers, which the hardware has: in TOSA they are a table for each byte,
// shifted and added up, as in TFLite's softmax.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "compiler/legalize/wide_functions.hpp"
#include "ir/graph.hpp"

namespace carina::compiler {

/// The parts of a TOSA graph that compute a 32-bit number from one int8 value by two tables or more, but for
/// those inside of wide functions.
class WideTables {
 public:
  WideTables(const ir::Graph& tosa, const WideFunctions& functions);

  struct Match {
    const ir::Value* input = nullptr;
    bool alone = false;  // nothing else reads the input
    Tensor table;        // of the 256 codes from -128 on
  };
  /// The table whose result this node computes; null for other nodes.
  const Match* at(const ir::Node* node) const {
    const auto found = matches_.find(node);
    return found == matches_.end() ? nullptr : &found->second;
  }
  /// Whether nothing but such a table needs the node.
  bool isInside(const ir::Node* node) const { return inside_.contains(node); }

 private:
  std::unordered_map<const ir::Node*, Match> matches_;
  std::unordered_set<const ir::Node*> inside_;
};

}  // namespace carina::compiler
