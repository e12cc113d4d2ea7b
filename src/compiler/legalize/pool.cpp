// SPDX-License-Identifier: Apache-2.0
// AVG_POOL2D and MAX_POOL2D. Averages over whole windows are sums scaled by TOSA's own reciprocal; if padding
// makes the divisor vary, small windows are divided by the hardware and large ones are computed region by
// region.
#include <algorithm>
#include <bit>

#include "compiler/legalize/legalizer.hpp"

namespace carina::compiler {

using npu_ir::OutputStage;
using npu_ir::PoolMode;
using npu_ir::Window;

namespace {

constexpr int64_t kMaxPoolHeight = 256, kMaxPoolArea = 65536, kMaxHardwareAverage = 8, kMaxPoolStride = 3;

/// Whether the kernel fits the hardware's pooling window, and the map's size its registers.
bool fitsPool(const Shape& map, int64_t kh, int64_t kw) {
  return kh <= kMaxPoolHeight && kh * kw <= kMaxPoolArea &&
         std::all_of(map.begin(), map.end(), [](int64_t size) { return size <= kMaxAxis; });
}

/// Whether pooling along the rows and then along the columns takes less than two thirds of the steps of both
/// at once. The pooling unit takes one step per element of a window, at least four (npu/timing/estimate.cpp).
bool fasterInTwoSteps(int64_t inputRows, const Shape& out, const ir::Ints& kernel) {
  if (kernel[0] == 1 || kernel[1] == 1) return false;
  const auto steps = [](int64_t taps) { return std::max<int64_t>(taps, 4); };
  const int64_t atOnce = out[0] * steps(kernel[0] * kernel[1]);
  return 3 * (inputRows * steps(kernel[1]) + out[0] * steps(kernel[0])) < 2 * atOnce;
}

/// TOSA's reciprocal_scale (tosa 6).
std::pair<int64_t, int64_t> reciprocal(int64_t count) {
  const int k = std::bit_width(static_cast<uint64_t>(count - 1));
  return {((int64_t{1} << 30) + 1) * (int64_t{1} << k) / count, 30 + k};
}

/// Output positions first .. first + count - 1, whose windows see `size` inputs. `start`: first input
/// of the first window.
struct Span {
  int64_t first, count, start, size;
};

/// Consecutive positions with complete windows together, each clipped position separately.
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
  const DType type = input->dtype();
  const int64_t inputZero = constantValue(node.inputZp()), outputZero = constantValue(node.outputZp());
  // Padding that no window reaches does not count.
  const bool padded = pad[0] > 0 || pad[2] > 0 || (out[1] - 1) * stride[0] + kernel[0] - pad[0] > height ||
                      (out[2] - 1) * stride[1] + kernel[1] - pad[2] > width;
  const auto sumWindow = [&](ir::Value* map, int64_t kh, int64_t kw, int64_t sy,
                             int64_t sx) -> Result<ir::Value*> {
    if (!fitsPool(map->shape(), kh, kw)) return largeAverage(map, {kh, kw}, {sy, sx}, inputZero, outputZero);
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
    // Every window copied out separately.
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
      // Rows and columns after the last window are left out.
      const Shape used{(out[1] - 1) * stride[0] + kernel[0], (out[2] - 1) * stride[1] + kernel[1], depth};
      CARINA_TRY(ir::Value * result, sumWindow(npu_ir::createSlice(builder_, map, {0, 0, 0}, used), kernel[0],
                                               kernel[1], stride[0], stride[1]));
      parts.push_back(result);
      if (npu_ir::hasOutputStage(result->producer())) operations.push_back(result->producer());
      continue;
    }
    if (fitsPool(map->shape(), kernel[0], kernel[1]) && kernel[0] <= kMaxHardwareAverage &&
        kernel[1] <= kMaxHardwareAverage && stride[0] <= kMaxPoolStride && stride[1] <= kMaxPoolStride) {
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
        CARINA_TRY(ir::Value * result, sumWindow(region, y.size, x.size, stride[0], stride[1]));
        pieces.push_back({result, (y.first * out[2] + x.first) * depth, {out[2] * depth, depth, 1}});
      }
    }
    parts.push_back(npu_ir::createJoin(builder_, pieces, {type, {out[1], out[2], depth}}));
  }
  if (operations.size() != parts.size()) operations.clear();
  define(node.output(), images(parts), std::move(operations));
  return {};
}

