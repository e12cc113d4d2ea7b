// SPDX-License-Identifier: Apache-2.0
// Integer quotients and remainders of two quantized tensors, exact for the numbers that their codes
// represent: computed in int32 from a tabulated reciprocal and a correction. (As products with a quantized
// reciprocal, many quotients would end up on the wrong side of an integer, and each of them would change the
// remainder by the divisor.)
#include <algorithm>
#include <cmath>

#include "aten/ops.hpp"
#include "lower/rules.hpp"

namespace carina::lower {
namespace {

constexpr int64_t kOne = 32767;   // the reciprocal of the smallest divisor, one code
constexpr int kOperandBits = 29;  // of both operands: their sums and products fit 32
constexpr int kFactorBits = 14;   // dropped from the dividend before it is multiplied by the reciprocal
constexpr double kNudge =
    0x1p-8;  // in codes: what rounding to common units may have subtracted from an integer

/// kOne / |divisor in codes|, int32.
Result<ir::Value*> reciprocal(Lowering& lowering, QuantizedValue divisor, ir::Value* value) {
  Emitter& emit = lowering.emit();
  if (value->dtype() == DType::Int8) {
    // An int16 table has an entry for each difference of two int8 codes.
    Tensor table = Tensor::uninitialized(DType::Int16, {513});
    for (int64_t i = 0; i < 513; ++i) table.setIntegerAt(i, kOne / std::max<int64_t>(std::abs(i - 256), 1));
    CARINA_TRY(ir::Value* const code,
               emit.rescale(value, DType::Int16, divisor.zeroPoint, 0, std::array{128.0}));
    return emit.rescale(emit.table(code, std::move(table)), DType::Int32, 0, 0, std::array{0x1p-7});
  }
  divisor.data.value = value;
  divisor.functions.append([scale = divisor.scale()](double y) {
    return static_cast<double>(kOne) * std::min(1.0, scale / std::max(std::abs(y), 0.5 * scale));
  });
  CARINA_TRY(const StoredTensor codes, lowering.quantized(divisor, {1.0, 0, -kOne, kOne, DType::Int16}));
  return emit.rescale(codes.value, DType::Int32, 0, 0, std::array{1.0});
}

/// The largest magnitude that the codes represent.
double reach(const QuantizedValue& real) {
  const DType dtype = real.data.dtype();
  const int64_t most = std::max(integerMax(dtype) - real.zeroPoint, real.zeroPoint - integerMin(dtype));
  return static_cast<double>(most) * real.scale();
}

/// x / y rounded down (`cut`: towards zero), or its remainder.
Status lowerDivision(Lowering& lowering, const ir::Node& node, bool cut, bool remainder) {
  CARINA_TRY(const Pair pair, quantizedPair(lowering, node));
  const QuantizedValue &x = pair.reals[0], &y = pair.reals[1];
  const DType dtype = y.data.dtype();
  if (dtype != DType::Int8 && dtype != DType::Int16)
    return fail(Code::NoIntegerForm, "{} has no integer form for {} codes", node.opName(), dtypeName(dtype))
        .withRemedy("quantize to int8 or int16");
  // The quotient of x in units and a divisor is ((x >> kFactorBits) * reciprocal) >> shift.
  const double least = std::ldexp(std::max(reach(x), reach(y)), -kOperandBits);
  const double perUnit = static_cast<double>(kOne) * std::ldexp(y.scale(), -kFactorBits);
  const int shift = std::ilogb(perUnit / least);
  if (shift < 1 || shift > 31) {
    return fail(Code::UnusableQuantization,
                "the ranges of dividend and divisor, {:.3g} and {:.3g}, are too far apart", reach(x),
                reach(y))
        .withRemedy("divide by larger numbers");
  }
  const double unit = std::ldexp(perUnit, -shift);
  CARINA_TRY(auto values, inUnits(lowering, pair, unit));
  CARINA_TRY(ir::Value* const inverse, reciprocal(lowering, y, pair.aligned.values[1]));
  ir::Value *&a = values[0], *&b = values[1];

  Emitter& emit = lowering.emit();
  const auto number = [&](int64_t n) {
    return emit.reshape(emit.scalar(DType::Int32, n), Shape(b->shape().size(), 1));
  };
  const auto isNegative = [&](ir::Value* v) { return emit.binary(Binary::Greater, number(0), v); };
  const auto negatedWhere = [&](ir::Value* condition, ir::Value* v) {
    return condition ? emit.select(condition, emit.binary(Binary::Sub, number(0), v), v) : v;
  };
  // Computed with positive divisors, and for truncation with magnitudes.
  const bool anySign = dtype == DType::Int16 || y.zeroPoint > integerMin(dtype);
  ir::Value* const yNegative = anySign ? isNegative(b) : nullptr;
  ir::Value* const xNegative = cut ? isNegative(a) : nullptr;
  b = negatedWhere(yNegative, b);
  a = negatedWhere(cut ? xNegative : yNegative, a);

  // With an int8 reciprocal, quotients are at most one off; 16-bit ones are coarse at both ends and iterated.
  const int rounds = dtype == DType::Int8 ? 1 : 3;
  ir::Value* quotient = nullptr;
  ir::Value* rest = a;
  for (int i = 0; i < rounds; ++i) {
    ir::Value* step = emit.binary(Binary::ArithmeticRightShift, rest, number(kFactorBits));
    step = emit.binary(Binary::Mul, step, inverse);
    step = emit.binary(Binary::ArithmeticRightShift, step, number(shift));
    quotient = quotient ? emit.binary(Binary::Add, quotient, step) : step;
    rest = emit.binary(Binary::Sub, rest, emit.binary(Binary::Mul, step, b));
  }
  const auto nudge = std::max<int64_t>(1, std::llround(x.scale() / unit * kNudge));
  ir::Value* const judged = emit.binary(Binary::Add, rest, number(nudge));
  ir::Value* const below = isNegative(judged);
  ir::Value* const beyond = emit.binary(Binary::GreaterEqual, judged, b);
  const auto corrected = [&](ir::Value* value, Binary lower, Binary raise, ir::Value* by) {
    value = emit.select(below, emit.binary(lower, value, by), value);
    return emit.select(beyond, emit.binary(raise, value, by), value);
  };
  if (remainder) {
    rest = corrected(rest, Binary::Add, Binary::Sub, b);
    rest = negatedWhere(cut ? xNegative : yNegative, rest);
    const auto most = static_cast<int64_t>(std::min(reach(y) / unit, 0x1p31 - 1));
    defineAccumulator(lowering, node.result(), {rest, pair.aligned.layout}, unit, Interval{-most, most});
  } else {
    quotient = corrected(quotient, Binary::Sub, Binary::Add, number(1));
    if (cut) quotient = negatedWhere(yNegative, negatedWhere(xNegative, quotient));
    defineAccumulator(lowering, node.result(), {quotient, pair.aligned.layout}, 1.0);
  }
  return {};
}

Status lowerFloorDivide(Lowering& l, const ir::Node& n) {
  return lowerDivision(l, n, false, false);
}
Status lowerRemainder(Lowering& l, const ir::Node& n) {
  return lowerDivision(l, n, false, true);
}
Status lowerFmod(Lowering& l, const ir::Node& n) {
  return lowerDivision(l, n, true, true);
}

}  // namespace

Status lowerWholeQuotient(Lowering& lowering, const ir::Node& node, bool cut) {
  return lowerDivision(lowering, node, cut, false);
}

void addDivisionRules(Rules& rules) {
  rules[&aten::FloorDivide::def()] = lowerFloorDivide;
  rules[&aten::RemainderTensor::def()] = lowerRemainder;
  rules[&aten::FmodTensor::def()] = lowerFmod;
}

}  // namespace carina::lower
