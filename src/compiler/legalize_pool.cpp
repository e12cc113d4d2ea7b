// SPDX-License-Identifier: Apache-2.0
// AVG_POOL2D and MAX_POOL2D. Averages over whole windows are sums scaled by TOSA's own reciprocal; where
// padding makes the divisor vary, small windows are divided by the hardware and large ones are computed
// region by region.
#include <algorithm>
#include <bit>

#include "compiler/legalizer.hpp"

namespace carina::compiler {

using npu_ir::OutputStage;
using npu_ir::PoolMode;
using npu_ir::Window;

namespace {

constexpr int64_t kMaxPoolHeight = 256, kMaxPoolArea = 65536, kMaxHardwareAverage = 8, kMaxPoolStride = 3;

/// TOSA's reciprocal_scale (tosa 6).
std::pair<int64_t, int64_t> reciprocal(int64_t count) {
  const int k = std::bit_width(static_cast<uint64_t>(count - 1));
  return {((int64_t{1} << 30) + 1) * (int64_t{1} << k) / count, 30 + k};
}

/// Output positions first .. first + count - 1 whose windows see `size` inputs from `start` on (of the first
/// one).
struct Span {
  int64_t first, count, start, size;
};

/// Consecutive positions with complete windows together, each clipped position by itself.
std::vector<Span> spans(int64_t outputs, int64_t inputs, int64_t kernel, int64_t stride, int64_t pad) {
  std::vector<Span> result;
  for (int64_t o = 0; o < outputs; ++o) {
    const int64_t begin = std::max<int64_t>(0, o * stride - pad),
                  end = std::min(inputs, o * stride - pad + kernel);
    const bool whole = end - begin == kernel;
    if (whole && !result.empty() && result.back().size == kernel) {
      ++result.back().count;
    } else {
      result.push_back({o, 1, begin, end - begin});
    }
  }
  return result;
}

}  // namespace

Status Legalizer::lowerAvgPool(const tosa::AvgPool2d& node) {
  CARINA_TRY(ir::Value * input, get(node.input()));
  const ir::Ints &kernel = node.kernel(), &stride = node.stride(), &pad = node.pad();
  const Shape& out = node.output()->shape();
  const int64_t height = input->dim(1), width = input->dim(2), depth = input->dim(3);
  if (kernel[0] > kMaxPoolHeight)
    return fail("kernel height {} > {}", kernel[0], kMaxPoolHeight).withRemedy("pool in two steps");
  if (kernel[0] * kernel[1] > kMaxPoolArea) {
    return fail("kernel area {} > {}", kernel[0] * kernel[1], kMaxPoolArea).withRemedy("pool in two steps");
  }
  const DType type = input->dtype();
  const int64_t inputZero = constantValue(node.inputZp()), outputZero = constantValue(node.outputZp());
  // Padding that no window reaches does not count.
  const bool padded = pad[0] > 0 || pad[2] > 0 || (out[1] - 1) * stride[0] + kernel[0] - pad[0] > height ||
                      (out[2] - 1) * stride[1] + kernel[1] - pad[2] > width;
  const auto sumWindow = [&](ir::Value* map, int64_t kh, int64_t kw, int64_t sy, int64_t sx) -> ir::Value* {
    OutputStage stage;
    const auto [multiplier, shift] = reciprocal(kh * kw);
    stage.multipliers = {multiplier};
    stage.shifts = {shift};
    stage.zeroPoint = outputZero;
    const int64_t oh = (map->dim(0) - kh) / sy + 1, ow = (map->dim(1) - kw) / sx + 1;
    Window w;
    w.ifmZeroPoint = inputZero;
    const int64_t strideY = oh == 1 ? 1 : sy, strideX = ow == 1 ? 1 : sx;
    if (strideY <= kMaxPoolStride && strideX <= kMaxPoolStride) {
      w.kernel = {kh, kw};
      w.stride = {strideY, strideX};
      return npu_ir::createPool(builder_, map, PoolMode::SUM, w, stage, type);
    }
    // Every window laid out by itself.
    const Shape s = rowMajorStrides(map->shape());
    ir::Value* windows = rearranged(map, {oh * ow, kh * kw, depth}, {oh, ow, kh, kw, depth}, 0,
                                    {sy * s[0], sx * s[1], s[0], s[1], 1}, 0,
                                    {ow * kh * kw * depth, kh * kw * depth, kw * depth, depth, 1});
    w.kernel = {1, kh * kw};
    ir::Value* result = npu_ir::createPool(builder_, windows, PoolMode::SUM, w, stage, type);
    return npu_ir::createReshape(builder_, result, {oh, ow, depth});
  };
  std::vector<ir::Value*> parts;
  std::vector<ir::Node*> operations;
  for (int64_t n = 0; n < input->dim(0); ++n) {
    ir::Value* map = image(input, n);
    if (!padded) {
      // Rows and columns behind the last window are left out.
      const Shape used{(out[1] - 1) * stride[0] + kernel[0], (out[2] - 1) * stride[1] + kernel[1], depth};
      ir::Value* result = sumWindow(npu_ir::createSlice(builder_, map, {0, 0, 0}, used), kernel[0], kernel[1],
                                    stride[0], stride[1]);
      parts.push_back(result);
      if (npu_ir::hasOutputStage(result->producer())) operations.push_back(result->producer());
      continue;
    }
    if (kernel[0] <= kMaxHardwareAverage && kernel[1] <= kMaxHardwareAverage && stride[0] <= kMaxPoolStride &&
        stride[1] <= kMaxPoolStride) {
      Window w;
      w.kernel = kernel;
      w.stride = stride;
      w.pad = {pad[0], pad[2], pad[1], pad[3]};
      w.ifmZeroPoint = inputZero;
      OutputStage stage;
      stage.zeroPoint = outputZero;
      ir::Value* result = npu_ir::createPool(builder_, map, PoolMode::AVERAGE, w, stage, type);
      parts.push_back(result);
      operations.push_back(result->producer());
      continue;
    }
    std::vector<npu_ir::Piece> pieces;
    for (const Span& y : spans(out[1], height, kernel[0], stride[0], pad[0])) {
      for (const Span& x : spans(out[2], width, kernel[1], stride[1], pad[2])) {
        ir::Value* region = npu_ir::createSlice(
            builder_, map, {y.start, x.start, 0},
            {(y.count - 1) * stride[0] + y.size, (x.count - 1) * stride[1] + x.size, depth});
        ir::Value* result = sumWindow(region, y.size, x.size, stride[0], stride[1]);
        pieces.push_back({result, (y.first * out[2] + x.first) * depth, {out[2] * depth, depth, 1}});
      }
    }
    parts.push_back(npu_ir::createJoin(builder_, pieces, {type, {out[1], out[2], depth}}));
  }
  if (operations.size() != parts.size()) operations.clear();
  define(node.output(), images(parts), std::move(operations));
  return {};
}

Status Legalizer::lowerMaxPool(const tosa::MaxPool2d& node) {
  CARINA_TRY(ir::Value * input, get(node.input()));
  const ir::Ints &kernel = node.kernel(), &stride = node.stride(), &pad = node.pad();
  const Shape& out = node.output()->shape();
  const int64_t depth = input->dim(3);
  if (kernel[0] > kMaxPoolHeight)
    return fail("kernel height {} > {}", kernel[0], kMaxPoolHeight).withRemedy("pool in two steps");
  if (kernel[0] * kernel[1] > kMaxPoolArea) {
    return fail("kernel area {} > {}", kernel[0] * kernel[1], kMaxPoolArea).withRemedy("pool in two steps");
  }
  const DType type = input->dtype();
  std::vector<ir::Value*> parts;
  std::vector<ir::Node*> operations;
  for (int64_t n = 0; n < input->dim(0); ++n) {
    ir::Value* map = image(input, n);
    Window w;
    w.kernel = kernel;
    w.stride = {out[1] == 1 ? 1 : stride[0], out[2] == 1 ? 1 : stride[1]};
    w.pad = {pad[0], pad[2], pad[1], pad[3]};
    if (w.stride[0] <= kMaxPoolStride && w.stride[1] <= kMaxPoolStride) {
      // A single window does not stride: rows and columns behind it are cut off.
      const auto needed = [&](size_t axis, int64_t outputs) {
        const int64_t last = (outputs - 1) * w.stride[axis] + kernel[axis] - w.pad[axis];
        return std::min(map->dim(static_cast<int64_t>(axis)), last);
      };
      const Shape used{needed(0, out[1]), needed(1, out[2]), depth};
      map = npu_ir::createSlice(builder_, map, {0, 0, 0}, used);
      for (size_t axis = 0; axis < 2; ++axis) {
        const int64_t span = (out[axis + 1] - 1) * w.stride[axis] + kernel[axis];
        w.pad[axis + 2] = span - w.pad[axis] - used[axis];
      }
      ir::Value* result = npu_ir::createPool(builder_, map, PoolMode::MAX, w, {}, type);
      parts.push_back(result);
      operations.push_back(result->producer());
      continue;
    }
    CARINA_TRY(ir::Value * whole, padded(map, {pad[0], pad[1], pad[2], pad[3], 0, 0}, integerMin(type)));
    const Shape s = rowMajorStrides(whole->shape());
    const int64_t kh = kernel[0], kw = kernel[1];
    ir::Value* windows = rearranged(whole, {out[1] * out[2], kh * kw, depth}, {out[1], out[2], kh, kw, depth},
                                    0, {stride[0] * s[0], stride[1] * s[1], s[0], s[1], 1}, 0,
                                    {out[2] * kh * kw * depth, kh * kw * depth, kw * depth, depth, 1});
    Window row;
    row.kernel = {1, kh * kw};
    ir::Value* result = npu_ir::createPool(builder_, windows, PoolMode::MAX, row, {}, type);
    operations.push_back(result->producer());
    parts.push_back(npu_ir::createReshape(builder_, result, {out[1], out[2], depth}));
  }
  define(node.output(), images(parts), std::move(operations));
  return {};
}

}  // namespace carina::compiler