namespace {

/// A single window has no stride.
ir::Ints effectiveStride(const tosa::DepthwiseConv2d& node) {
  const Shape& out = node.output()->shape();
  return {out[1] == 1 ? 1 : node.stride()[0], out[2] == 1 ? 1 : node.stride()[1]};
}

}  // namespace

bool Legalizer::isScaledSum(const tosa::DepthwiseConv2d& node) const {
  constexpr int64_t kFewTaps = 9;                    // up to this many, the depthwise unit is as fast
  const Tensor& weight = node.weight()->constant();  // [KH, KW, C, M]
  const Shape& in = node.input()->shape();
  const ir::Ints none(4, 0), stride = effectiveStride(node);
  if (!node.output()->hasOneUse() || node.input()->dtype() != DType::Int8 || weight.dim(3) != 1 ||
      weight.dim(0) * weight.dim(1) <= kFewTaps || node.pad() != none || node.dilation() != ir::Ints{1, 1} ||
      stride[0] > kMaxPoolStride || stride[1] > kMaxPoolStride || constantValue(node.weightZp()) != 0 ||
      !fitsPool({in[1], in[2], in[3]}, weight.dim(0), weight.dim(1)))
    return false;
  const auto rescale = ir::dynCast<tosa::Rescale>(node.output()->uses()[0].node);
  if (!rescale) return false;
  const RescaleNumbers numbers = rescaleNumbers(rescale);
  if (numbers.perChannel() || numbers.inputZeroPoint != 0 || dtypeSize(numbers.outputType) != 1) return false;
  const auto all = [](const Tensor& tensor, int64_t value) {
    for (int64_t i = 0; i < tensor.numElements(); ++i) {
      if (tensor.integerAt(i) != value) return false;
    }
    return true;
  };
  return all(weight, 1) && all(node.bias()->constant(), 0);
}

Status Legalizer::lowerScaledSum(const tosa::DepthwiseConv2d& node) {
  CARINA_TRY(ir::Value * input, get(node.input()));
  const Shape &out = node.output()->shape(), &weight = node.weight()->shape();
  Window w;
  w.kernel = {weight[0], weight[1]};
  w.stride = effectiveStride(node);
  w.ifmZeroPoint = constantValue(node.inputZp());
  const Shape used{(out[1] - 1) * w.stride[0] + w.kernel[0], (out[2] - 1) * w.stride[1] + w.kernel[1],
                   out[3]};
  std::vector<ir::Value*> parts;
  std::vector<ir::Node*> operations;
  for (int64_t n = 0; n < input->dim(0); ++n) {
    ir::Value* map = npu_ir::createSlice(builder_, image(input, n), {0, 0, 0}, used);
    parts.push_back(npu_ir::createPool(builder_, map, PoolMode::SUM, w, {}, DType::Int32));
    operations.push_back(parts.back()->producer());
  }
  define(node.output(), images(parts), std::move(operations));
  return {};
}

