// SPDX-License-Identifier: Apache-2.0
// Products, sums with constants, and other linear functions per channel.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "ethosn/lower/lowering.hpp"

namespace carina::ethosn {
namespace {

constexpr int64_t kMaxOfProduct = 32767;

CodeRange rangeOf(const TensorInfo& info) {
  const int64_t zero = info.quantization.zeroPoint;
  return info.type == DataType::S8 ? CodeRange{-128 - zero, 127 - zero} : CodeRange{-zero, 255 - zero};
}

CodeRange operator*(const CodeRange& a, const CodeRange& b) {
  const auto [low, high] = std::minmax({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
  return {std::min<int64_t>(low, 0), std::max<int64_t>(high, 0)};
}

/// Codes of the PLE's result per unit of product, so that all products fit.
double coarseness(const CodeRange& products) {
  constexpr double kCodes = 254;
  return kCodes / static_cast<double>(products.high - products.low);
}

/// Results of the PLE are truncated, by half a code on average: one of their codes must not span many of the
/// result.
constexpr double kMaxCodesPerProduct = 4;

/// Whether the gated line's results, as MCE and PLE compute them with a gate of `open` codes, are within 3
/// codes of the table.
bool gateIsFineEnough(std::span<const int32_t, 256> table, const GatedLine& gated, const CodeRange& products,
                      int32_t open) {
  constexpr double kMost = 3;
  const double coarse = coarseness(products), slope = gated.ratio / open / coarse;
  for (int32_t code = -128; code <= 127; ++code) {
    const double gate = std::nearbyint(open * gated.gateAt(code));
    const double kept = std::floor(gate * (code - gated.zeroPoint) * coarse);
    const double result =
        std::clamp(std::floor((kept + 0.5) * slope + gated.outputZeroPoint + 0.5), -128.0, 127.0);
    if (std::abs(result - table[static_cast<size_t>(code + 128)]) > kMost) return false;
  }
  return true;
}

/// Whether the constant has one value per channel of the tensor, or one for all.
bool isByChannel(const ir::Value* constant, const ir::Value* tensor) {
  const int64_t count = constant->numElements();
  return count == 1 || (constant->shape().back() == count && tensor->shape().back() == count);
}

}  // namespace

/// A depthwise convolution with one weight per channel, whose biases are the offsets.
int32_t Lowering::line(const ir::Node& node, int32_t tensor, const LineTo& to) {
  constexpr int32_t kWeight = 127;  // so that biases can express fractions of a code
  const uint32_t channels = info(tensor).shape[3];
  const double unit = std::abs(to.slope) / kWeight;
  Operation op;
  op.op = Operator::DepthwiseConvolution;
  op.weights = {{1, 1, channels, 1}, DataType::S8, DataFormat::Hwim, {0, {}, {}}};
  op.weights.quantization.scales = {static_cast<float>(unit) / info(tensor).quantization.scales[0]};
  op.bias = {{1, 1, 1, channels},
             DataType::S32,
             DataFormat::Nhwc,
             {0, {info(tensor).quantization.scales[0] * op.weights.quantization.scales[0]}, {}}};
  op.stride = {1, 1};
  op.outputQuantization = {to.zeroPoint, {1.0F}, {}};
  std::vector<int32_t> biases;
  for (uint32_t c = 0; c < channels; ++c) {
    const double offset = to.offsets[to.offsets.size() == 1 ? 0 : c];
    biases.push_back(static_cast<int32_t>(std::clamp(std::nearbyint(offset / unit), -1e9, 1e9)));
  }
  const auto weight = static_cast<uint8_t>(to.slope < 0 ? -kWeight : kWeight);
  return append(node, std::move(op), {tensor}, std::vector<uint8_t>(channels, weight), std::move(biases))[0];
}

Status Lowering::clampedLine(const ir::Node& node, const tosa::Table& table, const ClampedLine& fit) {
  CARINA_TRY(const int32_t input, seenAs(node, table.input1(), 0, 1.0F));
  int32_t made = line(node, input, {fit.slope, {fit.offset}, 0});
  if (fit.low > -128 || fit.high < 127) {
    Operation op;
    op.op = Operator::Relu;
    op.lower = fit.low;
    op.upper = fit.high;
    made = append(node, op, {made})[0];
  }
  define(table.output(), made);
  return {};
}

Status Lowering::sumWithConstant(const ir::Node& node, const WideOperand& input, int sign,
                                 const WideOperand& constant, int constantSign,
                                 const tosa::Rescale& rescale) {
  if (!isByChannel(constant.codes, input.codes) || constant.codes->rank() > input.codes->rank())
    return fail(Code::NoIntegerForm, "it adds a constant that is not one value per channel")
        .withRemedy("add one value, or one per channel");
  const double to = static_cast<double>(ratiosOf(rescale)[0]);
  CARINA_TRY(const int32_t tensor, seenAs(node, input.codes, input.zeroPoint, 1.0F));
  LineTo sum{input.ratio * to * sign, constant.values(), static_cast<int32_t>(valueOf(rescale.outputZp()))};
  for (double& offset : sum.offsets) offset *= to * constantSign;
  define(rescale.output(), line(node, tensor, sum));
  return {};
}

/// A depthwise convolution whose weights are the constant's codes.
Status Lowering::productOfConstant(const ir::Node& node, const WideOperand& input,
                                   const WideOperand& constant, const tosa::Rescale& rescale) {
  if (!isByChannel(constant.codes, input.codes) || constant.codes->rank() > input.codes->rank())
    return fail(Code::NoIntegerForm, "it multiplies by a constant that is not one value per channel")
        .withRemedy("multiply by one value, or one per channel");
  const std::vector<double> factors = constant.values();
  CARINA_TRY(const int32_t tensor, seenAs(node, input.codes, input.zeroPoint, 1.0F));
  const auto zeroPoint = static_cast<int32_t>(valueOf(rescale.outputZp()));
  const bool one = std::equal(factors.begin() + 1, factors.end(), factors.begin());
  if (one && factors[0] != 0) {
    const double slope = input.ratio * static_cast<double>(ratiosOf(rescale)[0]);
    define(rescale.output(), line(node, tensor, {slope * factors[0], {0}, zeroPoint}));
    return {};
  }
  const ir::Ints codes = valuesOf(constant.codes);
  const int64_t zero = constant.zeroPoint;
  if (std::any_of(codes.begin(), codes.end(), [](int64_t code) { return code < -128 || code > 127; }))
    return fail(Code::NoIntegerForm, "it multiplies by per-channel constants of more than 8 bits");
  const auto ratio =
      static_cast<float>(input.ratio * constant.ratio * static_cast<double>(ratiosOf(rescale)[0]));
  const uint32_t channels = info(tensor).shape[3];
  Operation op;
  op.op = Operator::DepthwiseConvolution;
  op.weights = {
      {1, 1, channels, 1}, DataType::S8, DataFormat::Hwim, {static_cast<int32_t>(zero), {ratio}, {}}};
  op.bias = {{1, 1, 1, channels}, DataType::S32, DataFormat::Nhwc, {0, {ratio}, {}}};
  op.stride = {1, 1};
  op.outputQuantization = {zeroPoint, {1.0F}, {}};
  std::vector<uint8_t> weights;
  for (uint32_t c = 0; c < channels; ++c)
    weights.push_back(static_cast<uint8_t>(codes[codes.size() == 1 ? 0 : c]));
  define(rescale.output(),
         append(node, std::move(op), {tensor}, std::move(weights), std::vector<int32_t>(channels, 0))[0]);
  return {};
}

/// Repeats one plane for every channel.
int32_t Lowering::planeOverChannels(const ir::Node& node, int32_t tensor, uint32_t channels) {
  const Quantization same = info(tensor).quantization;
  Operation op;
  op.op = Operator::Convolution;
  op.weights = {{1, 1, 1, channels}, DataType::S8, DataFormat::Hwio, {0, {kHalf}, {}}};
  op.bias = {{1, 1, 1, channels}, DataType::S32, DataFormat::Nhwc, {0, {same.scales[0] * kHalf}, {}}};
  op.stride = {1, 1};
  op.outputQuantization = same;
  return append(node, std::move(op), {tensor}, std::vector<uint8_t>(channels, kOne),
                std::vector<int32_t>(channels, 0))[0];
}

/// Stretches one pixel, one plane or one value; other tensors remain unchanged.
int32_t Lowering::stretched(const ir::Node& node, int32_t tensor, const Shape& whole) {
  const bool pixel = info(tensor).shape[1] == 1 && info(tensor).shape[2] == 1;
  if (info(tensor).shape[3] == 1 && whole[3] > 1) tensor = planeOverChannels(node, tensor, whole[3]);
  return pixel ? pixelOverMap(node, tensor, whole[1], whole[2]) : tensor;
}

Status Lowering::stretchToEachOther(const ir::Node& node, std::string_view verb, int32_t& a, int32_t& b) {
  Shape whole = info(a).shape;
  for (size_t i = 0; i < whole.size(); ++i) whole[i] = std::max(whole[i], info(b).shape[i]);
  const auto text = [this](int32_t tensor) { return fmt::format("{}", fmt::join(info(tensor).shape, "x")); };
  const std::string shapes = fmt::format("it {} {} and {}", verb, text(a), text(b));
  if (whole[0] > 1)
    return fail(Code::NoIntegerForm, "{}: an Ethos-N supports only a batch size of 1", shapes);
  a = stretched(node, a, whole);
  b = stretched(node, b, whole);
  if (info(a).shape == info(b).shape) return {};
  return fail(Code::NoIntegerForm,
              "{}: an operand must be a scalar, a pixel, a plane, or as large as the other", shapes);
}

/// Spreads one pixel over a whole map: by a filter of ones up to 7x7, then by doubling as often as needed.
int32_t Lowering::pixelOverMap(const ir::Node& node, int32_t tensor, uint32_t height, uint32_t width) {
  constexpr uint32_t kLargest = 7;
  std::vector<std::pair<uint32_t, uint32_t>> sizes;
  while (height > kLargest || width > kLargest) {
    sizes.emplace_back(height, width);
    height = (height + 1) / 2;
    width = (width + 1) / 2;
  }
  const Quantization same = info(tensor).quantization;
  const uint32_t channels = info(tensor).shape[3];
  if (height > 1 || width > 1) {
    const auto size = static_cast<uint32_t>(filterSize(std::max(height, width)));
    Operation op;
    op.op = Operator::DepthwiseConvolution;
    op.weights = {{size, size, channels, 1}, DataType::S8, DataFormat::Hwim, {0, {kHalf}, {}}};
    op.bias = {{1, 1, 1, channels}, DataType::S32, DataFormat::Nhwc, {0, {same.scales[0] * kHalf}, {}}};
    op.stride = {1, 1};
    op.padding = {height - 1, size - 1, width - 1, size - 1};
    op.outputQuantization = same;
    tensor = append(node, std::move(op), {tensor}, std::vector<uint8_t>(size_t{size} * size * channels, kOne),
                    std::vector<int32_t>(channels, 0))[0];
  }
  for (size_t i = sizes.size(); i-- > 0;) {
    Operation op;
    op.op = Operator::Resize;
    op.resize = ResizeAlgorithm::NearestNeighbour;
    op.newShape = {1, sizes[i].first, sizes[i].second, channels};
    op.outputQuantization = same;
    tensor = append(node, op, {tensor})[0];
  }
  return tensor;
}

/// The PLE multiplies differences of codes in 16 bits, truncates when it shifts, and wraps: the result gets a
/// scale that holds all `products`. Truncation removes half a code on average, which the requantization to
/// `scale` codes per product adds back.
int32_t Lowering::multiplied(const ir::Node& node, int32_t a, int32_t b, const CodeRange& products,
                             double scale, int32_t zeroPoint) {
  constexpr double kCutOff = 0.5;
  const double coarse = coarseness(products);
  const double lowest = std::floor(static_cast<double>(products.low) * coarse);
  Operation op;
  op.op = Operator::Multiplication;
  const float unit = info(a).quantization.scales[0] * info(b).quantization.scales[0];
  op.outputQuantization = {
      -128 - static_cast<int32_t>(lowest), {static_cast<float>(static_cast<double>(unit) / coarse)}, {}};
  const double slope = scale / coarse;
  return line(node, append(node, op, {a, b})[0], {slope, {kCutOff * slope}, zeroPoint});
}

/// An operand is reduced in bits if products could exceed 16; an operand of one pixel is stretched.
Status Lowering::product(const ir::Node& node, const tosa::Mul& mul, const tosa::Rescale& rescale) {
  const auto first = wideOperandOf(mul.input1()), second = wideOperandOf(mul.input2());
  if (rescale.perChannel() || valueOf(mul.shift()) != 0 || !first || !second)
    return fail(Code::NoIntegerForm, "it does not multiply two requantized tensors");
  if (second->isConstant()) return productOfConstant(node, *first, *second, rescale);
  if (first->isConstant()) return productOfConstant(node, *second, *first, rescale);
  CARINA_TRY(int32_t a, seenAs(node, first->codes, first->zeroPoint, 1.0F));
  CARINA_TRY(int32_t b, seenAs(node, second->codes, second->zeroPoint, 1.0F));
  if (info(a).type != DataType::S8 || info(b).type != DataType::S8)
    return fail(Code::NoIntegerForm, "it multiplies unsigned codes");
  const bool planes = channelsToTheEnd(node, a, b);
  CARINA_RETURN_IF_ERROR(stretchToEachOther(node, "multiplies", a, b));
  double scale = first->ratio * second->ratio * static_cast<double>(ratiosOf(rescale)[0]);
  CodeRange ofA = rangeOf(info(a)), ofB = rangeOf(info(b));
  if (ofA.furthest() * ofB.furthest() > kMaxOfProduct) {
    const bool takesA = ofA.furthest() > ofB.furthest();
    int32_t& wide = takesA ? a : b;
    CodeRange &less = takesA ? ofA : ofB, &other = takesA ? ofB : ofA;
    const int64_t most = kMaxOfProduct / other.furthest() - 1;
    const double fewer = static_cast<double>(most) / static_cast<double>(less.furthest());
    const auto at = [fewer](int64_t code) {
      return static_cast<int64_t>(std::nearbyint(static_cast<double>(code) * fewer));
    };
    less = {at(less.low), at(less.high)};
    wide = line(node, wide, {fewer, {0}, -static_cast<int32_t>((less.low + less.high) / 2)});
    scale /= fewer;
  }
  const CodeRange products = ofA * ofB;
  if (const double unit = scale / coarseness(products); unit > kMaxCodesPerProduct) {
    return fail(Code::NoIntegerForm,
                "its results saturate: the PLE keeps 8 bits of the range of all products, in steps of {:.1f} "
                "codes here, more than {}",
                unit, kMaxCodesPerProduct)
        .withRemedy("give the result a larger scale");
  }
  int32_t made = multiplied(node, a, b, products, scale, static_cast<int32_t>(valueOf(rescale.outputZp())));
  if (planes) {
    Operation back;
    back.op = Operator::Transpose;
    back.permutation = {0, 3, 1, 2};
    made = append(node, back, {made})[0];
  }
  define(rescale.output(), made);
  return {};
}

/// If a value per plane multiplies planes (channels first), converts both to channels last. Returns whether
/// it did.
bool Lowering::channelsToTheEnd(const ir::Node& node, int32_t& a, int32_t& b) {
  for (auto [number, planes] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    const Shape whole = info(*planes).shape;
    if (info(*number).shape != Shape{1, whole[1], 1, 1} || whole[1] == 1 || whole[2] * whole[3] == 1)
      continue;
    Operation flat, last;
    flat.op = Operator::Reshape;
    flat.newShape = {1, 1, 1, whole[1]};
    *number = append(node, flat, {*number})[0];
    last.op = Operator::Transpose;
    last.permutation = {0, 2, 3, 1};
    *planes = append(node, last, {*planes})[0];
    return true;
  }
  return false;
}

/// The gate has 7 bits, so that products fit 16.
Status Lowering::gatedLine(const ir::Node& node, const tosa::Table& table, const GatedLine& gated,
                           std::span<const int32_t, 256> results) {
  constexpr int32_t kOpen = 127, kShut = -64;
  CodeRange products;
  for (int32_t code = -128; code <= 127; ++code) {
    const auto product =
        static_cast<int64_t>(std::nearbyint(kOpen * gated.gateAt(code) * (code - gated.zeroPoint)));
    products.low = std::min(products.low, product - kOpen);
    products.high = std::max(products.high, product + kOpen);
  }
  if (!gateIsFineEnough(results, gated, products, kOpen))
    return fail(Code::NoIntegerForm,
                "its table is a gate whose results saturate and need finer products than the PLE computes")
        .withRemedy("give the result a larger scale");
  CARINA_TRY(const int32_t input, seenAs(node, table.input1(), gated.zeroPoint, 1.0F));
  int32_t gate = -1;
  if (gated.smooth) {
    CARINA_TRY(const int32_t scaled,
               seenAs(node, table.input1(), gated.zeroPoint, static_cast<float>(gated.gate)));
    Operation sigmoid;
    sigmoid.op = Operator::Sigmoid;
    gate = line(node, append(node, sigmoid, {scaled})[0], {kOpen / 256.0, {0}, kShut});
  } else {
    Operation clamp;
    clamp.op = Operator::Relu;
    clamp.lower = kShut;
    clamp.upper = kShut + kOpen;
    gate = append(node, clamp, {line(node, input, {kOpen * gated.gate, {kOpen * 0.5}, kShut})})[0];
  }
  // The operations that follow see both operands as codes of scale 1.
  Operation plain;
  plain.op = Operator::ReinterpretQuantization;
  plain.outputQuantization = {kShut, {1.0F}, {}};
  gate = append(node, plain, {gate})[0];
  define(table.output(), multiplied(node, input, gate, products, gated.ratio / kOpen, gated.outputZeroPoint));
  return {};
}

}  // namespace carina::ethosn
