// SPDX-License-Identifier: Apache-2.0
// Batch norms with fixed statistics, and folding of some of them.
#pragma once

#include <functional>
#include <optional>

#include "ir/graph.hpp"

namespace carina::quantize {

/// The operands that all forms of batch norm have. gamma and beta may be null.
struct BatchNormOp {
  ir::Node* node = nullptr;
  ir::Value* input = nullptr;
  ir::Value* gamma = nullptr;
  ir::Value* beta = nullptr;
  ir::Value* mean = nullptr;
  ir::Value* variance = nullptr;
  double eps = 0;
};

/// Empty if the node is another operator or has no fixed statistics.
std::optional<BatchNormOp> asBatchNorm(ir::Node* node);

/// foldBatchNorms() (quantize.hpp) for the batch norms that are wanted; constant products and sums stay.
Status foldBatchNormsOf(ir::Graph& graph, const std::function<bool(const ir::Node&)>& wanted);

}  // namespace carina::quantize
