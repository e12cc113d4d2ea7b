// SPDX-License-Identifier: Apache-2.0
// Converts the convolution operators to one form.
#include "aten/conv_op.hpp"

#include "aten/ops.hpp"

namespace carina::aten {
namespace {

/// A single entry applies to all spatial dimensions.
ir::Ints perDim(const ir::Ints& values, size_t rank) {
  return values.size() == 1 ? ir::Ints(rank, values[0]) : values;
}

template <typename Op>
ConvOp plain(Op op) {
  ConvOp conv{op.node(), op.input(), op.weight(), op.bias(), {}, {}, {}, {}, {}, op.groups(), false};
  const size_t rank = conv.spatialRank();
  conv.stride = perDim(op.stride(), rank);
  conv.dilation = perDim(op.dilation(), rank);
  conv.padBefore = conv.padAfter = perDim(op.padding(), rank);
  conv.outputPadding = ir::Ints(rank, 0);
  return conv;
}

/// padding = "same" puts the odd element at the end; "valid" pads nothing.
template <typename Op>
ConvOp textPadded(Op op) {
  ConvOp conv{op.node(), op.input(), op.weight(), op.bias(), {}, {}, {}, {}, {}, op.groups(), false};
  const size_t rank = conv.spatialRank();
  conv.stride = perDim(op.stride(), rank);
  conv.dilation = perDim(op.dilation(), rank);
  conv.padBefore = conv.padAfter = conv.outputPadding = ir::Ints(rank, 0);
  if (op.padding() != "same") return conv;
  for (size_t i = 0; i < rank; ++i) {
    const int64_t total = conv.dilation[i] * (conv.weight->dim(static_cast<int64_t>(i) + 2) - 1);
    conv.padBefore[i] = total / 2;
    conv.padAfter[i] = total - total / 2;
  }
  return conv;
}

template <typename Op>
ConvOp transposedForm(Op op) {
  ConvOp conv = plain(op);
  conv.transposed = true;
  conv.outputPadding = perDim(op.outputPadding(), conv.spatialRank());
  return conv;
}

}  // namespace

std::optional<ConvOp> asConvolution(const ir::Node* node) {
  if (auto op = ir::dynCast<Conv1d>(node)) return plain(op);
  if (auto op = ir::dynCast<Conv2d>(node)) return plain(op);
  if (auto op = ir::dynCast<Conv3d>(node)) return plain(op);
  if (auto op = ir::dynCast<Conv1dPadding>(node)) return textPadded(op);
  if (auto op = ir::dynCast<Conv2dPadding>(node)) return textPadded(op);
  if (auto op = ir::dynCast<Conv3dPadding>(node)) return textPadded(op);
  if (auto op = ir::dynCast<ConvTranspose1d>(node)) return transposedForm(op);
  if (auto op = ir::dynCast<ConvTranspose2dInput>(node)) return transposedForm(op);
  if (auto op = ir::dynCast<ConvTranspose3dInput>(node)) return transposedForm(op);
  if (auto op = ir::dynCast<Convolution>(node)) {
    ConvOp conv = plain(op);
    conv.transposed = op.transposed();
    conv.outputPadding = perDim(op.outputPadding(), conv.spatialRank());
    return conv;
  }
  return std::nullopt;
}

}  // namespace carina::aten
