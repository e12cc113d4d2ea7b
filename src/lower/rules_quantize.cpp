// SPDX-License-Identifier: Apache-2.0
// Quantize, dequantize and clamps: these determine the scale of codes and convert pending arithmetic to codes
// (RESCALE, TABLE, CLAMP).
#include <algorithm>
#include <cmath>
#include <limits>

#include "aten/ops.hpp"
#include "lower/fine_table.hpp"
#include "lower/quantize_rules.hpp"
#include "lower/rules.hpp"
#include "lower/wide.hpp"

namespace carina::lower {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Limits {
  double low = -kInfinity, high = kInfinity;
};

double numberOr(const ir::Attribute& value, double otherwise) {
  return std::holds_alternative<std::monostate>(value) ? otherwise : ir::scalarReal(value);
}

std::optional<Limits> clampLimits(const ir::Node& node) {
  if (ir::isa<aten::Relu>(&node)) return Limits{0, kInfinity};
  if (ir::isa<aten::Relu6>(&node)) return Limits{0, 6};
  if (const auto op = ir::dynCast<aten::Hardtanh>(&node))
    return Limits{numberOr(op.minVal(), -1), numberOr(op.maxVal(), 1)};
  if (const auto op = ir::dynCast<aten::Clamp>(&node)) {
    return Limits{numberOr(op.min(), -kInfinity), numberOr(op.max(), kInfinity)};
  }
  if (const auto op = ir::dynCast<aten::ClampMin>(&node))
    return Limits{numberOr(op.min(), -kInfinity), kInfinity};
  if (const auto op = ir::dynCast<aten::ClampMax>(&node))
    return Limits{-kInfinity, numberOr(op.max(), kInfinity)};
  return std::nullopt;
}

Status lowerQuantize(Lowering& lowering, const ir::Node& node) {
  const aten::QuantizePerTensor op = ir::cast<aten::QuantizePerTensor>(&node);
  const Codes codes = *quantizeCodes(node);
  if (codes.dtype != DType::Int8 && codes.dtype != DType::Int16 && codes.dtype != DType::Int32) {
    return fail(Code::UnusableQuantization, "a quantize node produces {}, which is not supported on the NPU",
                dtypeName(codes.dtype))
        .withRemedy("quantize activations to int8 or int16");
  }
  if (!(codes.scale > 0) || !std::isfinite(codes.scale))
    return fail(Code::UnusableQuantization, "a quantize node has scale {}", codes.scale)
        .withRemedy("scales must be positive and finite: quantize the network again");
  CARINA_TRY(const QuantizedValue real, lowering.quantizedValue(op.input()));
  CARINA_TRY(StoredTensor data, lowering.quantized(real, codes));
  lowering.nameAfter(*op.input(), *data.value);
  lowering.define(op.output(), std::move(data));
  return {};
}

Status lowerDequantize(Lowering& lowering, const ir::Node& node) {
  const aten::DequantizePerTensor op = ir::cast<aten::DequantizePerTensor>(&node);
  if (auto codes = lowering.lessHalf(op.input())) {
    lowering.define(
        op.output(),
        QuantizedValue{std::move(*codes), {op.scale()}, op.zeroPoint() - 128, false, {}, {}, {}, {}});
    return {};
  }
  CARINA_TRY(StoredTensor data, lowering.integers(op.input()));
  QuantizedValue real{std::move(data), {op.scale()}, op.zeroPoint(), false, {}, {}, {}, {}};
  const Codes codes{op.scale(), op.zeroPoint(), op.quantMin(), op.quantMax(), op.input()->dtype()};
  if (isWide(codes)) {
    const auto maker = ir::producerAs<aten::QuantizePerTensor>(op.input());
    const bool limited = maker && maker.quantMin() >= codes.min && maker.quantMax() <= codes.max;
    keepWithin(lowering.emit(), real, {codes.min, codes.max}, limited);
  }
  lowering.define(op.output(), std::move(real));
  return {};
}

/// CLAMP does not accept int32: uses MAXIMUM and MINIMUM with a constant.
Status clampNumbers(Lowering& lowering, const ir::Node& node, StoredTensor data, const Limits& limits) {
  Emitter& emit = lowering.emit();
  const auto limited = [&](Binary op, double limit) {
    const auto low = static_cast<double>(integerMin(DType::Int32)),
               high = static_cast<double>(integerMax(DType::Int32));
    ir::Value* number = emit.scalar(DType::Int32, static_cast<int64_t>(std::clamp(limit, low, high)));
    data.value = emit.binary(op, data.value, emit.reshape(number, Shape(data.value->shape().size(), 1)));
  };
  if (limits.low > -kInfinity) limited(Binary::Maximum, limits.low);
  if (limits.high < kInfinity) limited(Binary::Minimum, limits.high);
  lowering.define(node.result(), std::move(data));
  return {};
}

Status lowerClamp(Lowering& lowering, const ir::Node& node) {
  const Limits limits = *clampLimits(node);
  const ir::Value* input = node.operands()[0];
  if (!lowering.isFloatValue(input)) {
    CARINA_TRY(const StoredTensor data, lowering.integers(input));
    if (data.dtype() == DType::Int32) return clampNumbers(lowering, node, data, limits);
    if (data.dtype() != DType::Int8 && data.dtype() != DType::Int16) {
      return fail(Code::NoIntegerForm, "clamp is not supported on the NPU for {}", dtypeName(data.dtype()))
          .withRemedy("clamp int8, int16 or float tensors");
    }
    const auto low = static_cast<double>(integerMin(data.dtype())),
               high = static_cast<double>(integerMax(data.dtype()));
    ir::Value* value =
        lowering.emit().clamp(data.value, static_cast<int64_t>(std::clamp(limits.low, low, high)),
                              static_cast<int64_t>(std::clamp(limits.high, low, high)));
    lowering.define(node.result(), StoredTensor{value, data.layout});
    return {};
  }
  CARINA_TRY(QuantizedValue real, lowering.quantizedValue(input));
  // min(max(x, lo), hi), applied to the existing limits.
  const auto limit = [&](double x) { return std::min(std::max(x, limits.low), limits.high); };
  const double low = limit(real.low.value_or(-kInfinity)), high = limit(real.high.value_or(kInfinity));
  if (low > -kInfinity) real.low = low;
  if (high < kInfinity) real.high = high;
  lowering.define(node.result(), std::move(real));
  return {};
}

/// If a code represents a number outside a function's domain, some of the numbers that are rounded to it may
/// be inside (acosh of 1.2, rounded to 0): the mean of the function over these, NaN if there are none.
double meanOfNumbers(const std::function<double(double)>& function, double centre, double width) {
  constexpr int kPoints = 32;
  double sum = 0;
  int count = 0;
  for (int i = 0; i < kPoints; ++i) {
    const double y = function(centre + width * ((i + 0.5) / kPoints - 0.5));
    if (!std::isfinite(y)) continue;
    sum += y;
    ++count;
  }
  return sum / count;
}

/// The factors of codes below and above 0, if that is all that a function of 16-bit codes does: its results,
/// in codes that are not rounded, are within 1/64 of the products. Nothing if one of them is not positive.
std::optional<std::array<double, 2>> factorsAroundZero(const std::function<double(int64_t)>& function) {
  constexpr int64_t kMost = 32767;
  const std::array<double, 2> factors{-function(-kMost) / kMost, function(kMost) / kMost};
  if (!(factors[0] > 0 && factors[1] > 0)) return std::nullopt;
  for (int64_t code = -kMost; code <= kMost; ++code) {
    const double product = factors[code < 0 ? 0 : 1] * static_cast<double>(code);
    if (!(std::abs(function(code) - product) < 0x1p-6)) return std::nullopt;
  }
  return factors;
}

}  // namespace

