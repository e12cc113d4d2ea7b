// SPDX-License-Identifier: Apache-2.0
// Normalisation of rows, (x - mean) / sqrt(variance + eps) and x / sqrt(mean(x^2) + eps), without weights.
//
// Rows may differ by orders of magnitude (outlier tokens), and their squares by twice as many: no tensor of
// 8 or 16-bit codes holds the variances of all of them. They are computed in 32 bits and with an exponent per
// row (block floating point). With n the length of a row, E = eps in units of V, and h per row:
//
//   u = (V + E) * 4^h in [2^29, 2^31)
//   y = (x - mean) * 2^h * sqrt(n / 2^q) / sqrt(u)
//
// where a table gives 1 / sqrt(u) to 2^-14. From 8-bit codes,
//
//   V = (sum(x^2) - sum(x) * mean) / 2^q       q so that V <= 2^30 whatever the row holds
//   c = (x - mean) * 2 * 2^e, |c| < 2^15       e = min(h, 6)
//   y = c * (2^(h - e - 1) * sqrt(n / 2^q) / sqrt(u))
//
// so that operations on all elements have operands of 8 and 16 bits. Rows that are so long that the factor
// has too few bits, and those that are too short to make up for it, have e = 6 and a factor of 32 bits. From
// 16-bit codes, with integers d = M * (x - mean),
//
//   c = d / 2^s                                s per row, so that |c| <= 2^18
//   V = sum(c^2 / 2^q), and E / 4^s instead of E
//
// The result is within a code (of 16 bits: two) of what real arithmetic gives for the codes of x.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "aten/ops.hpp"
#include "decompose/norms.hpp"
#include "lower/fine_table.hpp"
#include "lower/norm.hpp"
#include "lower/reduction.hpp"
#include "lower/rules.hpp"

