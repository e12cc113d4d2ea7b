// SPDX-License-Identifier: Apache-2.0
#include "lower/wide.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "lower/fine_table.hpp"
#include "lower/quantize_rules.hpp"

namespace carina::lower {
namespace {

constexpr int kCodeBits = 28;
constexpr Interval kAll{-integerMax(DType::Int32), integerMax(DType::Int32)};

/// factor ~ multiplier * 2^-shift, multiplier below 2^31.
struct Factor {
  int64_t multiplier = 1;
  int shift = 0;
};

Factor factorOf(double factor) {
  int exponent = 0;
  const double mantissa = std::frexp(factor, &exponent);
  Factor result{std::llround(std::ldexp(mantissa, 31)), 31 - exponent};
  while (result.shift > 0 && (result.multiplier % 2 == 0 || result.multiplier > integerMax(DType::Int32))) {
    result.multiplier /= 2;
    --result.shift;
  }
  for (; result.shift > 62; --result.shift) result.multiplier /= 2;
  CARINA_CHECK(result.multiplier <= integerMax(DType::Int32) && result.shift >= 0, "a factor below 2^31");
  return result;
}

int64_t scaledEnd(int64_t end, double factor) {
  return std::llround(static_cast<double>(end) * factor);
}

ir::Value* widened(Emitter& emit, ir::Value* codes, int64_t zero) {
  return emit.rescale(codes, DType::Int32, zero, 0, std::array{RescaleFactor{1 << 30, 30}}, true, false);
}

ir::Value* times(Emitter& emit, ir::Value* x, double factor) {
  const Factor number = factorOf(factor);
  if (number.multiplier == 1 && number.shift == 0) return x;
  return emit.product(x, emit.number(number.multiplier, x), number.shift);
}

Wide limited(Emitter& emit, Wide x, const Interval& to) {
  ir::Value*& value = x.data.value;
  if (x.within.low < to.low) value = emit.binary(Binary::Maximum, value, emit.number(to.low, value));
  if (x.within.high > to.high) value = emit.binary(Binary::Minimum, value, emit.number(to.high, value));
  const auto clamped = [&](int64_t end) { return std::clamp(end, to.low, to.high); };
  x.within = {clamped(x.within.low), clamped(x.within.high)};
  return x;
}

/// Numbers along the last dimension, one for each channel.
ir::Value* perChannel(Emitter& emit, const ir::Value* like, const std::vector<int64_t>& numbers) {
  Shape shape(like->shape().size(), 1);
  shape.back() = static_cast<int64_t>(numbers.size());
  Tensor tensor = Tensor::uninitialized(DType::Int32, shape);
  for (size_t i = 0; i < numbers.size(); ++i) tensor.setIntegerAt(static_cast<int64_t>(i), numbers[i]);
  return emit.constant(std::move(tensor));
}

/// Converts codes with per-channel scales to codes of one scale, within limits.
StoredTensor channelsScaled(Emitter& emit, const QuantizedValue& real, const Codes& codes,
                            const Interval& limits) {
  const double largest = *std::max_element(real.scales.begin(), real.scales.end());
  const Factor common = factorOf(largest / codes.scale);
  std::vector<int64_t> multipliers, low, high;
  bool tooLow = false, tooHigh = false;
  const auto inside = [](double limit) {
    return static_cast<int64_t>(
        std::clamp(limit, static_cast<double>(kAll.low), static_cast<double>(kAll.high)));
  };
  const Interval within = real.within.value_or(kAll);
  for (const double scale : real.scales) {
    const double factor = scale / codes.scale;
    multipliers.push_back(std::llround(std::ldexp(factor, common.shift)));
    low.push_back(inside(std::ceil(static_cast<double>(limits.low) / factor)));
    high.push_back(inside(std::floor(static_cast<double>(limits.high) / factor)));
    tooLow |= within.low < low.back();
    tooHigh |= within.high > high.back();
  }
  ir::Value* value = real.data.value;
  if (tooLow) value = emit.binary(Binary::Maximum, value, perChannel(emit, value, low));
  if (tooHigh) value = emit.binary(Binary::Minimum, value, perChannel(emit, value, high));
  return {emit.product(value, perChannel(emit, value, multipliers), common.shift), real.data.layout};
}

Wide asWide(Emitter& emit, const QuantizedValue& real) {
  const DType type = real.data.dtype();
  if (type == DType::Int32) {
    Interval within = real.within.value_or(kAll);
    if (real.data.value->isConstant()) {
      const Tensor& codes = real.data.value->constant();
      within = {0, 0};
      for (int64_t i = 0; i < codes.numElements(); ++i) {
        within.low = std::min(within.low, codes.integerAt(i));
        within.high = std::max(within.high, codes.integerAt(i));
      }
    }
    return {real.data, real.scale(), within};
  }
  return {{widened(emit, real.data.value, real.zeroPoint), real.data.layout},
          real.scale(),
          {integerMin(type) - real.zeroPoint, integerMax(type) - real.zeroPoint}};
}

bool hasWideForm(const QuantizedValue& real) {
  const DType type = real.data.dtype();
  return real.functions.empty() && real.parts.empty() &&
         (type == DType::Int8 || type == DType::Int16 || (type == DType::Int32 && real.zeroPoint == 0));
}

}  // namespace

bool isWide(const Codes& codes) {
  constexpr int64_t kMost = int64_t{1} << kCodeBits;
  return codes.dtype == DType::Int32 && codes.zeroPoint == 0 && codes.min >= -kMost && codes.max <= kMost;
}

bool isWide(const Lowering& lowering, const ir::Node& node) {
  if (!findWideRule(node.def()) || node.results().size() != 1 || !lowering.isFloatValue(node.result()))
    return false;
  for (const ir::Value* operand : node.operands()) {
    const QuantizedValue* real = operand ? lowering.known(operand) : nullptr;
    if (real && real->data.dtype() == DType::Int32 && !real->accumulator) return true;
  }
  const auto codes = lowering.codesAfter(node.result());
  return codes && isWide(*codes);
}

Result<Wide> wideForm(Lowering& lowering, const QuantizedValue& real) {
  if (!hasWideForm(real) || real.scales.size() != 1)
    return fail(Code::NoIntegerForm, "an operand has {} codes, which 32-bit arithmetic does not support",
                dtypeName(real.data.dtype()))
        .withRemedy("quantize it to int8 or int16");
  return asWide(lowering.emit(), real);
}

Result<Wide> wideOperand(Lowering& lowering, const ir::Value* value) {
  CARINA_TRY(const QuantizedValue real, lowering.plainValue(value));
  return wideForm(lowering, real);
}

double unitFor(double reach, int bits) {
  int exponent = 0;
  std::frexp(reach, &exponent);
  return std::ldexp(1.0, exponent - bits);
}

Wide inUnits(Emitter& emit, const Wide& x, double unit) {
  if (x.within.magnitude() == 0) return {x.data, unit, x.within};  // all zeros
  const double factor = x.scale / unit;
  Wide result{{times(emit, x.data.value, factor), x.data.layout},
              unit,
              {scaledEnd(x.within.low, factor), scaledEnd(x.within.high, factor)}};
  CARINA_CHECK(result.within.magnitude() <= integerMax(DType::Int32), "32-bit codes in units that hold them");
  return result;
}

void keepWithin(Emitter& emit, QuantizedValue& real, const Interval& limits, bool already) {
  if (!already && real.zeroPoint == 0)
    real.data =
        limited(emit, {real.data, real.scale(), {integerMin(DType::Int32), integerMax(DType::Int32)}}, limits)
            .data;
  real.within = limits;
}

Result<StoredTensor> wideCodes(Lowering& lowering, const QuantizedValue& real, const Codes& codes) {
  if (!hasWideForm(real))
    return fail(Code::NoIntegerForm, "32-bit codes are requested for a value that does not support them")
        .withRemedy("quantize to int8 or int16");
  Emitter& emit = lowering.emit();
  Interval limits{codes.min, codes.max};
  const auto code = [&](double limit) {
    return static_cast<int64_t>(std::clamp(std::nearbyint(limit / codes.scale),
                                           static_cast<double>(codes.min), static_cast<double>(codes.max)));
  };
  if (real.low) limits.low = code(*real.low);
  if (real.high) limits.high = std::max(limits.low, code(*real.high));
  const double largest = *std::max_element(real.scales.begin(), real.scales.end()) / codes.scale;
  if (!(largest < 0x1p30 && largest > 0x1p-60))
    return fail(Code::UnusableQuantization, "a factor of {} between scales is out of range", largest)
        .withRemedy("calibrate with more samples: the ranges are inconsistent");
  if (real.scales.size() > 1) return channelsScaled(emit, real, codes, limits);
  const Wide x = asWide(emit, real);
  const double factor = x.scale / codes.scale;
  // Limits in codes of x, which apply before the multiplication.
  const auto end = [&](double limit, double (*round)(double)) {
    return static_cast<int64_t>(std::clamp(round(limit / factor), -0x1p31, 0x1p31 - 1));
  };
  const double low = static_cast<double>(limits.low), high = static_cast<double>(limits.high);
  Interval before{end(low, [](double v) { return std::ceil(v); }),
                  end(high, [](double v) { return std::floor(v); })};
  if (before.low > before.high)
    before.low = before.high = end(low, [](double v) { return std::nearbyint(v); });
  return inUnits(emit, limited(emit, x, before), codes.scale).data;
}

namespace {

/// Whether a 15-bit multiplier represents the factor to within 2^-6 of its last bit.
bool isShort(double factor) {
  int exponent = 0;
  const double mantissa = std::ldexp(std::frexp(factor, &exponent), 15);
  return std::abs(std::nearbyint(mantissa) - mantissa) < 0x1p-6;
}

}  // namespace

Result<ir::Value*> rescaledExactly(Emitter& emit, ir::Value* sums, const Interval& within,
                                   std::span<const double> factors) {
  constexpr int kBits = 30, kMaxUp = 12;
  const double largest = *std::max_element(factors.begin(), factors.end());
  const int up =
      std::min(kBits - static_cast<int>(std::bit_width(static_cast<uint64_t>(within.magnitude()))), kMaxUp);
  const double most = std::ldexp(largest, -up);  // largest factor of the 32-bit values
  if (std::all_of(factors.begin(), factors.end(), isShort) || !(most > 0x1p-30) ||
      static_cast<double>(within.magnitude()) * largest > 0x1p30)
    return static_cast<ir::Value*>(nullptr);
  CARINA_TRY(ir::Value* const wide, emit.rescale(sums, DType::Int32, 0, 0, std::array{std::ldexp(1.0, up)}));
  const Factor common = factorOf(most);
  std::vector<int64_t> multipliers;
  for (const double factor : factors)
    multipliers.push_back(std::llround(std::ldexp(factor, common.shift - up)));
  ir::Value* scaled = emit.product(wide, perChannel(emit, wide, multipliers), common.shift);
  return emit.rescale(scaled, DType::Int16, 0, 0, std::array{RescaleFactor{1 << 30, 30}}, true, false);
}

void defineWide(Lowering& lowering, const ir::Value* result, Wide wide) {
  QuantizedValue real{std::move(wide.data), {wide.scale}, 0, true, {}, {}, {}, {}};
  real.within = wide.within;
  lowering.define(result, std::move(real));
}

namespace {

constexpr int64_t kNodes = 255;   // on either side of the middle
constexpr int kSegmentBits = 20;  // between nodes

/// Looks up a 16-bit number for each point, as int32.
Result<ir::Value*> lookUp(Emitter& emit, ir::Value* point, const std::vector<double>& numbers) {
  Tensor table = Tensor::zeros(DType::Int16, {kTableEntries});
  for (int64_t i = -kNodes; i <= kNodes; ++i)
    table.setIntegerAt(i + 256,
                       static_cast<int64_t>(std::nearbyint(numbers[static_cast<size_t>(i + kNodes)])));
  CARINA_TRY(ir::Value* const found, emit.lookUp(point, std::move(table)));
  return widened(emit, found, 0);
}

double largestOf(const std::vector<double>& numbers) {
  double largest = 0;
  for (const double number : numbers) largest = std::max(largest, std::abs(number));
  return largest;
}

/// The same for numbers of up to 29 bits: two tables, the lower one with 14 bits.
Result<ir::Value*> lookUpFine(Emitter& emit, ir::Value* point, const std::vector<double>& numbers) {
  constexpr int kLow = 14;
  std::vector<double> high, low;
  for (const double number : numbers) {
    high.push_back(std::nearbyint(std::ldexp(number, -kLow)));
    low.push_back(number - std::ldexp(high.back(), kLow));
  }
  CARINA_TRY(ir::Value* const fine, lookUp(emit, point, low));
  if (largestOf(high) == 0) return fine;
  CARINA_TRY(ir::Value* const coarse, lookUp(emit, point, high));
  return emit.binary(Binary::Add, fine, times(emit, coarse, std::ldexp(1.0, kLow)));
}

/// The same with 15 bits of precision for the largest number.
Result<ir::Value*> lookUpCoarse(Emitter& emit, ir::Value* point, std::vector<double> numbers) {
  int bits = 0;
  while (std::ldexp(largestOf(numbers), -bits) > 32767) ++bits;
  for (double& number : numbers) number = std::ldexp(number, -bits);
  CARINA_TRY(ir::Value* const found, lookUp(emit, point, numbers));
  return times(emit, found, std::ldexp(1.0, bits));
}

/// Parabolas at the points: value(t) = (curve * t + slope) * t + value for t from -1/2 to 1/2.
struct Parabolas {
  std::vector<double> value, slope, curve;
};

Parabolas parabolasOf(const Function& function, double middle, double step) {
  Parabolas result;
  for (int64_t i = -kNodes; i <= kNodes; ++i) {
    const double x = middle + step * static_cast<double>(i), y = function(x);
    double before = function(x - step / 2), after = function(x + step / 2);
    // The function need not be finite beyond the ends.
    if (i == -kNodes && !std::isfinite(before)) before = 2 * y - after;
    if (i == kNodes && !std::isfinite(after)) after = 2 * y - before;
    result.value.push_back(y);
    result.slope.push_back(after - before);
    result.curve.push_back(2 * (after + before - 2 * y));
  }
  return result;
}

}  // namespace

Result<Wide> wideFunction(Emitter& emit, const Wide& x, const Function& function) {
  const int64_t middle = (x.within.low + x.within.high) / 2;
  const auto half =
      static_cast<double>(std::max<int64_t>({x.within.high - middle, middle - x.within.low, 1}));
  Parabolas parabolas = parabolasOf(function, static_cast<double>(middle) * x.scale, half / kNodes * x.scale);
  for (const auto* numbers : {&parabolas.value, &parabolas.slope, &parabolas.curve}) {
    if (!std::isfinite(largestOf(*numbers)))
      return fail(Code::UnusableQuantization, "the function is undefined for some of its arguments")
          .withRemedy("calibrate with samples like the network's real inputs");
  }
  const double unit = unitFor(std::max(largestOf(parabolas.value), 0x1p-90), kCodeBits);
  for (auto* numbers : {&parabolas.value, &parabolas.slope, &parabolas.curve}) {
    for (double& number : *numbers) number /= unit;
  }
  ir::Value* centred = emit.binary(Binary::Sub, x.data.value, emit.number(middle, x.data.value));
  centred = times(emit, centred, std::ldexp(kNodes / half, kSegmentBits));
  ir::Value* index = times(emit, centred, std::ldexp(1.0, -kSegmentBits));
  CARINA_TRY(ir::Value* const point, emit.rescale(index, DType::Int16, 0, 0, std::array{128.0}));
  ir::Value* rest = emit.binary(Binary::Sub, centred, times(emit, index, std::ldexp(1.0, kSegmentBits)));

  CARINA_TRY(ir::Value * sum, lookUpCoarse(emit, point, parabolas.curve));
  sum = emit.product(rest, sum, kSegmentBits);
  CARINA_TRY(ir::Value* const slope, lookUpFine(emit, point, parabolas.slope));
  sum = emit.product(rest, emit.binary(Binary::Add, sum, slope), kSegmentBits);
  CARINA_TRY(ir::Value* const value, lookUpFine(emit, point, parabolas.value));
  sum = emit.binary(Binary::Add, sum, value);
  const auto [least, most] = std::minmax_element(parabolas.value.begin(), parabolas.value.end());
  const double beyond = largestOf(parabolas.curve) + 0x1p10;
  return Wide{{sum, x.data.layout},
              unit,
              {std::llround(std::floor(*least - beyond)), std::llround(std::ceil(*most + beyond))}};
}

}  // namespace carina::lower