bool isClampRule(const ir::Node& node) {
  return clampLimits(node).has_value();
}

std::optional<Codes> quantizeCodes(const ir::Node& node) {
  const auto op = ir::dynCast<aten::QuantizePerTensor>(&node);
  if (!op) return std::nullopt;
  return Codes{op.scale(), op.zeroPoint(), op.quantMin(), op.quantMax(), op.dtype()};
}

std::optional<Result<QuantizedConstant>> quantizedConstantOf(const ir::Node& node) {
  if (const auto op = ir::dynCast<aten::DequantizePerTensor>(&node); op && op.input()->isConstant()) {
    return QuantizedConstant{op.input()->constant(), {op.scale()}, {op.zeroPoint()}, -1};
  }
  const auto op = ir::dynCast<aten::DequantizePerChannel>(&node);
  if (!op || !op.input()->isConstant()) return std::nullopt;
  if (!op.scales()->isConstant() || (op.zeroPoints() && !op.zeroPoints()->isConstant())) {
    return fail(Code::UnusableQuantization, "the scales of a per-channel dequantize node are not constant")
        .withRemedy("make them constants of the network");
  }
  const Tensor& codes = op.input()->constant();
  const auto axis = normalizeDim(op.axis(), codes.rank());
  const Tensor& scales = op.scales()->constant();
  if (!axis || scales.numElements() != codes.dim(*axis) ||
      (op.zeroPoints() && op.zeroPoints()->constant().numElements() != scales.numElements())) {
    return fail(Code::UnusableQuantization,
                "per-channel scales of shape {} do not fit a tensor of shape {} along dimension {}",
                shapeText(scales.shape()), shapeText(codes.shape()), op.axis())
        .withRemedy("give one scale for each index of that dimension");
  }
  QuantizedConstant constant{codes, {}, {}, static_cast<int>(*axis)};
  for (int64_t i = 0; i < scales.numElements(); ++i) {
    constant.scales.push_back(scales.realAt(i));
    constant.zeroPoints.push_back(op.zeroPoints() ? op.zeroPoints()->constant().integerAt(i) : 0);
  }
  return constant;
}