Result<ir::Value*> Legalizer::largeAverage(ir::Value* map, const ir::Ints& kernel, const ir::Ints& stride,
                                           int64_t inputZero, int64_t outputZero) {
  // Sums of parts of the window by convolutions with ones, then TOSA's reciprocal on the 32-bit sum.
  const int64_t depth = map->dim(2), area = kernel[0] * kernel[1];
  const DType type = map->dtype();
  if (dtypeSize(type) == 2 && area > kMaxPoolArea)
    return fail(Code::HardwareLimit,
                "the window has {} 16-bit elements; the sum of more than {} can exceed 32 bits", area,
                kMaxPoolArea)
        .withRemedy("pool in two steps, or use int8");
  const int64_t oh = (map->dim(0) - kernel[0]) / stride[0] + 1,
                ow = (map->dim(1) - kernel[1]) / stride[1] + 1;
  const int64_t rows = std::min(kMaxKernelHeight, kernel[0]),
                columns = std::min(kMaxKernelArea / rows, kernel[1]);
  ir::Value* sum = nullptr;
  for (int64_t y = 0; y < kernel[0]; y += rows) {
    for (int64_t x = 0; x < kernel[1]; x += columns) {
      const int64_t h = std::min(rows, kernel[0] - y), w = std::min(columns, kernel[1] - x);
      Convolution conv;
      conv.ifm = npu_ir::createSlice(builder_, map, {y, x, 0},
                                     {(oh - 1) * stride[0] + h, (ow - 1) * stride[1] + w, depth});
      conv.depthwise = true;
      conv.window.kernel = {h, w};
      conv.window.stride = stride;
      conv.window.ifmZeroPoint = inputZero;
      conv.weight = Tensor::zeros(DType::Int8, {h, w, depth});
      for (int64_t i = 0; i < conv.weight.numElements(); ++i) conv.weight.setIntegerAt(i, 1);
      conv.bias = Tensor::zeros(DType::Int32, {depth});
      std::vector<ir::Node*> operations;
      CARINA_TRY(ir::Value * part, convolve(std::move(conv), operations));
      if (sum) {
        CARINA_TRY(sum, elementwise(npu_ir::ElementwiseMode::ADD, sum, part, DType::Int32));
      } else {
        sum = part;
      }
    }
  }
  RescaleNumbers numbers;
  const auto [multiplier, shift] = reciprocal(area);
  numbers.multipliers = {multiplier};
  numbers.shifts = {shift};
  numbers.outputZeroPoint = outputZero;
  numbers.inputType = DType::Int32;
  numbers.outputType = type;
  return scale32(sum, numbers, {oh, ow, depth});
}

Result<ir::Value*> Legalizer::largestAlong(ir::Value* map, size_t axis, int64_t kernel, int64_t stride) {
  // Makes the axis the width of a map whose other axis precedes it or becomes part of the channels.
  const Shape size = map->shape();
  const int64_t outputs = (size[axis] - kernel) / stride + 1;
  const Shape split = axis == 0 ? Shape{1, size[0], size[1] * size[2]} : size;
  const Shape out{split[0], outputs, split[2]}, strides = rowMajorStrides(out);
  const int64_t reach = std::min(kernel, kMaxAxis);
  ir::Value* lines = npu_ir::createReshape(builder_, map, split);
  std::vector<npu_ir::Piece> pieces;
  const auto cut = [](int64_t count, int64_t most, auto&& body) -> Status {
    const int64_t step = ceilDiv(count, ceilDiv(count, most));
    for (int64_t first = 0; first < count; first += step)
      CARINA_RETURN_IF_ERROR(body(first, std::min(step, count - first)));
    return {};
  };
  CARINA_RETURN_IF_ERROR(cut(split[0], kMaxAxis, [&](int64_t y, int64_t height) {
    return cut(outputs, (kMaxAxis - reach) / stride + 1, [&](int64_t x, int64_t width) {
      return cut(split[2], kMaxAxis, [&](int64_t c, int64_t channels) -> Status {
        // Windows longer than an axis may be are the maximum over the windows of their parts.
        ir::Value* largest = nullptr;
        std::vector<ir::Node*> operations;
        for (int64_t from = 0; from < kernel; from += reach) {
          const int64_t part = std::min(reach, kernel - from);
          ir::Value* slice = npu_ir::createSlice(builder_, lines, {y, x * stride + from, c},
                                                 {height, (width - 1) * stride + part, channels});
          CARINA_TRY(ir::Value * result, pooledMax(slice, {1, part}, {1, stride}, {0, 0, 0, 0}, operations));
          if (largest) {
            CARINA_TRY(largest, elementwise(npu_ir::ElementwiseMode::MAX, largest, result, map->dtype()));
          } else {
            largest = result;
          }
        }
        pieces.push_back({largest, y * strides[0] + x * strides[1] + c, strides});
        return {};
      });
    });
  }));
  ir::Value* result =
      pieces.size() == 1 ? pieces[0].value : npu_ir::createJoin(builder_, pieces, {map->dtype(), out});
  return npu_ir::createReshape(
      builder_, result, axis == 0 ? Shape{outputs, size[1], size[2]} : Shape{size[0], outputs, size[2]});
}

