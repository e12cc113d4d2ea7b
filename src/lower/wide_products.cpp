// SPDX-License-Identifier: Apache-2.0
// Matrix products with 32-bit codes (wide.hpp). The hardware multiplies 8 and 16 bits: operands are split
// into digits, whose products are added up.
#include <algorithm>
#include <bit>
#include <cmath>

#include "aten/ops.hpp"
#include "lower/matrices.hpp"
#include "lower/rules.hpp"
#include "lower/weights.hpp"
#include "lower/wide.hpp"
#include "tosa/ops.hpp"

namespace carina::lower {
namespace {

constexpr int kSumBits = 30;

int bitsOf(int64_t number) {
  return static_cast<int>(std::bit_width(static_cast<uint64_t>(number)));
}

ir::Value* narrowed(Emitter& emit, ir::Value* value, DType to, int64_t zero) {
  return emit.rescale(value, to, 0, zero, std::array{RescaleFactor{1 << 30, 30}}, true, false);
}

// Two computed matrices
// ------------------------------------------------------------------------------------------------------------

constexpr int kDigitBits = 8;
/// Sums of four products of two digits each over this many elements fit 31 bits.
constexpr int64_t kMostDepth = int64_t{1} << 13;

struct Digit {
  ir::Value* codes = nullptr;  // int8
  int64_t zero = 0;
  double most = 0;  // the largest magnitude
};

/// x = scale * sum of digits[i] * 2^(8 i).
struct Digits {
  std::vector<Digit> digits;
  double scale = 1;