Status defineFunction(Lowering& lowering, const ir::Node& node, std::function<double(double)> function) {
  CARINA_TRY(QuantizedValue real, lowering.quantizedValue(node.operands()[0]));
  if (real.accumulator) {
    return fail(Code::NotQuantized, "the input of {} is not quantized", node.opName())
        .withRemedy("insert quantize/dequantize nodes before it (the quantizer does)");
  }
  if (real.low || real.high) {
    const double low = real.low.value_or(-kInfinity), high = real.high.value_or(kInfinity);
    real.functions.append([low, high](double x) { return std::clamp(x, low, high); });
    real.low.reset();
    real.high.reset();
  }
  real.functions.append(std::move(function));
  lowering.define(node.result(), std::move(real));
  return {};
}

/// Rescales one piece of a value with its share of the per-channel scales.
Result<ir::Value*> Lowering::rescaledPart(const QuantizedValue& real, ir::Value* part, size_t firstChannel,
                                          const Codes& codes) {
  // Scales that differ only by rounding do not change 16-bit codes.
  const bool same = !real.accumulator && part->dtype() == codes.dtype && real.scales.size() == 1 &&
                    std::abs(real.scale() / codes.scale - 1) < 0x1p-22 && real.zeroPoint == codes.zeroPoint &&
                    codes.dtype != DType::Int32;
  if (!same) {
    const size_t channels = real.scales.size() == 1 ? 1 : static_cast<size_t>(part->shape().back());
    std::vector<double> factors;
    for (size_t c = 0; c < channels; ++c) {
      factors.push_back(real.scales[real.scales.size() == 1 ? 0 : firstChannel + c] / codes.scale);
    }
    ir::Value* exact = nullptr;
    if (part->dtype() == DType::Int48 && codes.dtype == DType::Int16 && codes.zeroPoint == 0 && real.within) {
      CARINA_TRY(exact, rescaledExactly(emitter_, part, *real.within, factors));
    }
    if (exact) {
      part = exact;
    } else {
      const auto most =
          real.within ? std::optional(static_cast<double>(real.within->magnitude())) : std::nullopt;
      CARINA_TRY(part, emitter_.rescale(part, codes.dtype, real.zeroPoint, codes.zeroPoint, factors, most));
    }
  }
  const int64_t low = std::max(codes.min, real.low ? codes.quantize(*real.low) : codes.min);
  const int64_t high = std::min(codes.max, real.high ? codes.quantize(*real.high) : codes.max);
  // int16 activations are quantized to [-32767, 32767]; saturation at -32768 is not removed.
  const int64_t natural = codes.dtype == DType::Int16 ? -32767 : integerMin(codes.dtype);
  if (codes.dtype == DType::Int32 || (low <= natural && high >= integerMax(codes.dtype))) return part;
  return emitter_.clamp(part, low <= natural ? integerMin(codes.dtype) : low, high);
}

Result<StoredTensor> Lowering::quantized(const QuantizedValue& real, const Codes& codes) {
  if (isWide(codes)) return wideCodes(*this, real, codes);
  if (!real.functions.empty()) return tabled(real, codes);
  if (real.parts.empty()) {
    CARINA_TRY(ir::Value* const value, rescaledPart(real, real.data.value, 0, codes));
    return StoredTensor{value, real.data.layout};
  }
  std::vector<ir::Value*> pieces;
  size_t channel = 0;
  for (ir::Value* part : real.parts) {
    CARINA_TRY(ir::Value* const piece, rescaledPart(real, part, channel, codes));
    pieces.push_back(piece);
    channel += static_cast<size_t>(part->shape().back());
  }
  const auto axis = static_cast<int64_t>(pieces[0]->shape().size()) - 1;
  return StoredTensor{emitter_.concat(pieces, axis), real.data.layout};
}

