// SPDX-License-Identifier: Apache-2.0
// floor, ceil, round, trunc, remainders by a number, and integers of quantized values. int8 codes have a
// table. A table of 16-bit codes would blur the steps: these are computed in int32, with fraction bits.
#include <algorithm>
#include <array>
#include <cmath>

#include "aten/ops.hpp"
#include "lower/rules.hpp"
#include "lower/whole_numbers.hpp"

namespace carina::lower {
namespace {

enum class Step : uint8_t { Floor, Ceil, Round, Trunc };

/// Half to even. The argument in float32, in which PyTorch computes it: what that rounds to an integer is
/// one.
double stepped(Step step, double exact) {
  const double x = static_cast<float>(exact);
  switch (step) {
    case Step::Floor:
      return std::floor(x);
    case Step::Ceil:
      return std::ceil(x);
    case Step::Round:
      return std::nearbyint(x);
    case Step::Trunc:
      return std::trunc(x);
  }
  return x;
}

/// Fraction bits with which int32 holds values up to `largest`: together no more bits than float32 has.
int fractionBits(double largest) {
  return 23 - std::max(0, std::ilogb(largest));
}

/// int32 numbers with fraction bits -> whole numbers.
ir::Value* whole(Emitter& emit, ir::Value* value, Step step, int bits) {
  const auto number = [&](int64_t n) { return emit.number(n, value); };
  const auto shifted = [&](ir::Value* numbers, int by) {
    return emit.binary(Binary::ArithmeticRightShift, numbers, number(by));
  };
  const auto plus = [&](ir::Value* addend) { return emit.binary(Binary::Add, value, addend); };
  const int64_t one = int64_t{1} << bits;
  switch (step) {
    case Step::Floor:
      break;
    case Step::Ceil:
      value = plus(number(one - 1));
      break;
    case Step::Round:  // half - 1, and 1 more for odd numbers
      value = emit.binary(Binary::Add, plus(number(one / 2 - 1)),
                          emit.binary(Binary::BitwiseAnd, shifted(value, bits), number(1)));
      break;
    case Step::Trunc:  // one - 1 for negative numbers
      value = plus(emit.binary(Binary::BitwiseAnd, shifted(value, 31), number(one - 1)));
      break;
  }
  return shifted(value, bits);
}

template <Step kStep>
Status lowerStep(Lowering& lowering, const ir::Node& node) {
  CARINA_TRY(const QuantizedValue real, lowering.quantizedValue(node.operands()[0]));
  const int bits = fractionBits(32768 * real.scale());
  if (!real.plain() || real.data.dtype() != DType::Int16 || bits < 1)
    return defineFunction(lowering, node, [](double x) { return stepped(kStep, x); });
  Emitter& emit = lowering.emit();
  CARINA_TRY(ir::Value* const value, emit.rescale(real.data.value, DType::Int32, real.zeroPoint, 0,
                                                  std::array{std::ldexp(real.scale(), bits)}));
  defineAccumulator(lowering, node.result(), {whole(emit, value, kStep, bits), real.data.layout}, 1.0);
  return {};
}

/// x - floor(x / divisor) * divisor, or, if `cut`, x - trunc(x / divisor) * divisor: the fraction bits of
/// x / divisor, or of its magnitude.
Status lowerRemainderOf(Lowering& lowering, const ir::Node& node, double divisor, bool cut) {
  CARINA_TRY(const QuantizedValue real, lowering.quantizedValue(node.operands()[0]));
  const int bits = fractionBits(32768 * real.scale() / std::abs(divisor));
  if (!real.plain() || real.data.dtype() != DType::Int16 || bits < 1 || !std::isfinite(1 / divisor)) {
    return defineFunction(lowering, node, [divisor, cut](double x) {
      const double m = std::fmod(x, divisor);
      return !cut && m != 0 && (m < 0) != (divisor < 0) ? m + divisor : m;
    });
  }
  Emitter& emit = lowering.emit();
  CARINA_TRY(ir::Value* const quotient,
             emit.rescale(real.data.value, DType::Int32, real.zeroPoint, 0,
                          std::array{std::ldexp(real.scale() / std::abs(divisor), bits)}));
  const auto number = [&](int64_t n) { return emit.number(n, quotient); };
  // A negative divisor negates both operands and the result of a remainder.
  const bool negates = !cut && divisor < 0;
  ir::Value* value = quotient;
  if (cut) value = emit.unary(Unary::Abs, value);
  if (negates) value = emit.binary(Binary::Sub, number(0), value);
  ir::Value* whole = emit.binary(Binary::ArithmeticRightShift, value, number(bits));
  whole = emit.binary(Binary::LeftShift, whole, number(bits));
  value = negates ? emit.binary(Binary::Sub, whole, value) : emit.binary(Binary::Sub, value, whole);
  if (cut)
    value = emit.select(emit.binary(Binary::Greater, number(0), quotient),
                        emit.binary(Binary::Sub, number(0), value), value);
  defineAccumulator(lowering, node.result(), {value, real.data.layout}, std::ldexp(std::abs(divisor), -bits));
  return {};
}

Status lowerRemainderNumber(Lowering& lowering, const ir::Node& node) {
  return lowerRemainderOf(lowering, node, ir::scalarReal(ir::cast<aten::RemainderScalar>(&node).other()),
                          false);
}
Status lowerFmodNumber(Lowering& lowering, const ir::Node& node) {
  return lowerRemainderOf(lowering, node, ir::scalarReal(ir::cast<aten::FmodScalar>(&node).other()), true);
}
Status lowerFrac(Lowering& lowering, const ir::Node& node) {
  return lowerRemainderOf(lowering, node, 1, true);
}

}  // namespace

Result<StoredTensor> truncatedIntegers(Lowering& lowering, const ir::Value* value, DType to) {
  CARINA_TRY(const QuantizedValue real, lowering.plainValue(value));
  Emitter& emit = lowering.emit();
  ir::Value* result = real.data.value;
  const bool bytes = result->dtype() == DType::Int8;
  const auto bits = static_cast<int>(8 * dtypeSize(result->dtype()));
  const double largest = std::ldexp(real.scale(), bytes ? bits : bits - 1);  // int8 codes have a zero point
  if (bytes && largest <= 128) {
    Tensor table = Tensor::uninitialized(DType::Int8, {256});
    for (int64_t code = -128; code < 128; ++code) {
      const double x = static_cast<double>(code - real.zeroPoint) * real.scale();
      table.setIntegerAt(code + 128, static_cast<int64_t>(stepped(Step::Trunc, x)));
    }
    result = emit.table(result, std::move(table));
  } else {
    if (!(largest < 0x1p31)) {
      return fail(Code::NoIntegerForm, "values up to {:.3g} are converted to integers of 32 bits", largest)
          .withRemedy("scale or clamp them before the conversion");
    }
    const int fraction = std::max(0, fractionBits(largest));
    CARINA_TRY(result, emit.rescale(result, DType::Int32, real.zeroPoint, 0,
                                    std::array{std::ldexp(real.scale(), fraction)}));
    if (fraction > 0) result = whole(emit, result, Step::Trunc, fraction);
  }
  if (result->dtype() != to) result = emit.cast(result, to);
  return StoredTensor{result, real.data.layout};
}

void addWholeNumberRules(Rules& rules) {
  rules[&aten::Floor::def()] = lowerStep<Step::Floor>;
  rules[&aten::Ceil::def()] = lowerStep<Step::Ceil>;
  rules[&aten::Round::def()] = lowerStep<Step::Round>;
  rules[&aten::Trunc::def()] = lowerStep<Step::Trunc>;
  rules[&aten::Frac::def()] = lowerFrac;
  rules[&aten::RemainderScalar::def()] = lowerRemainderNumber;
  rules[&aten::FmodScalar::def()] = lowerFmodNumber;
}

}  // namespace carina::lower
