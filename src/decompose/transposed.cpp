// SPDX-License-Identifier: Apache-2.0
// Transposed convolution in three dimensions, for which TOSA has no operator: zeros are inserted between the
// elements, then a convolution is applied.
#include <algorithm>

#include "aten/conv_op.hpp"
#include "aten/ops.hpp"
#include "decompose/rewrites.hpp"

namespace carina::decompose {
namespace {

/// Inserts stride - 1 zeros after every element along `dim`.
ir::Value* spread(ir::Builder& b, ir::Value* x, int64_t dim, int64_t stride) {
  if (stride == 1) return x;
  ir::Ints split(x->shape().begin(), x->shape().end());
  split.insert(split.begin() + dim + 1, 1);
  ir::Value* apart = aten::View::create(b, x, split);
  ir::Ints pads(2 * static_cast<size_t>(x->rank() - dim), 0);  // from the last dimension on
  pads.back() = stride - 1;
  apart = aten::ConstantPadNd::create(b, apart, pads, 0.0);
  ir::Ints joined(x->shape().begin(), x->shape().end());
  joined[static_cast<size_t>(dim)] *= stride;
  return aten::View::create(b, apart, joined);
}

/// Pads the last dimensions with zeros, or crops them where the count is negative. First dimension first.
ir::Value* framed(ir::Builder& b, ir::Value* x, const ir::Ints& before, const ir::Ints& after) {
  ir::Ints pads;
  const int64_t first = x->rank() - static_cast<int64_t>(before.size());
  for (size_t d = before.size(); d-- > 0;) {
    const int64_t dim = first + static_cast<int64_t>(d);
    const int64_t start = std::max<int64_t>(-before[d], 0),
                  end = x->dim(dim) - std::max<int64_t>(-after[d], 0);
    if (start > 0 || end < x->dim(dim)) x = aten::SliceTensor::create(b, x, dim, start, end);
    pads.push_back(std::max<int64_t>(before[d], 0));
    pads.push_back(std::max<int64_t>(after[d], 0));
  }
  return aten::ConstantPadNd::create(b, x, pads, 0.0);
}

/// [Cin, Cout / groups, k...] as the weight of a convolution: [Cout, Cin / groups, k... reversed].
ir::Value* turned(ir::Builder& b, const aten::ConvOp& conv) {
  const Shape& shape = conv.weight->shape();
  const int64_t inputs = shape[0] / conv.groups, outputs = shape[1];
  ir::Ints grouped{conv.groups, inputs, outputs}, result{conv.groups * outputs, inputs}, spatial;
  for (size_t d = 2; d < shape.size(); ++d) {
    grouped.push_back(shape[d]);
    result.push_back(shape[d]);
    spatial.push_back(static_cast<int64_t>(d));
  }
  ir::Value* weight = aten::View::create(b, conv.weight, grouped);
  weight = aten::TransposeInt::create(b, weight, int64_t{1}, int64_t{2});
  weight = aten::Reshape::create(b, weight, result);
  return aten::Flip::create(b, weight, spatial);
}

ir::Value* rewriteTransposed3d(ir::Builder& b, ir::Node* node) {
  const auto conv = aten::asConvolution(node);
  if (!conv || !conv->transposed || conv->spatialRank() != 3 || !conv->weight->isConstant() ||
      conv->input->rank() != 5 || isQuantizedAsUnit(*node))
    return nullptr;
  ir::Value* x = conv->input;
  ir::Ints before, after;
  for (size_t d = 0; d < 3; ++d) {
    x = spread(b, x, static_cast<int64_t>(d) + 2, conv->stride[d]);
    const int64_t reach = conv->dilation[d] * (conv->weight->dim(static_cast<int64_t>(d) + 2) - 1);
    before.push_back(reach - conv->padBefore[d]);
    after.push_back(reach - conv->padAfter[d] + conv->outputPadding[d] - (conv->stride[d] - 1));
  }
  x = framed(b, x, before, after);
  return aten::Conv3d::create(b, x, turned(b, *conv), conv->bias, ir::Ints{1, 1, 1}, ir::Ints{0, 0, 0},
                              conv->dilation, conv->groups);
}

}  // namespace

void addTransposedRewrites(std::vector<ir::Rewrite>& rewrites) {
  addRewrites(rewrites, rewriteTransposed3d);
}

}  // namespace carina::decompose