/// Tabulates the function at every code (int8), or at every 128th with interpolation in between (int16),
/// refined where that would be inaccurate.
Result<StoredTensor> Lowering::tabled(const QuantizedValue& real, const Codes& codes) {
  const DType from = real.data.dtype();
  if (from != codes.dtype || (from != DType::Int8 && from != DType::Int16)) {
    return fail(Code::NoIntegerForm, "a function from {} to {} codes is not supported on the NPU",
                dtypeName(from), dtypeName(codes.dtype))
        .withRemedy("quantize its input and output to the same type, int8 or int16");
  }
  const std::vector<const FunctionChain::Function*> steps = real.functions.inOrder();
  const auto function = [&](double x) {
    for (const auto* step : steps) x = (*step)(x);
    if (real.low) x = std::max(x, *real.low);
    if (real.high) x = std::min(x, *real.high);
    return x;
  };
  const auto exact = [&](int64_t code) {
    const double x =
        (static_cast<float>(code) - static_cast<float>(real.zeroPoint)) * static_cast<float>(real.scale());
    const double y = function(x);
    return std::isnan(y) ? meanOfNumbers(function, x, real.scale()) : y;
  };
  const auto value = [&](int64_t code) { return codes.quantize(exact(code)); };
  if (from == DType::Int8) {
    Tensor table = Tensor::uninitialized(DType::Int8, {256});
    for (int64_t i = 0; i < 256; ++i) table.setIntegerAt(i, value(i - 128));
    return StoredTensor{emitter_.table(real.data.value, std::move(table)), real.data.layout};
  }
  const auto widened = [&](ir::Value* narrow) {
    return emitter_.rescale(narrow, DType::Int32, 0, 0, std::array{1.0});
  };
  const auto unrounded = [&](int64_t code) { return exact(code) / codes.scale; };
  // Products have no zero point, and every code of the type.
  const bool plain = real.zeroPoint == 0 && codes.zeroPoint == 0 && codes.min <= -integerMax(from) &&
                     codes.max == integerMax(from);
  if (const auto factors = plain ? factorsAroundZero(unrounded) : std::nullopt) {
    std::array<ir::Value*, 2> products{};
    for (size_t i = 0; i < 2; ++i) {
      CARINA_TRY(products[i],
                 emitter_.rescale(real.data.value, DType::Int16, 0, 0, std::array{(*factors)[i]}));
      CARINA_TRY(products[i], widened(products[i]));
    }
    const Binary op = (*factors)[0] <= (*factors)[1] ? Binary::Maximum : Binary::Minimum;
    CARINA_TRY(ir::Value* const either, emitter_.rescale(emitter_.binary(op, products[0], products[1]),
                                                         DType::Int16, 0, 0, std::array{1.0}));
    return StoredTensor{either, real.data.layout};
  }
  const FineTable tables = fineTable(value, kTableTolerance);
  CARINA_TRY(ir::Value * result, emitter_.lookUp(real.data.value, tables.table));
  if (tables.pieces.empty()) return StoredTensor{result, real.data.layout};
  if (plain) {
    if (const auto product = productTable(unrounded, kTableTolerance)) {
      CARINA_TRY(ir::Value* const slope, emitter_.lookUp(real.data.value, product->table));
      ir::Value* scaled = emitter_.binary(Binary::Mul, real.data.value, slope);
      CARINA_TRY(result, emitter_.rescale(scaled, DType::Int16, 0, 0, std::array{product->factor}));
      return StoredTensor{result, real.data.layout};
    }
  }
  const size_t rank = result->shape().size();
  CARINA_TRY(ir::Value* const input, widened(real.data.value));
  CARINA_TRY(ir::Value * sum, widened(result));
  for (const TablePiece& piece : tables.pieces) {
    ir::Value* centre = emitter_.reshape(emitter_.scalar(DType::Int32, piece.centre), Shape(rank, 1));
    ir::Value* offset = emitter_.binary(Binary::Sub, input, centre);
    CARINA_TRY(ir::Value* const magnified,
               emitter_.rescale(offset, DType::Int16, 0, 0, std::array{std::ldexp(1.0, piece.shift)}));
    CARINA_TRY(ir::Value* const part, emitter_.lookUp(magnified, piece.table));
    CARINA_TRY(ir::Value* const wide, widened(part));
    sum = emitter_.binary(Binary::Add, sum, wide);
  }
  CARINA_TRY(result, emitter_.rescale(sum, DType::Int16, 0, 0, std::array{1.0}));
  return StoredTensor{result, real.data.layout};
}

void addQuantizeRules(Rules& rules) {
  rules[&aten::QuantizePerTensor::def()] = lowerQuantize;
  rules[&aten::DequantizePerTensor::def()] = lowerDequantize;
  for (const ir::OpDef* def : {&aten::Relu::def(), &aten::Relu6::def(), &aten::Hardtanh::def(),
                               &aten::Clamp::def(), &aten::ClampMin::def(), &aten::ClampMax::def()}) {
    rules[def] = lowerClamp;
  }
}

}  // namespace carina::lower
