// SPDX-License-Identifier: Apache-2.0
// One view of all convolution operators (conv1d..3d, their padding="same" forms, conv_transpose1d..3d,
// convolution), so that passes need not distinguish them.
#pragma once

#include <optional>

#include "ir/graph.hpp"

namespace carina::aten {

/// Geometry lists have one entry per spatial dimension, outermost first.
struct ConvOp {
  ir::Node* node = nullptr;
  ir::Value* input = nullptr;
  ir::Value* weight = nullptr;  // [Cout, Cin/groups, k...]; transposed: [Cin, Cout/groups, k...]
  ir::Value* bias = nullptr;    // null when absent
  ir::Ints stride, dilation;
  ir::Ints padBefore, padAfter;  // transposed: what is cropped from the full result
  ir::Ints outputPadding;        // transposed only, otherwise zeros
  int64_t groups = 1;
  bool transposed = false;

  size_t spatialRank() const { return static_cast<size_t>(weight->rank()) - 2; }
  int64_t outputChannels() const { return transposed ? weight->dim(1) * groups : weight->dim(0); }
  int64_t inputChannels() const { return transposed ? weight->dim(0) : weight->dim(1) * groups; }
  /// The weight dimension that holds the output channels, along which quantization scales run.
  int weightChannelAxis() const { return transposed ? 1 : 0; }

  static constexpr size_t kInputOperand = 0, kWeightOperand = 1, kBiasOperand = 2;
};

/// The view, or nothing if the node is not a convolution.
std::optional<ConvOp> asConvolution(const ir::Node* node);

}  // namespace carina::aten
