// SPDX-License-Identifier: Apache-2.0
// Max and average pooling over one or two spatial dimensions. Results keep the scale of the codes; averages
// of int8 codes only do so if no other codes are required.
#include <algorithm>

#include "aten/geometry.hpp"
#include "aten/ops.hpp"
#include "lower/reduction.hpp"
#include "lower/rules.hpp"

namespace carina::lower {
namespace {

/// Parameters common to all pooling operators, for two spatial dimensions.
struct Pool {
  ir::Ints kernel, stride, padding, dilation{1, 1};
  bool ceilMode = false;
  bool countPadding = true;
  std::optional<int64_t> divisor;
};

/// A single entry applies to all dimensions; a single spatial dimension is preceded by a height.
ir::Ints twoDims(const ir::Ints& values, size_t rank, int64_t front) {
  ir::Ints result = values.size() == 1 ? ir::Ints(rank, values[0]) : values;
  if (rank == 1) result.insert(result.begin(), front);
  return result;
}

template <typename Op>
Pool poolOf(Op op, size_t rank) {
  Pool pool;
  pool.kernel = twoDims(op.kernelSize(), rank, 1);
  pool.stride = op.stride().empty() ? pool.kernel : twoDims(op.stride(), rank, 1);
  pool.padding = twoDims(op.padding(), rank, 0);
  pool.ceilMode = op.ceilMode();
  return pool;
}

/// The input as [N, C, H, W].
StoredTensor fourDims(Lowering& lowering, const StoredTensor& data, size_t spatialRank) {
  Shape shape = data.shape();
  if (shape.size() == spatialRank + 1) shape.insert(shape.begin(), 1);
  if (spatialRank == 1) shape.insert(shape.begin() + 2, 1);
  return lowering.viewed(data, shape);
}

/// A channel-last pooling result, defined in the node's shape.
Status definePooled(Lowering& lowering, const ir::Node& node, const QuantizedValue& input, ir::Value* pooled,
                    double factor = 1) {
  const Shape& s = pooled->shape();
  StoredTensor data{pooled, Layout::ordered({s[0], s[3], s[1], s[2]}, {0, 2, 3, 1})};
  data.layout = *data.layout.viewed(node.result()->shape());
  QuantizedValue real = input;
  real.data = std::move(data);
  real.scales[0] *= factor;
  lowering.define(node.result(), std::move(real));
  return {};
}

/// The window for output size `outputs`: elements that no window reaches are cropped from the end of `data`,
/// and windows that extend beyond it get padding.
Emitter::Window fitted(Lowering& lowering, const Pool& pool, const Shape& outputs, ir::Value*& data) {
  Emitter::Window window{pool.stride, {}, {}};
  for (size_t i = 0; i < 2; ++i) {
    const int64_t axis = static_cast<int64_t>(i) + 1;
    const int64_t end =
        (outputs[i] - 1) * pool.stride[i] + pool.kernel[i] - pool.padding[i] - data->dim(axis);
    window.pad.push_back(pool.padding[i]);
    window.pad.push_back(std::max<int64_t>(end, 0));
    if (end < 0) data = lowering.emit().sliceAxis(data, axis, 0, data->dim(axis) + end);
  }
  return window;
}

/// H and W of the result.
Shape outputsOf(const ir::Node& node, size_t spatialRank) {
  const Shape& shape = node.result()->shape();
  return {spatialRank == 2 ? shape[shape.size() - 2] : 1, shape.back()};
}

/// Dilated windows read every d-th row and column: the d * d images of such rows and columns are pooled as a
/// batch with stride 1, and the results are interleaved again.
ir::Value* dilatedMaxPool(Emitter& emit, const Pool& pool, const Shape& outputs, ir::Value* data) {
  const Shape shape = data->shape();
  Shape parts, padding(8, 0);
  for (size_t i = 0; i < 2; ++i) {
    const int64_t axis = static_cast<int64_t>(i) + 1, d = pool.dilation[i];
    const int64_t reached = (outputs[i] - 1) * pool.stride[i] + (pool.kernel[i] - 1) * d + 1;
    const int64_t used = std::min(data->dim(axis), reached - pool.padding[i]);
    data = emit.sliceAxis(data, axis, 0, used);
    parts.push_back(ceilDiv(reached, d));
    padding[2 * i + 2] = pool.padding[i];
    padding[2 * i + 3] = parts[i] * d - pool.padding[i] - used;
  }
  data = emit.pad(data, padding, integerMin(data->dtype()));
  const int64_t n = shape[0], c = shape[3], dy = pool.dilation[0], dx = pool.dilation[1];
  data = emit.transpose(emit.reshape(data, {n, parts[0], dy, parts[1], dx, c}), {0, 2, 4, 1, 3, 5});
  data = emit.reshape(data, {n * dy * dx, parts[0], parts[1], c});
  data = emit.maxPool2d(data, pool.kernel, {{1, 1}, {}, {0, 0, 0, 0}});
  const int64_t h = data->dim(1), w = data->dim(2);
  data = emit.transpose(emit.reshape(data, {n, dy, dx, h, w, c}), {0, 3, 1, 4, 2, 5});
  data = emit.reshape(data, {n, h * dy, w * dx, c});
  for (size_t i = 0; i < 2; ++i)
    data = emit.sliceEvery(data, static_cast<int64_t>(i) + 1, 0, outputs[i], pool.stride[i]);
  return data;
}

template <typename Op>
Status lowerMaxPool(Lowering& lowering, const ir::Node& node) {
  const Op op = ir::cast<Op>(&node);
  constexpr size_t kRank = std::is_same_v<Op, aten::MaxPool1d> ? 1 : 2;
  if (node.results().size() > 1 && !node.result(1)->unused()) {
    return fail(Code::NoIntegerForm, "the indices of {} are used", node.opName())
        .withRemedy("use the values only");
  }
  CARINA_TRY(const QuantizedValue input, lowering.quantizedValue(op.self()));
  if (input.accumulator || !input.functions.empty())
    return fail(Code::NotQuantized, "the input of {} is not quantized", node.opName())
        .withRemedy("quantize the network with this operator included");
  Pool pool = poolOf(op, kRank);
  pool.dilation = twoDims(op.dilation(), kRank, 1);
  ir::Value* data = lowering.ordered(fourDims(lowering, input.data, kRank), {0, 2, 3, 1});
  const Shape outputs = outputsOf(node, kRank);
  if (pool.dilation != ir::Ints{1, 1})
    return definePooled(lowering, node, input, dilatedMaxPool(lowering.emit(), pool, outputs, data));
  const Emitter::Window window = fitted(lowering, pool, outputs, data);
  return definePooled(lowering, node, input, lowering.emit().maxPool2d(data, pool.kernel, window));
}

/// Whether the result has other codes than the input.
bool changesCodes(const Lowering& lowering, const ir::Node& node, const QuantizedValue& input) {
  const auto asked = lowering.codesAfter(node.result());
  return asked && (asked->scale != input.scale() || asked->zeroPoint != input.zeroPoint);
}

/// Sums of the windows by a depthwise convolution with ones, which pads the edges with zeros.
Status sumPool(Lowering& lowering, const ir::Node& node, const QuantizedValue& input, const Pool& pool,
               ir::Value* data, Emitter::Window window) {
  Emitter& emit = lowering.emit();
  const int64_t channels = data->dim(3), count = pool.kernel[0] * pool.kernel[1];
  Tensor ones = Tensor::uninitialized(DType::Int8, {pool.kernel[0], pool.kernel[1], channels, 1});
  const auto weights = ones.mutableAs<int8_t>();
  std::fill(weights.begin(), weights.end(), int8_t{1});
  window.dilation = {1, 1};
  ir::Value* sums = emit.depthwiseConv2d(data, emit.constant(std::move(ones)),
                                         emit.constant(Tensor::zeros(DType::Int32, {channels})),
                                         input.zeroPoint, 0, window);
  const double divisor = static_cast<double>(pool.divisor.value_or(count));
  const Shape& s = sums->shape();
  StoredTensor result{sums, Layout::ordered({s[0], s[3], s[1], s[2]}, {0, 2, 3, 1})};
  result.layout = *result.layout.viewed(node.result()->shape());
  defineAccumulator(lowering, node.result(), std::move(result), input.scale() / divisor);
  return {};
}

/// Padding that counts towards the divisor is added explicitly as zeros; AVG_POOL2D excludes its own padding
/// from the divisor, as ceil_mode requires beyond the padded image. It rounds to the input's codes: if the
/// result has other ones, sums preserve the precision of the average.
Status averagePool(Lowering& lowering, const ir::Node& node, Pool pool, size_t spatialRank) {
  CARINA_TRY(const QuantizedValue input, lowering.plainValue(node.operands()[0]));
  ir::Value* data = lowering.ordered(fourDims(lowering, input.data, spatialRank), {0, 2, 3, 1});
  const Shape outputs = outputsOf(node, spatialRank);
  CARINA_TRY(const aten::PoolGeometry geometry, aten::poolGeometry(node));
  const bool small = pool.kernel[0] <= kMaxSumHeight && pool.kernel[0] * pool.kernel[1] <= kMaxSumArea;
  if (data->dtype() == DType::Int8 && small && changesCodes(lowering, node, input) &&
      geometry.hasOneDivisor(node.operands()[0]->shape())) {
    const Emitter::Window window = fitted(lowering, pool, outputs, data);
    return sumPool(lowering, node, input, pool, data, window);
  }
  if ((pool.countPadding || pool.divisor) && (pool.padding[0] > 0 || pool.padding[1] > 0)) {
    data = lowering.emit().pad(
        data, {0, 0, pool.padding[0], pool.padding[0], pool.padding[1], pool.padding[1], 0, 0},
        input.zeroPoint);
    pool.padding = {0, 0};
  }
  Emitter::Window window = fitted(lowering, pool, outputs, data);
  double factor = 1;
  if (pool.divisor) {
    // All windows have the same divisor: elements beyond the edge are zeros.
    const Shape edges{0, 0, window.pad[0], window.pad[1], window.pad[2], window.pad[3], 0, 0};
    if (window.pad[1] > 0 || window.pad[3] > 0) data = lowering.emit().pad(data, edges, input.zeroPoint);
    window.pad = {0, 0, 0, 0};
    factor = static_cast<double>(pool.kernel[0] * pool.kernel[1]) / static_cast<double>(*pool.divisor);
  }
  return definePooled(lowering, node, input,
                      lowering.emit().averagePool2d(data, pool.kernel, window, input.zeroPoint), factor);
}

template <typename Op>
Status lowerAveragePool(Lowering& lowering, const ir::Node& node) {
  const Op op = ir::cast<Op>(&node);
  constexpr size_t kRank = std::is_same_v<Op, aten::AvgPool1d> ? 1 : 2;
  Pool pool = poolOf(op, kRank);
  pool.countPadding = op.countIncludePad();
  if constexpr (kRank == 2) pool.divisor = op.divisorOverride();
  return averagePool(lowering, node, pool, kRank);
}

}  // namespace

void addPoolRules(Rules& rules) {
  rules[&aten::MaxPool1d::def()] = lowerMaxPool<aten::MaxPool1d>;
  rules[&aten::MaxPool2d::def()] = lowerMaxPool<aten::MaxPool2d>;
  rules[&aten::MaxPool2dWithIndices::def()] = lowerMaxPool<aten::MaxPool2dWithIndices>;
  rules[&aten::AvgPool1d::def()] = lowerAveragePool<aten::AvgPool1d>;
  rules[&aten::AvgPool2d::def()] = lowerAveragePool<aten::AvgPool2d>;
}

}  // namespace carina::lower
