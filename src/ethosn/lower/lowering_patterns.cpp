// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>

#include "ethosn/lower/curve_fit.hpp"
#include "ethosn/lower/lowering.hpp"

namespace carina::ethosn {
namespace {

uint32_t size32(int64_t value) {
  return static_cast<uint32_t>(value);
}

/// Sets a bias of zeros, with the scales for an input of scale 1.
void addZeroBias(Operation& op, uint32_t outputs) {
  op.bias = {{1, 1, 1, outputs}, DataType::S32, DataFormat::Nhwc, {0, op.weights.quantization.scales, {}}};
}

int64_t floorDivide(int64_t value, int64_t by) {
  return value >= 0 ? value / by : -((-value + by - 1) / by);
}

/// Whether a resize with these parameters uses element i / 2 for element i, or, when it interpolates, the
/// mean of two for odd i: what the MCE computes.
bool doubles(int64_t inputs, int64_t outputs, int64_t numerator, int64_t denominator, int64_t offset,
             bool bilinear) {
  for (int64_t i = 0; i < outputs; ++i) {
    const int64_t position = i * denominator + offset;
    const int64_t index = floorDivide(position, numerator), fraction = position - index * numerator;
    const int64_t low = std::clamp<int64_t>(index, 0, inputs - 1),
                  high = std::clamp<int64_t>(index + 1, 0, inputs - 1);
    if (!bilinear) {
      if ((2 * fraction >= numerator ? high : low) != i / 2) return false;
      continue;
    }
    const bool between = i % 2 == 1 && i / 2 + 1 < inputs;
    const bool good = between ? index == i / 2 && 2 * fraction == numerator
                              : (fraction == 0 || low == high) && low == i / 2;
    if (!good) return false;
  }
  return true;
}

}  // namespace

/// Requantization between 8-bit types and quantizations.
Status Lowering::requantization(const ir::Node& node, const tosa::Rescale& rescale) {
  if (rescale.perChannel()) return fail(Code::NoIntegerForm, "it requantizes with a scale per channel");
  const auto zeroOf = [](const ir::Value* value, bool isUnsigned) {
    const int64_t zero = valueOf(value);
    return isUnsigned ? zero & 0xff : zero;
  };
  CARINA_TRY(const int32_t input,
             seenAs(node, rescale.input(), zeroOf(rescale.inputZp(), rescale.inputUnsigned()),
                    ratiosOf(rescale)[0]));
  const bool isUnsigned = info(input).type == DataType::U8;
  if (isUnsigned != rescale.inputUnsigned())
    return fail(Code::NoIntegerForm, "its input is used as {}signed elsewhere", isUnsigned ? "un" : "");
  Operation op;
  op.op = Operator::Requantize;
  op.outputType = rescale.outputUnsigned() ? DataType::U8 : DataType::S8;
  op.outputQuantization = {
      static_cast<int32_t>(zeroOf(rescale.outputZp(), rescale.outputUnsigned())), {1.0F}, {}};
  define(rescale.output(), append(node, op, {input})[0]);
  return {};
}

/// Filters of a size that the MCE lacks are extended by rows and columns of zeros, which enlarge the output:
/// it is cropped again.
Status Lowering::transposeConvolution(const ir::Node& node, const tosa::TransposeConv2d& conv,
                                      const tosa::Rescale& rescale) {
  if (conv.stride()[0] != 2 || conv.stride()[1] != 2)
    return fail(Code::NoIntegerForm, "its stride is {}x{}, but the MCE supports only 2x2", conv.stride()[0],
                conv.stride()[1]);
  if (!conv.weight()->isConstant() || !conv.bias()->isConstant())
    return fail(Code::NoIntegerForm, "its weights are not constant");
  if (conv.weight()->dtype() != DType::Int8)
    return fail(Code::NoIntegerForm, "its weights are {}, not int8", dtypeName(conv.weight()->dtype()));
  const ir::Ints& outer = conv.outPad();
  if (std::any_of(outer.begin(), outer.end(), [](int64_t pad) { return pad > 0; }))
    return fail(Code::NoIntegerForm, "it produces rows or columns that no input reaches");
  const ir::Value& weight = *conv.weight();
  const int64_t outputs = weight.dim(0), kh = weight.dim(1), kw = weight.dim(2), inputs = weight.dim(3);
  const int64_t height = filterSize(kh), width = filterSize(kw);
  const bool perChannel = rescale.perChannel();
  Operation op;
  op.op = Operator::TransposeConvolution;
  op.weights = {{size32(height), size32(width), size32(inputs), size32(outputs)},
                DataType::S8,
                DataFormat::Hwio,
                {static_cast<int32_t>(valueOf(conv.weightZp())), ratiosOf(rescale), {}}};
  op.bias = {{1, 1, 1, size32(outputs)}, DataType::S32, DataFormat::Nhwc, {0, ratiosOf(rescale), {}}};
  if (perChannel) op.weights.quantization.dim = op.bias.quantization.dim = 3;
  op.stride = {2, 2};
  op.padding = {size32(-outer[0]), size32(-outer[1] + height - kh), size32(-outer[2]),
                size32(-outer[3] + width - kw)};
  op.outputQuantization = {static_cast<int32_t>(valueOf(rescale.outputZp())), {1.0F}, {}};
  const auto zero = static_cast<uint8_t>(static_cast<int8_t>(op.weights.quantization.zeroPoint));
  std::vector<uint8_t> bytes(elements(op.weights.shape), zero);
  for (int64_t o = 0; o < outputs; ++o) {
    for (int64_t y = 0; y < kh; ++y) {
      for (int64_t x = 0; x < kw; ++x) {
        for (int64_t i = 0; i < inputs; ++i) {
          bytes[static_cast<size_t>(((y * width + x) * inputs + i) * outputs + o)] =
              static_cast<uint8_t>(weight.constant().integerAt(((o * kh + y) * kw + x) * inputs + i));
        }
      }
    }
  }
  std::vector<int32_t> biases;
  for (int64_t o = 0; o < outputs; ++o) {
    biases.push_back(
        static_cast<int32_t>(conv.bias()->constant().integerAt(conv.bias()->numElements() == 1 ? 0 : o)));
  }
  CARINA_TRY(const int32_t input, seenAs(node, conv.input(), valueOf(conv.inputZp()), 1.0F));
  define(rescale.output(), append(node, std::move(op), {input}, std::move(bytes), std::move(biases))[0]);
  return {};
}

Status Lowering::checkDoubles(const tosa::Resize& resize) {
  const bool bilinear = resize.mode() == tosa::ResizeMode::BILINEAR;
  const ir::Ints scale = valuesOf(resize.scale()), offset = valuesOf(resize.offset());
  const ir::Value &from = *resize.input(), &to = *resize.output();
  const auto twice = [&](int64_t dim, size_t at) {
    const int64_t inputs = from.dim(dim), outputs = to.dim(dim);
    return (outputs == 2 * inputs || outputs == 2 * inputs - 1) &&
           doubles(inputs, outputs, scale[at], scale[at + 1], offset[at / 2], bilinear);
  };
  if (twice(1, 0) && twice(2, 2)) return {};
  return fail(Code::NoIntegerForm,
              "it resizes {}x{} to {}x{} differently from the MCE, which outputs every element and, between "
              "two, {}",
              from.dim(1), from.dim(2), to.dim(1), to.dim(2), bilinear ? "their mean" : "the first again")
      .withRemedy(bilinear
                      ? "resize to twice the size minus one with align_corners=True, or by nearest neighbour"
                      : "resize to twice the size");
}

/// To twice the size, or one less. The `rescale` of an interpolating resize only divides by its weights.
Status Lowering::resize(const ir::Node& node, const tosa::Resize& resize, const tosa::Rescale* rescale) {
  CARINA_RETURN_IF_ERROR(checkDoubles(resize));
  const bool bilinear = resize.mode() == tosa::ResizeMode::BILINEAR;
  const ir::Ints scale = valuesOf(resize.scale());
  const ir::Value& to = *resize.output();
  const ir::Value* result = resize.output();
  if (rescale != nullptr) {
    const double ratio =
        static_cast<double>(ratiosOf(*rescale)[0]) * static_cast<double>(scale[0] * scale[2]);
    if (rescale->perChannel() || std::abs(ratio - 1) > 1e-5 || valueOf(rescale->outputZp()) != 0 ||
        rescale->outputUnsigned()) {
      return fail(Code::NoIntegerForm, "its result is requantized");
    }
    result = rescale->output();
  }
  CARINA_TRY(const int32_t tensor, tensorOf(resize.input()));
  Operation op;
  op.op = Operator::Resize;
  op.resize = bilinear ? ResizeAlgorithm::Bilinear : ResizeAlgorithm::NearestNeighbour;
  op.newShape = {1, size32(to.dim(1)), size32(to.dim(2)), info(tensor).shape[3]};
  op.outputQuantization = info(tensor).quantization;
  define(result, append(node, op, {tensor})[0]);
  return {};
}

/// Recognizes tables as functions of MCE and PLE by their results.
Status Lowering::table(const ir::Node& node, const tosa::Table& table) {
  if (table.input1()->dtype() != DType::Int8 || !table.table()->isConstant() ||
      table.table()->numElements() != 256)
    return fail(Code::NoIntegerForm, "it looks up {} values", dtypeName(table.input1()->dtype()));
  std::array<int32_t, 256> results{};
  for (size_t i = 0; i < 256; ++i)
    results[i] = static_cast<int32_t>(table.table()->constant().integerAt(static_cast<int64_t>(i)));
  Operation op;
  if (const auto leaky = fitLeaky(results)) {
    CARINA_TRY(const int32_t input,
               seenAs(node, table.input1(), leaky->zeroPoint, static_cast<float>(leaky->ratio)));
    op.op = Operator::LeakyRelu;
    op.alpha = static_cast<float>(leaky->alpha);
    op.outputQuantization = {leaky->outputZeroPoint, {1.0F}, {}};
    define(table.output(), append(node, op, {input})[0]);
    return {};
  }
  if (const auto line = fitClampedLine(results)) return clampedLine(node, table, *line);
  const auto smooth = fitSmooth(results);
  if (!smooth) {
    if (const auto gated = fitGated(results)) return gatedLine(node, table, *gated, results);
    return fail(Code::NoIntegerForm,
                "its table is not a function that MCE and PLE compute: a clamped line, leaky ReLU, sigmoid, "
                "tanh, hardswish, swish")
        .withRemedy("use one of these in the network");
  }
  CARINA_TRY(const int32_t input,
             seenAs(node, table.input1(), smooth->zeroPoint, static_cast<float>(smooth->scale)));
  op.op = smooth->tanh ? Operator::Tanh : Operator::Sigmoid;
  const int32_t native = append(node, op, {input})[0];
  const Quantization before{smooth->tanh ? 0 : -128, {static_cast<float>(smooth->ratio)}, {}};
  const Quantization after{smooth->outputZeroPoint, {1.0F}, {}};
  constexpr double kSame = 1e-3;
  if (before.zeroPoint == after.zeroPoint && std::abs(smooth->ratio - 1) < kSame) {
    define(table.output(), native);
    return {};
  }
  Operation seen;
  seen.op = Operator::ReinterpretQuantization;
  seen.outputQuantization = before;
  Operation moved;
  moved.op = Operator::Requantize;
  moved.outputQuantization = after;
  define(table.output(), append(node, moved, append(node, seen, {native}))[0]);
  return {};
}

/// The factor by which a depthwise filter over an 8x8 map multiplies the mean, if all its weights are equal
/// and it has no bias; at most 1, so that the codes of the mean are fine enough.
std::optional<double> Lowering::ratioOfMean(const ConvolutionNode& conv, const tosa::Rescale& rescale) {
  constexpr int64_t kSide = 8;
  if (conv.input->dim(1) != kSide || conv.input->dim(2) != kSide) return std::nullopt;
  const Tensor &weights = conv.weight->constant(), &biases = conv.bias->constant();
  const int64_t weight = weights.integerAt(0);
  for (int64_t i = 0; i < weights.numElements(); ++i) {
    if (weights.integerAt(i) != weight) return std::nullopt;
  }
  for (int64_t i = 0; i < biases.numElements(); ++i) {
    if (biases.integerAt(i) != 0) return std::nullopt;
  }
  const double ratio = static_cast<double>(weight - valueOf(conv.weightZp)) * kSide * kSide *
                       static_cast<double>(ratiosOf(rescale)[0]);
  constexpr double kRounding = 1e-4;  // of multipliers
  if (ratio <= 0 || ratio > 1 + kRounding) return std::nullopt;
  return ratio > 1 - kRounding ? 1 : ratio;
}

/// The PLE's mean, and a requantization if the results have another scale or zero point.
Status Lowering::meanOfMap(const ir::Node& node, const ConvolutionNode& conv, const tosa::Rescale& rescale,
                           double ratio) {
  CARINA_TRY(int32_t value, seenAs(node, conv.input, valueOf(conv.inputZp), static_cast<float>(ratio)));
  Operation mean;
  mean.op = Operator::MeanXy;
  value = append(node, mean, {value})[0];
  Operation moved;
  moved.op = Operator::Requantize;
  moved.outputQuantization = {static_cast<int32_t>(valueOf(rescale.outputZp())), {1.0F}, {}};
  if (info(value).quantization != moved.outputQuantization) value = append(node, moved, {value})[0];
  define(rescale.output(), value);
  return {};
}

/// Whether the PLE has a kernel for it.
bool Lowering::averages(const tosa::AvgPool2d& pool) const {
  const ir::Ints &kernel = pool.kernel(), &stride = pool.stride(), &pad = pool.pad();
  const bool unpadded = std::all_of(pad.begin(), pad.end(), [](int64_t p) { return p == 0; });
  const bool whole = kernel[0] == pool.input()->dim(1) && kernel[1] == pool.input()->dim(2);
  if (whole && unpadded && kernel[0] == kernel[1] && (kernel[0] == 7 || kernel[0] == 8)) return true;
  return kernel == ir::Ints{3, 3} && stride == ir::Ints{1, 1} && pad == ir::Ints{1, 1, 1, 1};
}

/// A depthwise convolution with weights of 1.
Status Lowering::averageByFilter(const ir::Node& node, const tosa::AvgPool2d& pool) {
  const ir::Ints &kernel = pool.kernel(), &stride = pool.stride(), &pad = pool.pad();
  if (std::any_of(pad.begin(), pad.end(), [](int64_t p) { return p != 0; })) {
    return fail(Code::NoIntegerForm,
                "its windows of {}x{} extend beyond the edge, where they have fewer elements", kernel[0],
                kernel[1])
        .withRemedy("pool without padding, or 3x3 with padding of 1 and stride 1");
  }
  const int64_t size = filterSize(std::max(kernel[0], kernel[1]));
  if (size > 7) {
    return fail(Code::NoIntegerForm, "its window of {}x{} exceeds 7x7", kernel[0], kernel[1])
        .withRemedy("pool in two steps");
  }
  const bool single = pool.output()->dim(1) == 1 && pool.output()->dim(2) == 1;
  const int64_t channels = pool.input()->dim(3);
  CARINA_TRY(const int32_t input, seenAs(node, pool.input(), valueOf(pool.inputZp()), 1.0F));
  Operation op;
  op.op = Operator::DepthwiseConvolution;
  op.weights = {{size32(size), size32(size), size32(channels), 1},
                DataType::S8,
                DataFormat::Hwim,
                {0, {static_cast<float>(1.0 / static_cast<double>(kernel[0] * kernel[1]))}, {}}};
  addZeroBias(op, size32(channels));
  op.stride = single ? Extent{1, 1} : Extent{size32(stride[1]), size32(stride[0])};
  op.padding = {0, size32(size - kernel[0]), 0, size32(size - kernel[1])};
  op.outputQuantization = {static_cast<int32_t>(valueOf(pool.outputZp())), {1.0F}, {}};
  std::vector<uint8_t> weights(elements(op.weights.shape), 0);
  for (int64_t y = 0; y < kernel[0]; ++y) {
    for (int64_t x = 0; x < kernel[1]; ++x) {
      for (int64_t c = 0; c < channels; ++c) weights[static_cast<size_t>((y * size + x) * channels + c)] = 1;
    }
  }
  const int32_t made = append(node, std::move(op), {input}, std::move(weights),
                              std::vector<int32_t>(static_cast<size_t>(channels), 0))[0];
  if (info(made).shape[1] != pool.output()->dim(1) || info(made).shape[2] != pool.output()->dim(2))
    return fail(Code::NoIntegerForm, "its windows leave rows or columns of the input unused");
  define(pool.output(), made);
  return {};
}

/// RESHAPE, TRANSPOSE, RESHAPE between maps: channels that are permuted (channel shuffle), moved to a 2x2
/// square (pixel shuffle), or moved out of one (pixel unshuffle). Each is a convolution with one weight per
/// output.
Status Lowering::moveByFilter(const ir::Node& node, const tosa::Reshape& last) {
  const auto middle = ir::producerAs<tosa::Transpose>(last.input1());
  const auto first = middle ? ir::producerAs<tosa::Reshape>(middle.input1()) : tosa::Reshape(nullptr);
  if (!first || first.input1()->rank() != 4 || last.output()->rank() != 4 || first.input1()->dim(0) != 1 ||
      last.output()->dim(0) != 1) {
    return fail(Code::NoIntegerForm, "a tensor has {} dimensions, an Ethos-N supports four",
                last.input1()->rank());
  }
  const carina::Shape &from = first.input1()->shape(), &to = last.output()->shape(),
                      &split = middle.input1()->shape();
  const int64_t up = to[1] == 2 * from[1] && to[2] == 2 * from[2] ? 2 : 1;
  const int64_t down = from[1] == 2 * to[1] && from[2] == 2 * to[2] ? 2 : 1;
  if (to[1] * down != from[1] * up || to[2] * down != from[2] * up)
    return fail(Code::NoIntegerForm, "it moves elements by reshaping {} to {} dimensions and back",
                from.size(), split.size());
  // Strides of the transposed tensor in the input, by its dimensions.
  std::vector<int64_t> strides(split.size(), 1), moved, sizes;
  for (size_t d = split.size(); d-- > 1;) strides[d - 1] = strides[d] * split[d];
  for (int64_t axis : middle.perms()) {
    moved.push_back(strides[static_cast<size_t>(axis)]);
    sizes.push_back(split[static_cast<size_t>(axis)]);
  }
  const int64_t taps = up * up * down * down, outputs = to[3], inputs = from[3];
  std::vector<int64_t> source(static_cast<size_t>(taps * outputs), -1);  // channel, by tap and output
  std::vector<int64_t> index(sizes.size(), 0);
  int64_t at = 0;
  for (int64_t flat = 0; flat < numElements(to); ++flat) {
    const int64_t o = flat % outputs, x = flat / outputs % to[2], y = flat / outputs / to[2];
    const int64_t c = at % inputs, fromX = at / inputs % from[2], fromY = at / inputs / from[2];
    const int64_t tap = up == 2 ? y % 2 * 2 + x % 2 : down == 2 ? fromY % 2 * 2 + fromX % 2 : 0;
    const bool here = y / up == fromY / down && x / up == fromX / down;
    // When moved out of a square, an output has one tap: the others have no channel.
    int64_t& known = source[static_cast<size_t>(tap * outputs + o)];
    if (!here || (known >= 0 && known != c))
      return fail(Code::NoIntegerForm, "it moves elements beyond a 2x2 square");
    known = c;
    for (size_t d = sizes.size(); d-- > 0;) {
      at += moved[d];
      if (++index[d] < sizes[d]) break;
      at -= moved[d] * sizes[d];
      index[d] = 0;
    }
  }
  CARINA_TRY(const int32_t tensor, tensorOf(first.input1()));
  CARINA_TRY(const int32_t input, seenAs(node, first.input1(), info(tensor).quantization.zeroPoint, 1.0F));
  Operation op;
  const int64_t edge = up * down;
  op.op = up == 2 ? Operator::TransposeConvolution : Operator::Convolution;
  op.weights = {{size32(edge), size32(edge), size32(inputs), size32(outputs)},
                DataType::S8,
                DataFormat::Hwio,
                {0, {kHalf}, {}}};
  addZeroBias(op, size32(outputs));
  op.stride = {size32(edge), size32(edge)};
  op.outputQuantization = {info(tensor).quantization.zeroPoint, {1.0F}, {}};
  std::vector<uint8_t> weights(elements(op.weights.shape), 0);
  for (int64_t tap = 0; tap < taps; ++tap) {
    for (int64_t o = 0; o < outputs; ++o) {
      const int64_t c = source[static_cast<size_t>(tap * outputs + o)];
      if (c >= 0) weights[static_cast<size_t>((tap * inputs + c) * outputs + o)] = kOne;
    }
  }
  define(last.output(), append(node, std::move(op), {input}, std::move(weights),
                               std::vector<int32_t>(static_cast<size_t>(outputs), 0))[0]);
  return {};
}

}  // namespace carina::ethosn