  size_t count() const { return digits.size(); }
};

/// Two digits for 16-bit values, four for others: the last one from -128 to 127, the others from 0 to 255,
/// stored as codes with zero point -128.
Digits digitsOf(Emitter& emit, const Wide& x) {
  const bool narrow = x.within.low >= integerMin(DType::Int16) && x.within.high <= integerMax(DType::Int16);
  const double largest = narrow ? 0x1p15 : 0x1p31;
  Digits result{{}, x.scale};
  ir::Value* rest = x.data.value;
  for (int i = narrow ? 1 : 3; i > 0; --i) {
    ir::Value* above = emit.binary(Binary::ArithmeticRightShift, rest, emit.number(kDigitBits, rest));
    ir::Value* shifted = emit.product(above, emit.number(1 << kDigitBits, rest), 0);
    result.digits.push_back(
        {narrowed(emit, emit.binary(Binary::Sub, rest, shifted), DType::Int8, -128), -128, 255});
    rest = above;
  }
  const double part = std::min(1.0, static_cast<double>(x.within.magnitude()) / largest);
  result.digits.push_back({narrowed(emit, rest, DType::Int8, 0), 0, std::ceil(128 * part) + 1});
  return result;
}

/// If a 16-bit value consists of int8 codes multiplied by kInt8Step, which is how a network's int8 codes are
/// read among 16-bit codes: the zero point of these codes; otherwise nothing.
constexpr int64_t kInt8Step = 128;
std::optional<int64_t> zeroPointOfSteps(const ir::Value* value) {
  while (value->producer()) {
    const ir::Node* node = value->producer();
    const auto rescale = ir::dynCast<tosa::Rescale>(node);
    if (!rescale) {
      if (!ir::isa<tosa::Transpose>(node) && !ir::isa<tosa::Reshape>(node) && !ir::isa<tosa::Tile>(node) &&
          !ir::isa<tosa::Slice>(node))
        return std::nullopt;
      value = node->operand(0);
      continue;
    }
    const auto known = [](const ir::Value* number) {
      return number->isConstant() && number->numElements() == 1;
    };
    if (rescale.input()->dtype() != DType::Int8 || rescale.inputUnsigned() || rescale.outputUnsigned() ||
        rescale.perChannel() || !known(rescale.multiplier()) || !known(rescale.shift()) ||
        !known(rescale.inputZp()) || !known(rescale.outputZp()) ||
        rescale.outputZp()->constant().integerAt(0) != 0)
      return std::nullopt;
    const int64_t multiplier = rescale.multiplier()->constant().integerAt(0),
                  shift = rescale.shift()->constant().integerAt(0);
    if (shift < 0 || shift > 40 || multiplier != kInt8Step << shift) return std::nullopt;
    return rescale.inputZp()->constant().integerAt(0);
  }
  return std::nullopt;
}

/// Codes that eight bits determine are a single digit.
Result<Digits> digitsOf(Lowering& lowering, const QuantizedValue& real) {
  Emitter& emit = lowering.emit();
  if (real.data.dtype() == DType::Int16 && real.plain() && real.scales.size() == 1 && real.zeroPoint == 0) {
    if (const auto zero = zeroPointOfSteps(real.data.value)) {
      const Interval codes{integerMin(DType::Int8) - *zero, integerMax(DType::Int8) - *zero};
      ir::Value* digit = emit.rescale(
          real.data.value, DType::Int8, 0, *zero,
          std::array{RescaleFactor{1 << 30, 30 + std::countr_zero(uint64_t{kInt8Step})}}, true, false);
      return Digits{{{digit, *zero, static_cast<double>(codes.magnitude())}}, real.scale() * kInt8Step};
    }
  }
  CARINA_TRY(const Wide wide, wideForm(lowering, real));
  return digitsOf(emit, wide);
}

/// Products of digits with the same weight, added up.
struct DigitSum {
  ir::Value* value = nullptr;
  double most = 0;
};

/// Omits products whose weight is 2^32 or more below the largest.
std::vector<DigitSum> digitProducts(Emitter& emit, const Digits& a, const Digits& b, int64_t depth) {
  std::vector<DigitSum> sums(a.count() + b.count() - 1);
  for (size_t i = 0; i < a.count(); ++i) {
    for (size_t j = 0; j < b.count(); ++j) {
      if (i + j + 4 < sums.size()) continue;
      DigitSum& sum = sums[i + j];
      const Digit &left = a.digits[i], &right = b.digits[j];
      ir::Value* product = emit.matmul(left.codes, right.codes, left.zero, right.zero);
      sum.value = sum.value ? emit.binary(Binary::Add, sum.value, product) : product;
      sum.most += left.most * right.most * static_cast<double>(depth);
    }
  }
  return sums;
}

}  // namespace

Status lowerWideMatmul(Lowering& lowering, const ir::Node& node) {
  Emitter& emit = lowering.emit();
  std::array<QuantizedValue, 2> reals;
  for (size_t i = 0; i < 2; ++i) {
    CARINA_TRY(reals[i], lowering.plainValue(node.operands()[i]));
  }
  const int64_t depth = reals[0].data.shape().back();
  if (depth > kMostDepth)
    return fail(Code::NoIntegerForm, "a product of matrices with 32-bit codes over {} elements exceeds {}",
                depth, kMostDepth)
        .withRemedy("split the dimension, and add the parts");
  CARINA_TRY(const Matrices matrices, matricesOf(lowering, reals[0].data, reals[1].data));
  reals[0].data = {matrices.left, Layout::rowMajor(matrices.left->shape())};
  reals[1].data = {matrices.right, Layout::rowMajor(matrices.right->shape())};
  CARINA_TRY(const Digits a, digitsOf(lowering, reals[0]));
  CARINA_TRY(const Digits b, digitsOf(lowering, reals[1]));
  const std::vector<DigitSum> sums = digitProducts(emit, a, b, depth);
  double most = 0;
  for (size_t k = 0; k < sums.size(); ++k) most += std::ldexp(sums[k].most, kDigitBits * static_cast<int>(k));
  const double unit = unitFor(most, kSumBits);
  ir::Value* result = nullptr;
  for (size_t k = 0; k < sums.size(); ++k) {
    if (!sums[k].value) continue;
    const auto end = static_cast<int64_t>(sums[k].most);
    const Wide part = inUnits(
        emit, {{sums[k].value, {}}, std::ldexp(1.0, kDigitBits * static_cast<int>(k)), {-end, end}}, unit);
    result = result ? emit.binary(Binary::Add, result, part.data.value) : part.data.value;
  }
  const auto end = static_cast<int64_t>(std::ceil(most / unit)) + 3;
  defineWide(lowering, node.result(),
             {{result, Layout::rowMajor(node.result()->shape())}, a.scale * b.scale * unit, {-end, end}});
  return {};
}

// Weights
// -------------------------------------------------------------------------------------------------------

namespace {

/// 16-bit codes: value = codes * 2^shift.
struct Part {
  ir::Value* codes = nullptr;
  int shift = 0;
};

constexpr int kPartBits = 14;

/// A value of up to 29 bits, split into two parts.
std::array<Part, 2> inParts(Emitter& emit, const Wide& x) {
  const int shift = std::max(bitsOf(x.within.magnitude()) - kPartBits, 1);
  ir::Value* value = x.data.value;
  ir::Value* high = emit.product(value, emit.number(1, value), shift);
  ir::Value* low =
      emit.binary(Binary::Sub, value, emit.product(high, emit.number(int64_t{1} << shift, value), 0));
  return {Part{narrowed(emit, low, DType::Int16, 0), 0}, Part{narrowed(emit, high, DType::Int16, 0), shift}};
}

}  // namespace

Status lowerWideLinear(Lowering& lowering, const ir::Node& node) {
  const aten::Linear op = ir::cast<aten::Linear>(&node);
  Emitter& emit = lowering.emit();
  CARINA_TRY(QuantizedValue input, lowering.plainValue(op.input()));
  CARINA_TRY(const Weight weight, weightOf(lowering, op.weight(), 0));
  const LinearOperands operands = linearOperands(lowering, input.data, weight.codes);
  input.data = {operands.image, Layout::rowMajor(operands.image->shape())};
  std::vector<Part> parts;
  double scale = input.scale();
  if (input.data.dtype() == DType::Int16) {
    parts.push_back({operands.image, 0});
  } else {
    CARINA_TRY(Wide x, wideForm(lowering, input));
    x = inUnits(emit, x, std::max(x.scale, unitFor(x.reach(), 2 * kPartBits)));
    scale = x.scale;
    const auto both = inParts(emit, x);
    parts.assign(both.begin(), both.end());
  }
  ir::Value* kernel = emit.constant(operands.weight);
  const int64_t channels = weight.codes.dim(0);
  // The sums of the last part, which includes the bias, in units that give them 29 bits.
  const double last = std::ldexp(scale, parts.back().shift);
  CARINA_TRY(const Tensor bias, biasOf(lowering, op.bias(), channels, last, weight.scales, DType::Int16));
  const Interval sums = *sumsOf(operands.weight, weight.zeroPoint, bias);
  constexpr int kMaxUp = 12;  // limit of RESCALE of 48 bits
  const int up = std::min(kSumBits - 1 - bitsOf(sums.magnitude()), kMaxUp);
  ir::Value* result = nullptr;
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool isLast = i + 1 == parts.size();
    ir::Value* sum = emit.conv2d(parts[i].codes, kernel,
                                 emit.constant(isLast ? bias : Tensor::zeros(DType::Int48, {channels})), 0,
                                 weight.zeroPoint, {{1, 1}, {1, 1}, {0, 0, 0, 0}});
    CARINA_TRY(sum, emit.rescale(sum, DType::Int32, 0, 0,
                                 std::array{std::ldexp(1.0, up + parts[i].shift - parts.back().shift)}));
    result = result ? emit.binary(Binary::Add, result, sum) : sum;
  }
  QuantizedValue real{{result, Layout::rowMajor(node.result()->shape())}, {}, 0, true, {}, {}, {}, {}};
  for (const double channel : weight.scales) real.scales.push_back(std::ldexp(last * channel, -up));
  real.within = Interval{-(int64_t{1} << kSumBits), int64_t{1} << kSumBits};
  lowering.define(node.result(), std::move(real));
  return {};
}

}  // namespace carina::lower
