// SPDX-License-Identifier: Apache-2.0
// Graphs that tests build node by node.
#pragma once

#include <string>
#include <utility>

#include "ir/op_view.hpp"

namespace carina::test {

struct GraphMaker {
  ir::Graph graph;
  ir::Builder b{graph};

  ir::Value* input(const Shape& shape, DType type = DType::Float32) {
    return graph.addInput({type, shape}, "x" + std::to_string(graph.inputs().size()));
  }
  /// The first result of an operator.
  template <typename Op, typename... Operands>
  ir::Value* make(Operands&&... operands) {
    return Op::create(b, std::forward<Operands>(operands)...).node()->result(0);
  }
};

}  // namespace carina::test
