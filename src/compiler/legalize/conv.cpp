// SPDX-License-Identifier: Apache-2.0
// Convolutions of all kinds. The hardware supports strides up to 3 and dilation up to 2; anything beyond
// becomes other convolutions with the same sums (wide dilations: dilation.cpp).
#include <algorithm>
#include <cstdlib>

#include "compiler/legalize/legalizer.hpp"

namespace carina::compiler {

using npu_ir::Window;

namespace {

constexpr int64_t kMaxStride = 3;
/// Up to this depth two columns fit the 8 channels that the hardware multiplies at a time.
constexpr int64_t kMaxPairedDepth = 4;
/// Channels of a depthwise convolution that become one ordinary convolution: a brick of the hardware.
constexpr int64_t kDiagonal = 16;

Tensor weightTensor(const ir::Value* value) {
  const Tensor& tensor = value->constant();
  return tensor.dtype() == DType::Int4 ? tensor.bitcast(DType::Int8) : tensor;
}

/// One bias per channel.
Tensor expandBias(const Tensor& bias, int64_t channels) {
  if (bias.numElements() == channels) return bias.reshaped({channels});
  Tensor expanded = Tensor::zeros(bias.dtype(), {channels});
  for (int64_t c = 0; c < channels; ++c) expanded.setIntegerAt(c, bias.integerAt(0));
  return expanded;
}

/// Merges two columns into one with twice the channels, so that a horizontal stride of 2 becomes 1: the same
/// sums with fewer kernel positions, each of which the hardware pads to 8 channels. width: in pairs.
void pairColumns(Tensor& weight, Window& window, int64_t width, int64_t zeroPoint) {
  const Shape s = weight.shape();
  const int64_t kw = s[2], depth = s[3];
  const int64_t outputs = (2 * width + window.pad[1] + window.pad[3] - kw) / 2 + 1;
  const int64_t left = (window.pad[1] + 1) / 2, lead = 2 * left - window.pad[1], pairs = (lead + kw + 1) / 2;
  Tensor paired = Tensor::zeros(weight.dtype(), {s[0], s[1], pairs, 2 * depth});
  for (int64_t row = 0; row < s[0] * s[1]; ++row) {
    for (int64_t x = 0; x < 2 * pairs; ++x) {
      const bool inside = x >= lead && x < lead + kw;
      for (int64_t c = 0; c < depth; ++c) {
        paired.setIntegerAt((row * 2 * pairs + x) * depth + c,
                            inside ? weight.integerAt((row * kw + x - lead) * depth + c) : zeroPoint);
      }
    }
  }
  weight = std::move(paired);
  window.kernel[1] = pairs;
  window.stride[1] = 1;
  window.pad[1] = left;
  window.pad[3] = outputs - 1 + pairs - left - width;
}

/// The map as pairs of columns. If their number is odd, the last one's neighbour is in the map from which
/// this one is cut, and is read without effect; null if there is no such column.
ir::Value* pairedMap(ir::Builder& builder, ir::Value* map) {
  const int64_t height = map->dim(0), width = map->dim(1), depth = map->dim(2);
  const Shape pairs{height, (width + 1) / 2, 2 * depth};
  if (width % 2 == 0) return npu_ir::createReshape(builder, map, pairs);
  auto cut = ir::producerAs<npu_ir::View>(map);
  // An image of a batch of one.
  if (cut && cut.offset() == 0 && cut.strides() == rowMajorStrides(map->shape()) &&
      cut.input()->numElements() == map->numElements())
    cut = ir::producerAs<npu_ir::View>(cut.input());
  if (!cut || cut.output()->numElements() != map->numElements() || cut.output()->dtype() != map->dtype() ||
      cut.strides().size() < 3)
    return nullptr;
  const ir::Ints strides(cut.strides().end() - 3, cut.strides().end());
  const Shape& shape = cut.output()->shape();
  const bool same = std::equal(shape.end() - 3, shape.end(), map->shape().begin());
  const int64_t end = cut.offset() + (height - 1) * strides[0] + (width + 1) * depth;
  if (!same || strides[1] != depth || strides[2] != 1 || strides[0] < (width + 1) * depth ||
      end > cut.input()->numElements())
    return nullptr;
  return npu_ir::createView(builder, cut.input(), map->dtype(), pairs, cut.offset(),
                            {strides[0], 2 * depth, 1});
}

Status requireConstant(const ir::Value* value, std::string_view what) {
  if (value->isConstant()) return {};
  return fail(Code::NoIntegerForm, "{} are computed, but the NPU reads only encoded constants", what)
      .withRemedy("make them parameters of the network");
}

}  // namespace

Status Legalizer::checkConvolution(const Convolution& conv) const {
  const Window& w = conv.window;
  CARINA_CHECK(fitsWindow(w.kernel, w.dilation), "a kernel beyond the hardware's window");
  for (const int64_t size : conv.ifm->shape()) {
    if (size > kMaxAxis)
      return fail(Code::HardwareLimit, "the feature map's size {} exceeds {}", size, kMaxAxis)
          .withRemedy("split the input");
  }
  // The accumulators hold sums within the limits that compilers for these NPUs have always guaranteed.
  const bool wide = dtypeSize(conv.ifm->dtype()) == 2;
  const int64_t limit = wide ? npu().wideSumLimit : int64_t{127} << 16;
  const int64_t channels = conv.bias.numElements();
  const int64_t per = conv.weight.numElements() / channels;
  if (per * 255 <= limit) return {};
  for (int64_t c = 0; c < channels; ++c) {
    int64_t sum = 0;
    for (int64_t i = 0; i < per; ++i) {
      sum += std::abs(conv.weight.integerAt(conv.depthwise ? i * channels + c : c * per + i) -
                      conv.weightZeroPoint);
    }
    if (sum > limit)
      return fail(Code::HardwareLimit, "the absolute weights sum to {}, more than {}, in output channel {}",
                  sum, limit, c)
          .withRemedy("use a smaller kernel or fewer input channels");
  }
  return {};
}

Result<ir::Value*> Legalizer::gatheredWindows(Convolution conv, std::vector<ir::Node*>& operations) {
  Window& w = conv.window;
  if (w.pad[0] || w.pad[1] || w.pad[2] || w.pad[3]) {
    CARINA_TRY(conv.ifm, padded(conv.ifm, {w.pad[0], w.pad[2], w.pad[1], w.pad[3], 0, 0}, w.ifmZeroPoint));
    w.pad = {0, 0, 0, 0};
  }
  const int64_t kh = w.kernel[0], kw = w.kernel[1], depth = conv.ifm->dim(2);
  const int64_t oh = outputPositions(w, 0, conv.ifm->dim(0)), ow = outputPositions(w, 1, conv.ifm->dim(1));
  const Shape strides = rowMajorStrides(conv.ifm->shape());
  std::vector<npu_ir::Piece> pieces;
  const Shape gathered{oh, ow, kh * kw * depth};
  for (int64_t ky = 0; ky < kh; ++ky) {
    for (npu_ir::Piece& piece : emitCopies(
             builder_, {conv.ifm,
                        {oh, ow, kw, depth},
                        ky * w.dilation[0] * strides[0],
                        {w.stride[0] * strides[0], w.stride[1] * strides[1], w.dilation[1] * strides[1], 1},
                        ky * kw * depth,
                        {ow * kh * kw * depth, kh * kw * depth, depth, 1}})) {
      pieces.push_back(std::move(piece));
    }
  }
  ir::Value* columns = npu_ir::createJoin(builder_, pieces, {conv.ifm->dtype(), gathered});
  const int64_t zero = w.ifmZeroPoint;
  w = {};
  w.ifmZeroPoint = zero;
  if (!conv.depthwise) {
    conv.ifm = columns;
    conv.weight = conv.weight.reshaped({conv.weight.dim(0), 1, 1, kh * kw * depth});
    return convolve(std::move(conv), operations);
  }
  // Positions one after another: each window is a row of kh*kw columns of depth channels.
  conv.ifm = npu_ir::createReshape(builder_, columns, {oh * ow, kh * kw, depth});
  conv.weight = conv.weight.reshaped({1, kh * kw, depth});
  w.kernel = {1, kh * kw};
  CARINA_TRY(ir::Value * result, convolve(std::move(conv), operations));
  return npu_ir::createReshape(builder_, result, {oh, ow, depth});
}

Result<ir::Value*> Legalizer::convolve(Convolution conv, std::vector<ir::Node*>& operations) {
  Window& w = conv.window;
  for (size_t axis = 0; axis < 2; ++axis) {
    if (w.kernel[axis] == 1) w.dilation[axis] = 1;
  }
  cutIdleTaps(conv);
  const bool column = conv.ifm->dim(1) == 1 && w.kernel[1] == 1 && w.pad[1] == 0 && w.pad[3] == 0;
  if (column && w.kernel[0] > 1 && !fitsWindow(w.kernel, w.dilation))
    return asLine(std::move(conv), operations);
  if (phaseStep(w, 0, false) > 1 || phaseStep(w, 1, false) > 1) return dilated(std::move(conv), operations);
  // A single output position needs no stride.
  for (size_t axis = 0; axis < 2; ++axis) {
    const int64_t size = conv.ifm->dim(static_cast<int64_t>(axis));
    if (outputPositions(w, axis, size) == 1) w.stride[axis] = 1;
    if (size > kMaxAxis || outputPositions(w, axis, size) > kMaxAxis)
      return tiled(std::move(conv), axis, operations);
  }
  const int64_t width = conv.ifm->dim(1), depth = conv.ifm->dim(2);
  if (conv.bias.numElements() > kMaxAxis) return channelByChannel(conv, kMaxAxis / 2, false, operations);
  if (w.stride[0] > kMaxStride || w.stride[1] > kMaxStride)
    return gatheredWindows(std::move(conv), operations);
  if (depth > kMaxAxis) {
    const bool pointwise =
        w.kernel == ir::Ints{1, 1} && w.stride == ir::Ints{1, 1} && w.pad == ir::Ints{0, 0, 0, 0};
    return pointwise ? deepAsColumns(std::move(conv), operations)
                     : gatheredWindows(std::move(conv), operations);
  }
  if (!conv.depthwise && w.stride[1] == 2 && w.dilation[1] == 1 && w.kernel[1] > 1 &&
      depth <= kMaxPairedDepth && (width % 2 == 0 || w.pad[3] == 0)) {
    if (ir::Value* const pairs = pairedMap(builder_, conv.ifm)) {
      pairColumns(conv.weight, w, pairs->dim(1), conv.weightZeroPoint);
      conv.ifm = pairs;
    }
  }
  if (!fitsWindow(w.kernel, w.dilation)) {
    if (conv.depthwise) return channelByChannel(conv, kDiagonal, true, operations);
    return folded(std::move(conv), operations);
  }
  if (std::max(w.pad[0], w.pad[1]) > kMaxPadBefore || std::max(w.pad[2], w.pad[3]) > kMaxPadAfter) {
    // Padding beyond the hardware's limits is added around the map in memory.
    ir::Ints more(4);
    for (size_t i = 0; i < 4; ++i)
      more[i] = std::max<int64_t>(w.pad[i] - (i < 2 ? kMaxPadBefore : kMaxPadAfter), 0);
    CARINA_TRY(conv.ifm, padded(conv.ifm, {more[0], more[2], more[1], more[3], 0, 0}, w.ifmZeroPoint));
    for (size_t i = 0; i < 4; ++i) w.pad[i] -= more[i];
    return convolve(std::move(conv), operations);
  }
  CARINA_RETURN_IF_ERROR(checkConvolution(conv));
  const DType type = conv.type;
  ir::Value* weight = constant(std::move(conv.weight));
  ir::Value* bias = constant(std::move(conv.bias));
  ir::Value* result =
      conv.depthwise
          ? npu_ir::createDepthwise(builder_, conv.ifm, weight, bias, w, {conv.weightZeroPoint}, {}, type)
          : npu_ir::createConv(builder_, conv.ifm, weight, bias, w, {conv.weightZeroPoint}, {}, type);
  operations.push_back(result->producer());
  return result;
}

Status Legalizer::lowerConv2d(const tosa::Conv2d& node) {
  CARINA_RETURN_IF_ERROR(requireConstant(node.weight(), "weights"));
  CARINA_RETURN_IF_ERROR(requireConstant(node.bias(), "biases"));
  Convolution conv;
  conv.weight = weightTensor(node.weight());
  conv.bias = expandBias(node.bias()->constant(), conv.weight.dim(0));
  conv.weightZeroPoint = constantValue(node.weightZp());
  conv.type = node.output()->dtype();
  conv.window.kernel = {conv.weight.dim(1), conv.weight.dim(2)};
  conv.window.stride = node.stride();
  conv.window.dilation = node.dilation();
  const ir::Ints& pad = node.pad();
  conv.window.pad = {pad[0], pad[2], pad[1], pad[3]};
  conv.window.ifmZeroPoint = constantValue(node.inputZp());
  CARINA_TRY(ir::Value * input, codesOf(node.input(), conv.window.ifmZeroPoint));
  const Shape& shape = input->shape();
  const bool pointwise = conv.window.kernel == ir::Ints{1, 1} && conv.window.stride == ir::Ints{1, 1} &&
                         conv.window.pad == ir::Ints{0, 0, 0, 0};
  if (pointwise && shape[0] > 1 && shape[0] * shape[1] <= 65536) {
    // A batch of pointwise convolutions is one taller (or, for vectors, wider) image.
    const bool vectors = shape[1] * shape[2] == 1;
    conv.ifm = npu_ir::createReshape(
        builder_, input,
        vectors ? Shape{1, shape[0], shape[3]} : Shape{shape[0] * shape[1], shape[2], shape[3]});
    std::vector<ir::Node*> operations;
    CARINA_TRY(ir::Value * result, convolve(conv, operations));
    define(node.output(), result, std::move(operations));
    return {};
  }
  return convolveImages(node.output(), input, conv);
}

Status Legalizer::convolveImages(ir::Value* output, ir::Value* input, const Convolution& conv) {
  std::vector<ir::Value*> parts;
  std::vector<ir::Node*> operations;
  for (int64_t n = 0; n < input->dim(0); ++n) {
    Convolution one = conv;
    one.ifm = image(input, n);
    CARINA_TRY(ir::Value * part, convolve(std::move(one), operations));
    parts.push_back(part);
  }
  define(output, images(parts), std::move(operations));
  return {};
}

Status Legalizer::lowerDepthwise(const tosa::DepthwiseConv2d& node) {
  CARINA_RETURN_IF_ERROR(requireConstant(node.weight(), "weights"));
  CARINA_RETURN_IF_ERROR(requireConstant(node.bias(), "biases"));
  if (isScaledSum(node)) return lowerScaledSum(node);
  const Tensor weight = weightTensor(node.weight());  // [KH, KW, C, M]
  const int64_t kh = weight.dim(0), kw = weight.dim(1), channels = weight.dim(2), multiple = weight.dim(3);
  Convolution conv;
  conv.bias = expandBias(node.bias()->constant(), channels * multiple);
  conv.weightZeroPoint = constantValue(node.weightZp());
  conv.type = node.output()->dtype();
  conv.window.kernel = {kh, kw};
  conv.window.stride = node.stride();
  conv.window.dilation = node.dilation();
  const ir::Ints& pad = node.pad();
  conv.window.pad = {pad[0], pad[2], pad[1], pad[3]};
  conv.window.ifmZeroPoint = constantValue(node.inputZp());
  CARINA_TRY(ir::Value * input, codesOf(node.input(), conv.window.ifmZeroPoint));
  conv.depthwise = multiple == 1;
  if (conv.depthwise) {
    conv.weight = weight.reshaped({kh, kw, channels});
  } else {
    // Output channel c*M+m only reads input channel c: a convolution whose other weights are zero.
    if (channels * multiple * kh * kw * channels > int64_t{1} << 24) {
      return fail(Code::HardwareLimit, "a depth multiplier of {} is not supported for {} channels", multiple,
                  channels)
          .withRemedy("use a depth multiplier of 1 followed by a pointwise convolution");
    }
    conv.weight = Tensor::zeros(DType::Int8, {channels * multiple, kh, kw, channels});
    if (conv.weightZeroPoint != 0) {
      for (int64_t i = 0; i < conv.weight.numElements(); ++i)
        conv.weight.setIntegerAt(i, conv.weightZeroPoint);
    }
    for (int64_t y = 0; y < kh; ++y) {
      for (int64_t x = 0; x < kw; ++x) {
        for (int64_t c = 0; c < channels; ++c) {
          for (int64_t m = 0; m < multiple; ++m) {
            conv.weight.setIntegerAt((((c * multiple + m) * kh + y) * kw + x) * channels + c,
                                     weight.integerAt(((y * kw + x) * channels + c) * multiple + m));
          }
        }
      }
    }
  }
  return convolveImages(node.output(), input, conv);
}

Status Legalizer::lowerConv3d(const tosa::Conv3d& node) {
  CARINA_RETURN_IF_ERROR(requireConstant(node.weight(), "weights"));
  CARINA_RETURN_IF_ERROR(requireConstant(node.bias(), "biases"));
  CARINA_TRY(ir::Value * input, get(node.input()));   // [N, D, H, W, C]
  const Tensor weight = weightTensor(node.weight());  // [OC, KD, KH, KW, IC]
  const int64_t oc = weight.dim(0), kd = weight.dim(1), kh = weight.dim(2), kw = weight.dim(3),
                ic = weight.dim(4);
  const Shape& in = input->shape();
  const Shape& out = node.output()->shape();
  const ir::Ints& pad = node.pad();
  const ir::Ints& stride = node.stride();
  const ir::Ints& dilation = node.dilation();
  // The planes that one output plane sees become channels: [KH, KW, KD*IC].
  Tensor flat = Tensor::zeros(DType::Int8, {oc, kh, kw, kd * ic});
  for (int64_t o = 0; o < oc; ++o) {
    for (int64_t d = 0; d < kd; ++d) {
      for (int64_t p = 0; p < kh * kw; ++p) {
        for (int64_t i = 0; i < ic; ++i) {
          flat.setIntegerAt((o * kh * kw + p) * kd * ic + d * ic + i,
                            weight.integerAt(((o * kd + d) * kh * kw + p) * ic + i));
        }
      }
    }
  }
  const Shape strides = rowMajorStrides(in);
  std::vector<npu_ir::Piece> results;
  std::vector<ir::Node*> operations;
  const Shape outStrides = rowMajorStrides(out);
  const int64_t inputZero = constantValue(node.inputZp());
  for (int64_t n = 0; n < in[0]; ++n) {
    for (int64_t od = 0; od < out[1]; ++od) {
      std::vector<npu_ir::Piece> pieces;
      const Shape gathered{in[2], in[3], kd * ic};
      for (int64_t k = 0; k < kd; ++k) {
        const int64_t d = od * stride[0] - pad[0] + k * dilation[0];
        if (d < 0 || d >= in[1]) {
          pieces.push_back(
              {filled(input->dtype(), {in[2], in[3], ic}, inputZero), k * ic, {in[3] * kd * ic, kd * ic, 1}});
          continue;
        }
        for (npu_ir::Piece& piece : emitCopies(builder_, {input,
                                                          {in[2], in[3], ic},
                                                          n * strides[0] + d * strides[1],
                                                          {strides[2], strides[3], 1},
                                                          k * ic,
                                                          {in[3] * kd * ic, kd * ic, 1}})) {
          pieces.push_back(std::move(piece));
        }
      }
      Convolution conv;
      conv.ifm = kd == 1 && pad[0] == 0 ? npu_ir::createView(builder_, input, input->dtype(), gathered,
                                                             n * strides[0] + od * stride[0] * strides[1],
                                                             {strides[2], strides[3], 1})
                                        : npu_ir::createJoin(builder_, pieces, {input->dtype(), gathered});
      conv.weight = flat;
      conv.bias = expandBias(node.bias()->constant(), oc);
      conv.weightZeroPoint = constantValue(node.weightZp());
      conv.type = node.output()->dtype();
      conv.window.kernel = {kh, kw};
      conv.window.stride = {stride[1], stride[2]};
      conv.window.dilation = {dilation[1], dilation[2]};
      conv.window.pad = {pad[2], pad[4], pad[3], pad[5]};
      conv.window.ifmZeroPoint = inputZero;
      CARINA_TRY(ir::Value * part, convolve(std::move(conv), operations));
      results.push_back(
          {part, n * outStrides[0] + od * outStrides[1], {outStrides[2], outStrides[3], outStrides[4]}});
    }
  }
  define(node.output(), npu_ir::createJoin(builder_, results, {node.output()->dtype(), out}),
         std::move(operations));
  return {};
}

Status Legalizer::lowerTransposeConv2d(const tosa::TransposeConv2d& node) {
  CARINA_RETURN_IF_ERROR(requireConstant(node.weight(), "weights"));
  CARINA_RETURN_IF_ERROR(requireConstant(node.bias(), "biases"));
  CARINA_TRY(ir::Value * input, get(node.input()));
  const Tensor weight = weightTensor(node.weight());  // [OC, KH, KW, IC]
  const int64_t oc = weight.dim(0), ic = weight.dim(3);
  const std::array<int64_t, 2> kernel{weight.dim(1), weight.dim(2)};
  const Shape& out = node.output()->shape();
  const ir::Ints& stride = node.stride();
  constexpr int64_t kMaxPhases = 4096;
  if (const int64_t count = std::min(stride[0], out[1]) * std::min(stride[1], out[2]) * out[0];
      count > kMaxPhases) {
    return fail(Code::HardwareLimit,
                "a transposed convolution with strides {} x {} takes {} convolutions, more than {}",
                stride[0], stride[1], count, kMaxPhases)
        .withRemedy("use smaller strides, or resize the result");
  }
  const std::array<int64_t, 2> before{node.outPad()[0], node.outPad()[2]};
  const int64_t inputZero = constantValue(node.inputZp()), weightZero = constantValue(node.weightZp());
  const Shape outStrides = rowMajorStrides(out);
  // Output positions of one phase (oy mod stride) are an ordinary convolution with every stride-th tap:
  // oy = iy*s + before + ky, so for phase r the taps are ky = (r - before) mod s, + s, + 2s, ...
  struct Phase {
    int64_t first, count;       // first output position and how many
    std::vector<int64_t> taps;  // kernel positions, in order of rising input position
    int64_t start;              // input position of the first tap for the first output
  };
  const auto phases = [&](size_t axis) {
    std::vector<Phase> result;
    const int64_t s = stride[axis], size = out[axis + 1];
    for (int64_t r = 0; r < std::min(s, size); ++r) {
      Phase phase{r, (size - r + s - 1) / s, {}, 0};
      for (int64_t k = kernel[axis] - 1; k >= 0; --k) {
        if (((r - before[axis] - k) % s + s) % s == 0) phase.taps.push_back(k);
      }
      if (!phase.taps.empty()) phase.start = (r - before[axis] - phase.taps.front()) / s;
      result.push_back(std::move(phase));
    }
    return result;
  };
  std::vector<npu_ir::Piece> pieces;
  std::vector<ir::Node*> operations;
  const Tensor bias = expandBias(node.bias()->constant(), oc);
  for (int64_t n = 0; n < input->dim(0); ++n) {
    for (const Phase& y : phases(0)) {
      for (const Phase& x : phases(1)) {
        const auto kh = static_cast<int64_t>(std::max<size_t>(y.taps.size(), 1));
        const auto kw = static_cast<int64_t>(std::max<size_t>(x.taps.size(), 1));
        Convolution conv;
        conv.weight = Tensor::zeros(DType::Int8, {oc, kh, kw, ic});
        for (int64_t i = 0; weightZero != 0 && i < conv.weight.numElements(); ++i)
          conv.weight.setIntegerAt(i, weightZero);
        for (int64_t o = 0; o < oc; ++o) {
          for (size_t a = 0; a < y.taps.size(); ++a) {
            for (size_t b = 0; b < x.taps.size(); ++b) {
              for (int64_t i = 0; i < ic; ++i) {
                conv.weight.setIntegerAt(
                    ((o * kh + static_cast<int64_t>(a)) * kw + static_cast<int64_t>(b)) * ic + i,
                    weight.integerAt(((o * kernel[0] + y.taps[a]) * kernel[1] + x.taps[b]) * ic + i));
              }
            }
          }
        }
        conv.bias = bias;
        conv.weightZeroPoint = weightZero;
        conv.type = node.output()->dtype();
        conv.window.kernel = {kh, kw};
        conv.window.ifmZeroPoint = inputZero;
        // The window slides over input positions start .. start + count - 1 + taps - 1; outside the input is
        // padding.
        ir::Value* ifm = image(input, n);
        Shape start{0, 0, 0}, size = ifm->shape();
        const auto fit = [&](size_t axis, const Phase& phase, int64_t taps) {
          const int64_t first = phase.start, last = phase.start + phase.count - 1 + taps - 1,
                        extent = size[axis];
          conv.window.pad[axis] = std::max<int64_t>(0, -first);
          conv.window.pad[axis + 2] = std::max<int64_t>(0, last - (extent - 1));
          start[axis] = std::clamp<int64_t>(first, 0, extent - 1);
          size[axis] = std::clamp<int64_t>(last, start[axis], extent - 1) - start[axis] + 1;
          // A window that only sees padding still needs an input element.
          if (last < 0 || first > extent - 1) {
            size[axis] = 1;
            conv.window.pad[axis] = last < 0 ? last - first + 1 : 0;
            conv.window.pad[axis + 2] = last < 0 ? 0 : last - first + 1;
            if (last < 0) conv.window.pad[axis + 2] = 0;
          }
        };
        fit(0, y, kh);
        fit(1, x, kw);
        conv.ifm = npu_ir::createSlice(builder_, ifm, start, size);
        const int64_t extraY = size[0] + conv.window.pad[0] + conv.window.pad[2] - kh + 1 - y.count;
        const int64_t extraX = size[1] + conv.window.pad[1] + conv.window.pad[3] - kw + 1 - x.count;
        CARINA_TRY(ir::Value * part, convolve(std::move(conv), operations));
        if (extraY != 0 || extraX != 0) {
          // Leave out positions that saw the stand-in element.
          const Shape from{y.start + y.count - 1 + kh - 1 < 0 ? 0 : extraY,
                           x.start + x.count - 1 + kw - 1 < 0 ? 0 : extraX, 0};
          part = npu_ir::createSlice(builder_, part, from, {y.count, x.count, oc});
        }
        pieces.push_back({part,
                          n * outStrides[0] + y.first * outStrides[1] + x.first * outStrides[2],
                          {stride[0] * outStrides[1], stride[1] * outStrides[2], 1}});
      }
    }
  }
  define(node.output(), npu_ir::createJoin(builder_, pieces, {node.output()->dtype(), out}),
         std::move(operations));
  return {};
}

}  // namespace carina::compiler