Result<ir::Value*> Legalizer::pooledMax(ir::Value* map, const ir::Ints& kernel, const ir::Ints& stride,
                                        const ir::Ints& pad, std::vector<ir::Node*>& operations) {
  const DType type = map->dtype();
  const int64_t depth = map->dim(2);
  Shape out;
  for (size_t axis = 0; axis < 2; ++axis)
    out.push_back(
        (map->dim(static_cast<int64_t>(axis)) + pad[axis] + pad[axis + 2] - kernel[axis]) / stride[axis] + 1);
  Window w;
  w.kernel = kernel;
  w.stride = {out[0] == 1 ? 1 : stride[0], out[1] == 1 ? 1 : stride[1]};
  w.pad = pad;
  const bool fits = fitsPool(map->shape(), kernel[0], kernel[1]) &&
                    std::max(pad[0], pad[1]) <= kMaxPadBefore && std::max(pad[2], pad[3]) <= kMaxPadAfter;
  if (fits && w.stride[0] <= kMaxPoolStride && w.stride[1] <= kMaxPoolStride) {
    if (fasterInTwoSteps(map->dim(0), out, kernel)) {
      std::vector<ir::Node*> steps;
      CARINA_TRY(map, pooledMax(map, {1, kernel[1]}, {1, stride[1]}, {0, pad[1], 0, pad[3]}, steps));
      return pooledMax(map, {kernel[0], 1}, {stride[0], 1}, {pad[0], 0, pad[2], 0}, operations);
    }
    // A single window has no stride: rows and columns after it are cut off.
    const auto needed = [&](size_t axis) {
      const int64_t last = (out[axis] - 1) * w.stride[axis] + kernel[axis] - w.pad[axis];
      return std::min(map->dim(static_cast<int64_t>(axis)), last);
    };
    const Shape used{needed(0), needed(1), depth};
    map = npu_ir::createSlice(builder_, map, {0, 0, 0}, used);
    for (size_t axis = 0; axis < 2; ++axis) {
      const int64_t span = (out[axis] - 1) * w.stride[axis] + kernel[axis];
      w.pad[axis + 2] = span - w.pad[axis] - used[axis];
    }
    ir::Value* result = npu_ir::createPool(builder_, map, PoolMode::MAX, w, {}, type);
    operations.push_back(result->producer());
    return result;
  }
  CARINA_TRY(ir::Value * whole, padded(map, {pad[0], pad[2], pad[1], pad[3], 0, 0}, integerMin(type)));
  if (!fits) {
    // The maximum of each row's window, then the maximum of those.
    if (kernel[1] > 1 || w.stride[1] > 1) {
      CARINA_TRY(whole, largestAlong(whole, 1, kernel[1], stride[1]));
    }
    if (kernel[0] > 1 || w.stride[0] > 1) {
      CARINA_TRY(whole, largestAlong(whole, 0, kernel[0], stride[0]));
    }
    return whole;
  }
  const Shape s = rowMajorStrides(whole->shape());
  const int64_t kh = kernel[0], kw = kernel[1];
  ir::Value* windows = rearranged(whole, {out[0] * out[1], kh * kw, depth}, {out[0], out[1], kh, kw, depth},
                                  0, {stride[0] * s[0], stride[1] * s[1], s[0], s[1], 1}, 0,
                                  {out[1] * kh * kw * depth, kh * kw * depth, kw * depth, depth, 1});
  CARINA_TRY(ir::Value * result, pooledMax(windows, {1, kh * kw}, {1, 1}, {0, 0, 0, 0}, operations));
  return npu_ir::createReshape(builder_, result, {out[0], out[1], depth});
}

Status Legalizer::lowerMaxPool(const tosa::MaxPool2d& node) {
  CARINA_TRY(ir::Value * input, get(node.input()));
  const ir::Ints& pad = node.pad();
  std::vector<ir::Value*> parts;
  std::vector<ir::Node*> operations;
  for (int64_t n = 0; n < input->dim(0); ++n) {
    CARINA_TRY(ir::Value * result, pooledMax(image(input, n), node.kernel(), node.stride(),
                                             {pad[0], pad[2], pad[1], pad[3]}, operations));
    parts.push_back(result);
  }
  if (operations.size() != parts.size()) operations.clear();
  define(node.output(), images(parts), std::move(operations));
  return {};
}

}  // namespace carina::compiler
