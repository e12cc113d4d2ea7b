// SPDX-License-Identifier: Apache-2.0
// Families of decompositions. Each rewrite replaces its node by smaller operators, or leaves it and returns
// false.
#pragma once

#include "ir/op_view.hpp"
#include "ir/pass.hpp"

namespace carina::lower {

void addMatrixRewrites(std::vector<ir::Rewrite>& rewrites);  // products with constants become linear
void addNormRewrites(std::vector<ir::Rewrite>& rewrites);  // softmax, layer/group/instance/RMS norm, variance
void addAttentionRewrites(std::vector<ir::Rewrite>& rewrites);  // scaled_dot_product_attention
void addPointwiseRewrites(std::vector<ir::Rewrite>& rewrites);  // division, glu, masked_fill, prelu, ...
void addRecurrentRewrites(std::vector<ir::Rewrite>& rewrites);  // lstm, gru, rnn and their cells

/// Puts `value` in the place of the node's first result and erases the node.
void replaceNode(ir::Node* node, ir::Value* value);
/// A float32 constant of one element and rank `rank`.
ir::Value* number(ir::Builder& builder, double value, int64_t rank);
/// Whether the node's input comes straight out of a dequantize node: the network was quantized with this
/// operator whole, and what it would become has no quantization of its own.
bool isQuantizedWhole(const ir::Node& node);

/// exp(x - max) / sum over one dimension, in the max-subtracting form.
ir::Value* softmaxOf(ir::Builder& builder, ir::Value* input, int64_t dim);

}  // namespace carina::lower