namespace carina::lower {
namespace {

constexpr int kEnergyBits = 30;      // of V
constexpr int kMeanFraction = 22;    // bits of the mean of 8-bit codes: RESCALE yields less than 2^30
constexpr int64_t kEnergyError = 2;  // by which V of rows with a mean may be too small
constexpr int kMaxExponent = 6;      // e: 2^e is an 8-bit code
constexpr int kCentredBits8 = 15, kCentredBits16 = 18;  // of c
constexpr int kMinFactorBits = 9;        // of what c is multiplied by: at most a third of an 8-bit code
constexpr int64_t kMinNarrowCount = 32;  // elements per row that pay for an exponent of their own
constexpr int64_t kMaxNarrowSum = 4096;  // numbers of 16 bits that Ethos-U adds up in one operation

/// The rows of a norm.
struct Rows {
  ir::Value* codes = nullptr;  // x as [outer, n] or [outer, n, inner]
  Sum sum;                     // of the codes of each row, if they are centred
  Shape perRow;                // with 1 in place of n
  int64_t count = 1;           // n
  int64_t zero = 0;            // subtracted from codes; differences from the mean do not depend on it
  double scale = 1;            // of the codes
};

int bitsOf(int64_t number) {
  return static_cast<int>(std::bit_width(static_cast<uint64_t>(number)));
}

Result<ir::Value*> asInt32(Emitter& emit, ir::Value* codes, int64_t zero) {
  return emit.rescale(codes, DType::Int32, zero, 0, std::array{1.0});
}

/// Integers of at most 16 bits as such: Ethos-U computes twice as fast with operands of 16 bits as of 32.
Result<ir::Value*> in16Bits(Emitter& emit, ir::Value* numbers, double factor = 1) {
  CARINA_TRY(ir::Value* const codes, emit.rescale(numbers, DType::Int16, 0, 0, std::array{factor}));
  return asInt32(emit, codes, 0);
}

Result<Rows> rowsOf(Lowering& lowering, const QuantizedValue& real, const Norm& norm,
                    const Reduction& reduction) {
  Emitter& emit = lowering.emit();
  Rows rows;
  rows.count = reduction.count();
  rows.zero = norm.centred ? 0 : real.zeroPoint;
  rows.scale = real.scale();
  Shape shape{reduction.outer, rows.count};
  rows.perRow = {reduction.outer, 1};
  if (reduction.inner != 1) {
    shape.push_back(reduction.inner);
    rows.perRow.push_back(reduction.inner);
  }
  rows.codes = emit.reshape(reduction.value, shape);
  if (!norm.centred) return rows;
  CARINA_TRY(rows.sum, summed(lowering, reduction, rows.zero));
  rows.sum.value = emit.reshape(rows.sum.value, rows.perRow);
  return rows;
}

/// `factor` times the mean of each row's codes, as integers.
Result<ir::Value*> meanOf(Emitter& emit, const Rows& rows, double factor) {
  return emit.rescale(rows.sum.value, DType::Int32, 0, 0,
                      std::array{std::ldexp(factor, rows.sum.shift) / static_cast<double>(rows.count)});
}

/// eps in units of V.
struct Epsilon {
  int q = 0;
  int least = 0;  // s, from 16-bit codes
  int64_t value = 1;
};

/// `largest`: of the integers that are squared. `scale`: of these.
Result<Epsilon> epsilonOf(const ir::Node& node, const Norm& norm, int64_t count, int64_t largest,
                          double scale, bool wide) {
  // E has 29 bits. If eps exceeds them in units of V, then with 8-bit codes, which share one exponent, it
  // exceeds all of V, which drops its low bits; with 16-bit codes the least s grows, which only leaves too
  // few bits to rows that are negligible compared to eps.
  Epsilon result{bitsOf(count * largest * largest - 1) - kEnergyBits};
  const double unit = scale * scale / static_cast<double>(count);
  const auto units = [&] { return norm.eps / std::ldexp(unit, result.q + 2 * result.least); };
  while (units() > 0x1p29 && std::max(result.q, result.least) < 30) ++(wide ? result.least : result.q);
  if (units() > 0x1p29) {
    return fail(Code::UnusableQuantization, "eps {} of {} exceeds every value of its input", norm.eps,
                node.opName())
        .withRemedy("calibrate with samples like the network's real inputs");
  }
  result.value = std::max<int64_t>(std::llround(units()), 1);
  return result;
}

/// sqrt(2^29 / u) for u in [2^29, 2^31), in units of 1 / kRootOne.
constexpr double kRootOne = 32767;
Result<ir::Value*> inverseRoot(Emitter& emit, ir::Value* u) {
  // The full range of codes represents that of u.
  constexpr int64_t kMiddle = 5 * (int64_t{1} << 28);
  constexpr double kStep = 3 * 0x1p28 / 0x1p15;
  const auto value = [](int64_t code) {
    const double at = static_cast<double>(kMiddle) + kStep * static_cast<double>(code);
    return static_cast<int64_t>(std::nearbyint(kRootOne * std::sqrt(0x1p29 / at)));
  };
  constexpr int64_t kNoPieces = 65536;
  static const Tensor table = fineTable(value, kNoPieces).table;
  ir::Value* offset = emit.binary(Binary::Sub, u, emit.number(kMiddle, u));
  CARINA_TRY(ir::Value* const code, emit.rescale(offset, DType::Int16, 0, 0, std::array{1 / kStep}));
  CARINA_TRY(ir::Value* const root, emit.lookUp(code, table));
  return asInt32(emit, root, 0);
}

/// y = product(c, product(root, multiplier, shift) << h, outerShift) * 2^extra in codes of the result.
struct Gain {
  int64_t multiplier = 0;
  int shift = 0, outerShift = 0, extra = 0;
};

/// `gain`: of c * 2^h * root in codes of the result. `bits`: of the factor before the shift by h.
Gain gainOf(double gain, int bits, int centredBits) {
  Gain result;
  result.shift = 45 - bits;  // the multiplier has 30 bits, the root 15
  const int shift = std::min(bits - 1 - std::ilogb(gain * kRootOne), 62);
  result.multiplier = std::llround(std::ldexp(gain, shift + result.shift));
  // The product has up to 31 + centredBits bits.
  result.outerShift = std::max(shift, centredBits + 1);
  result.extra = result.outerShift - shift;
  return result;
}

/// 1 / sqrt(W) of each row: kRootOne * sqrt(2^29 / u), and h.
struct InverseRoot {
  ir::Value* root = nullptr;
  ir::Value* h = nullptr;
};

Result<InverseRoot> inverseRootOf(Emitter& emit, ir::Value* w) {
  // h = (clz - 1) / 2, rounded down.
  ir::Value* zeros = emit.unary(Unary::Clz, w);
  ir::Value* h = emit.shiftedRight(emit.binary(Binary::Sub, zeros, emit.number(2, w)), emit.number(1, w));
  for (int i = 0; i < 2; ++i) w = emit.binary(Binary::LeftShift, w, h);
  CARINA_TRY(ir::Value* const root, inverseRoot(emit, w));
  return InverseRoot{root, h};
}

/// Codes of c * factor, with 32-bit operands.
Result<ir::Value*> productOf(Emitter& emit, ir::Value* c, ir::Value* factor, const Gain& gain,
                             const Codes& to) {
  ir::Value* product = emit.product(c, factor, gain.outerShift);
  return emit.rescale(product, to.dtype, 0, to.zeroPoint, std::array{std::ldexp(1.0, gain.extra)});
}

/// What |x - zero| of 8-bit codes does not exceed.
int64_t largestOf(const Rows& rows) {
  return std::max(127 - rows.zero, 128 + rows.zero);
}

/// Elements whose squares fit 30 bits together.
int64_t partOf(const Rows& rows) {
  return (int64_t{1} << kEnergyBits) / (largestOf(rows) * largestOf(rows));
}

/// V + E of each row of 8-bit codes.
Result<ir::Value*> energyOfCodes(Emitter& emit, const Rows& rows, ir::Value* mean, const Epsilon& eps) {
  const int q = eps.q;
  CARINA_TRY(ir::Value* const x, asInt32(emit, rows.codes, rows.zero));
  ir::Value* sum = nullptr;
  if (x->rank() == 2 && rows.count <= kMaxNarrowSum &&
      largestOf(rows) * largestOf(rows) <= integerMax(DType::Int16)) {
    CARINA_TRY(ir::Value* const squares, in16Bits(emit, emit.product(x, x, 0)));
    sum = emit.reduce(Reduce::Sum, squares, 1);
  } else {
    sum = sumOfSquares(emit, x, std::max(q, 0), partOf(rows));
  }
  const auto number = [&](int64_t value) { return emit.number(value, x); };
  if (q < 0) sum = emit.binary(Binary::LeftShift, sum, number(-q));
  if (mean) sum = emit.binary(Binary::Sub, sum, emit.product(rows.sum.value, mean, kMeanFraction + q));
  return emit.binary(Binary::Add, sum, number(eps.value));
}

/// The largest h of rows of 8-bit codes that are not all equal.
int maxExponentOf(const Rows& rows, const Epsilon& eps) {
  const int64_t one = int64_t{1} << std::max(-eps.q, 0);  // (x - mean)^2 adds up to 1 - 1 / n at least
  const int64_t least = eps.value + std::max<int64_t>(one - ceilDiv(one, rows.count) - kEnergyError, 0);
  return std::max(31 - bitsOf(least), 0) / 2;
}

/// Codes of the normalized rows of 8-bit codes.
Result<ir::Value*> normalizedFrom8(Emitter& emit, const ir::Node& node, const Rows& rows, const Norm& norm,
                                   const Codes& to) {
  CARINA_TRY(Epsilon eps, epsilonOf(node, norm, rows.count, largestOf(rows), rows.scale, false));
  ir::Value* mean = nullptr;
  if (rows.sum.value) {
    CARINA_TRY(mean, meanOf(emit, rows, std::ldexp(1.0, kMeanFraction)));
    const int64_t parts = partsOf(rows.count, partOf(rows));  // each is rounded
    eps.value = std::max<int64_t>(eps.value, kEnergyError + parts / 2 + 1);
  }
  CARINA_TRY(ir::Value* const energy, energyOfCodes(emit, rows, mean, eps));
  CARINA_TRY(const InverseRoot inverse, inverseRootOf(emit, energy));

  const auto number = [&](int64_t value) { return emit.number(value, rows.codes); };
  const int factorBits = kCentredBits8 - std::max(maxExponentOf(rows, eps) - kMaxExponent, 0);
  const bool narrow =
      to.dtype == DType::Int8 && factorBits >= kMinFactorBits && rows.count >= kMinNarrowCount;
  constexpr int64_t kMeanShift = kMeanFraction - 1;
  ir::Value *power = number(int64_t{1} << kMaxExponent), *shift = inverse.h,
            *meanShift = number(kMeanShift - kMaxExponent);
  if (narrow) {
    ir::Value* const e = emit.binary(Binary::Minimum, inverse.h, number(kMaxExponent));
    power = emit.binary(Binary::LeftShift, number(1), e);
    CARINA_TRY(power, emit.rescale(power, DType::Int8, 0, 0, std::array{1.0}));
    CARINA_TRY(power, asInt32(emit, power, 0));
    shift = emit.binary(Binary::Sub, inverse.h, e);
    meanShift = emit.binary(Binary::Sub, number(kMeanShift), e);
  }
  CARINA_TRY(ir::Value* const x, asInt32(emit, rows.codes, rows.zero));
  ir::Value* c = emit.binary(Binary::Mul, x, power);
  const bool doubled = narrow || mean;
  if (doubled) {
    CARINA_TRY(c, in16Bits(emit, c, 2));
  }
  if (mean) {
    CARINA_TRY(mean, in16Bits(emit, emit.shiftedRight(mean, meanShift)));
    c = emit.binary(Binary::Sub, c, mean);
  }

  const int exponent = (narrow ? 0 : kMaxExponent) + (doubled ? 1 : 0);
  const Gain gain = gainOf(std::sqrt(static_cast<double>(rows.count) * std::ldexp(1.0, -eps.q) * 0x1p-29) /
                               (std::ldexp(kRootOne, exponent) * to.scale),
                           narrow ? factorBits : kCentredBits8, kCentredBits8);
  ir::Value* factor = emit.product(inverse.root, number(gain.multiplier), gain.shift);
  factor = emit.binary(Binary::LeftShift, factor, shift);
  if (!narrow) return productOf(emit, c, factor, gain, to);
  CARINA_TRY(factor, in16Bits(emit, factor));
  if (mean) {
    CARINA_TRY(c, in16Bits(emit, c));
  }
  return emit.rescale(emit.binary(Binary::Mul, c, factor), to.dtype, 0, to.zeroPoint,
                      std::array{std::ldexp(1.0, gain.extra - gain.outerShift)});
}

/// An upper bound of the |x - mean| or |x| of each row, in codes, at most twice the largest one.
Result<ir::Value*> extentOf(Emitter& emit, const Rows& rows, bool centred) {
  const auto reduced = [&](Reduce op, ir::Value* codes) {
    return asInt32(emit, emit.reduce(op, codes, 1), 0);
  };
  if (centred) {
    CARINA_TRY(ir::Value* const top, reduced(Reduce::Max, rows.codes));
    CARINA_TRY(ir::Value* const bottom, reduced(Reduce::Min, rows.codes));
    return emit.binary(Binary::Sub, top, bottom);
  }
  CARINA_TRY(ir::Value* const wide, asInt32(emit, rows.codes, 0));
  CARINA_TRY(ir::Value* const sizes,
             emit.rescale(emit.unary(Unary::Abs, wide), DType::Int16, 0, 0, std::array{1.0}));
  return reduced(Reduce::Max, sizes);
}

/// max(a - b, least) of int32 values.
ir::Value* differenceAtLeast(Emitter& emit, ir::Value* a, ir::Value* b, int64_t least) {
  ir::Value* difference = emit.binary(Binary::Sub, a, b);
  return emit.binary(Binary::Maximum, difference, emit.number(least, difference));
}

/// M * (x - mean), or M * x of rows of 16-bit codes.
Result<ir::Value*> scaledRows(Emitter& emit, const Rows& rows, int64_t factor) {
  CARINA_TRY(ir::Value * scaled, asInt32(emit, rows.codes, 0));
  if (factor != 1) {
    // The factor is a separate code: Ethos-U multiplies these without widening x first.
    ir::Value* code = emit.reshape(emit.scalar(DType::Int16, factor), Shape(scaled->shape().size(), 1));
    constexpr RescaleFactor kUnit{1 << 30, 30};
    scaled = emit.binary(Binary::Mul, scaled,
                         emit.rescale(code, DType::Int32, 0, 0, std::array{kUnit}, true, false));
  }
  if (!rows.sum.value) return scaled;
  CARINA_TRY(ir::Value* const mean, meanOf(emit, rows, static_cast<double>(factor)));
  return emit.binary(Binary::Sub, scaled, mean);
}

/// Codes of the normalized rows of 16-bit codes.
Result<ir::Value*> normalizedFrom16(Emitter& emit, const ir::Node& node, const Rows& rows, const Norm& norm,
                                    const Codes& to) {
  // x - mean has 17 bits and 14 fraction bits, which are exact if the row length divides M.
  constexpr int64_t kMost = int64_t{1} << 14;
  const int64_t factor = rows.count <= kMost ? kMost / rows.count * rows.count : kMost;
  const double scale = rows.scale / static_cast<double>(factor);
  CARINA_TRY(const Epsilon eps, epsilonOf(node, norm, rows.count, int64_t{1} << kCentredBits16, scale, true));
  const auto number = [&](int64_t value) { return emit.number(value, rows.codes); };

  CARINA_TRY(ir::Value * c, scaledRows(emit, rows, factor));
  CARINA_TRY(ir::Value* const extent, extentOf(emit, rows, norm.centred));
  const int excess = 32 + bitsOf(factor - 1) - kCentredBits16;
  ir::Value* shift = differenceAtLeast(emit, number(excess), emit.unary(Unary::Clz, extent), eps.least);
  c = emit.shiftedRight(c, shift);
  ir::Value* epsOfRow = number(eps.value);
  if (eps.value > 1) {
    if (eps.least > 0) shift = emit.binary(Binary::Sub, shift, number(eps.least));
    epsOfRow = emit.shiftedRight(emit.shiftedRight(epsOfRow, shift), shift);
  }
  ir::Value* energy = sumOfSquares(emit, c, std::max(eps.q, 0), partOfWideRows(rows.count));
  if (eps.q < 0) energy = emit.binary(Binary::LeftShift, energy, number(-eps.q));
  CARINA_TRY(const InverseRoot inverse, inverseRootOf(emit, emit.binary(Binary::Add, energy, epsOfRow)));

  // Rows that are not all zeros have V >= 2^(18 - lengthBits), h <= (14 + lengthBits) / 2.
  const int factorBits = 31 - (14 + bitsOf(rows.count - 1)) / 2;
  const Gain gain = gainOf(
      std::sqrt(static_cast<double>(rows.count) * std::ldexp(1.0, -eps.q) * 0x1p-29) / (kRootOne * to.scale),
      factorBits, kCentredBits16);
  ir::Value* multiplied = emit.product(inverse.root, number(gain.multiplier), gain.shift);
  return productOf(emit, c, emit.binary(Binary::LeftShift, multiplied, inverse.h), gain, to);
}

Status lowerRows(Lowering& lowering, const ir::Node& node, const Norm& norm) {
  const ir::Value* input = node.operands()[0];
  CARINA_TRY(const QuantizedValue real, lowering.plainValue(input));
  const bool wide = real.data.dtype() == DType::Int16;
  const std::optional<Codes> to = lowering.codesAfter(node.result());
  if ((!wide && real.data.dtype() != DType::Int8) || !to ||
      (to->dtype != DType::Int8 && to->dtype != DType::Int16)) {
    return fail(Code::NotQuantized, "{} is not quantized to 8 or 16 bits on both sides", node.opName())
        .withRemedy("quantize the network with this operator included");
  }
  if (wide && real.zeroPoint != 0) {
    return fail(Code::UnusableQuantization, "{} has 16-bit codes with zero point {}, expected 0",
                node.opName(), real.zeroPoint)
        .withRemedy("quantize 16-bit tensors symmetrically");
  }
  const Reduction reduction = reductionOf(lowering, real.data, norm.dims);
  if (reduction.count() > decompose::kLongestRow) {
    return fail(Code::NoIntegerForm, "{} over {} elements exceeds the limit of {}", node.opName(),
                reduction.count(), decompose::kLongestRow)
        .withRemedy("normalize parts of the tensor");
  }
  CARINA_TRY(const Rows rows, rowsOf(lowering, real, norm, reduction));
  CARINA_TRY(ir::Value* const codes,
             (wide ? normalizedFrom16 : normalizedFrom8)(lowering.emit(), node, rows, norm, *to));
  lowering.define(node.result(), QuantizedValue{{codes, Layout::ordered(input->shape(), reduction.order)},
                                                {to->scale},
                                                to->zeroPoint,
                                                false,
                                                {},
                                                {},
                                                {},
                                                {}});
  return {};
}

std::vector<int> lastDims(int64_t rank, size_t count) {
  std::vector<int> dims;
  for (int64_t d = rank - static_cast<int64_t>(count); d < rank; ++d) dims.push_back(static_cast<int>(d));
  return dims;
}

}  // namespace

Result<Norm> normOf(const ir::Node& node) {
  if (std::any_of(node.operands().begin() + 1, node.operands().end(),
                  [](const ir::Value* weight) { return weight; })) {
    return fail(Code::NotQuantized, "{} has weights between quantize nodes", node.opName())
        .withRemedy("quantize the normalized rows, their product and their sum separately");
  }
  if (const auto op = ir::dynCast<aten::LayerNorm>(&node))
    return Norm{lastDims(op.input()->rank(), op.normalizedShape().size()), op.eps(), true};
  const aten::RmsNorm op = ir::cast<aten::RmsNorm>(&node);
  return Norm{lastDims(op.input()->rank(), op.normalizedShape().size()),
              op.eps().value_or(std::numeric_limits<float>::epsilon()), false};
}

namespace {

Status lowerNorm(Lowering& lowering, const ir::Node& node) {
  CARINA_TRY(const Norm norm, normOf(node));
  return lowerRows(lowering, node, norm);
}

}  // namespace

void addNormRules(Rules& rules) {
  rules[&aten::LayerNorm::def()] = rules[&aten::RmsNorm::def()] = lowerNorm;
}

}  // namespace carina::lower
