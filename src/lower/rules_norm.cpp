// SPDX-License-Identifier: Apache-2.0
// Normalisation of rows, (x - mean) / sqrt(variance + eps) and x / sqrt(mean(x^2) + eps), without weights.
//
// Rows may differ by orders of magnitude (outlier tokens), and their squares by twice as many: no tensor of
// 8 or 16-bit codes holds the variances of all of them. They are computed in 32 bits and, for 16-bit codes,
// with an exponent per row (block floating point). With d = M * (x - mean) as integers:
//
//   c = d / 2^s                        s per row, so that |c| <= 2^18 (8-bit codes: s = 0, |c| <= 2^8 M)
//   V = sum(c^2 / 2^q)                 q so that V <= 2^30 whatever the row holds; may be negative
//   W = V + E / 4^s                    E = eps in units of V
//   u = W * 4^h in [2^29, 2^31)        h per row
//   y = c * 2^h * sqrt(n / 2^q) / sqrt(u)
//
// where n is the length of a row, and a table gives 1 / sqrt(u) to 2^-14. The result is within a code (of 16
// bits: two) of what real arithmetic gives for the codes of x.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "aten/ops.hpp"
#include "lower/fine_table.hpp"
#include "lower/norm.hpp"
#include "lower/reduction.hpp"
#include "lower/rules.hpp"

namespace carina::lower {
namespace {

constexpr int kEnergyBits = 30;                     // of V
constexpr int kCodeBits8 = 8, kCentredBits16 = 18;  // of c; with 8-bit codes, in addition to those of M
constexpr int64_t kMaxCount = 65535;  // elements of a row: the sum of their 16-bit codes fits 32 bits

/// The rows as integers M * (x - mean), or M * x, and their parameters.
struct Rows {
  ir::Value* codes = nullptr;  // x as [outer, n] or [outer, n, inner]
  ir::Value* scaled = nullptr;
  Shape perRow;       // with 1 in place of n
  int64_t count = 1;  // n
  int64_t zero = 0;
  int64_t factor = 1;  // M
  double scale = 1;    // of the integers
};

int bitsOf(int64_t number) {
  return static_cast<int>(std::bit_width(static_cast<uint64_t>(number)));
}

Result<ir::Value*> asInt32(Emitter& emit, ir::Value* codes, int64_t zero) {
  return emit.rescale(codes, DType::Int32, zero, 0, std::array{1.0});
}

/// x * M as int32. The factor is a separate code: Ethos-U multiplies these without widening x first.
Result<ir::Value*> times(Emitter& emit, const Rows& rows) {
  CARINA_TRY(ir::Value* const wide, asInt32(emit, rows.codes, rows.zero));
  if (rows.factor == 1) return wide;
  ir::Value* factor =
      emit.reshape(emit.scalar(rows.codes->dtype(), rows.factor), Shape(wide->shape().size(), 1));
  constexpr RescaleFactor kUnit{1 << 30, 30};
  ir::Value* number = emit.rescale(factor, DType::Int32, 0, 0, std::array{kUnit}, true, false);
  return emit.binary(Binary::Mul, wide, number);
}

Result<Rows> rowsOf(Lowering& lowering, const QuantizedValue& real, const Norm& norm,
                    const Reduction& reduction) {
  Emitter& emit = lowering.emit();
  const bool wide = real.data.dtype() == DType::Int16;
  Rows rows;
  rows.count = reduction.count();
  rows.zero = real.zeroPoint;
  // x - mean has 9 or 17 bits and 6 or 14 fraction bits; the fraction is exact if the row length divides M.
  // 8-bit codes that are not centred have no fraction.
  const int64_t most = wide ? int64_t{1} << 14 : norm.centred ? int64_t{1} << 6 : 1;
  rows.factor = rows.count <= most ? most / rows.count * rows.count : most;
  rows.scale = real.scale() / static_cast<double>(rows.factor);
  Shape shape{reduction.outer, rows.count};
  rows.perRow = {reduction.outer, 1};
  if (reduction.inner != 1) {
    shape.push_back(reduction.inner);
    rows.perRow.push_back(reduction.inner);
  }
  rows.codes = emit.reshape(reduction.value, shape);
  CARINA_TRY(rows.scaled, times(emit, rows));
  if (!norm.centred) return rows;
  CARINA_TRY(const Sum sum, summed(lowering, reduction, rows.zero));  // kMaxCount: no shift
  const double perElement = static_cast<double>(rows.factor) / static_cast<double>(rows.count);
  CARINA_TRY(ir::Value* const mean,
             emit.rescale(emit.reshape(sum.value, rows.perRow), DType::Int32, 0, 0, std::array{perElement}));
  rows.scaled = emit.binary(Binary::Sub, rows.scaled, mean);
  return rows;
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
  Emitter& emit = lowering.emit();
  const Reduction reduction = reductionOf(lowering, real.data, norm.dims);
  if (reduction.count() > kMaxCount) {
    return fail(Code::NoIntegerForm, "{} over {} elements exceeds the limit of {}", node.opName(),
                reduction.count(), kMaxCount)
        .withRemedy("normalize parts of the tensor");
  }
  CARINA_TRY(const Rows rows, rowsOf(lowering, real, norm, reduction));
  const auto number = [&](int64_t value) { return emit.number(value, rows.scaled); };

  const int centredBits = wide ? kCentredBits16 : kCodeBits8 + bitsOf(rows.factor - 1),
            lengthBits = bitsOf(rows.count - 1);
  // E has 29 bits. If eps exceeds them in units of V, then with 8-bit codes, which share one exponent, it
  // exceeds all of V, which drops its low bits; with 16-bit codes the least s grows, which only leaves too
  // few bits to rows that are negligible compared to eps.
  int q = lengthBits + 2 * centredBits - kEnergyBits, least = 0;
  const double unit = rows.scale * rows.scale / static_cast<double>(rows.count);
  const auto units = [&] { return norm.eps / std::ldexp(unit, q + 2 * least); };
  while (units() > 0x1p29 && std::max(q, least) < 30) ++(wide ? least : q);
  if (units() > 0x1p29) {
    return fail(Code::UnusableQuantization, "eps {} of {} exceeds every value of its input", norm.eps,
                node.opName())
        .withRemedy("calibrate with samples like the network's real inputs");
  }
  const auto eps = std::max<int64_t>(std::llround(units()), 1);

  ir::Value* c = rows.scaled;
  ir::Value* epsOfRow = number(eps);
  if (wide) {
    CARINA_TRY(ir::Value* const extent, extentOf(emit, rows, norm.centred));
    const int excess = 32 + bitsOf(rows.factor - 1) - centredBits;
    ir::Value* shift = differenceAtLeast(emit, number(excess), emit.unary(Unary::Clz, extent), least);
    c = emit.shiftedRight(c, shift);
    if (eps > 1) {
      if (least > 0) shift = emit.binary(Binary::Sub, shift, number(least));
      epsOfRow = emit.shiftedRight(emit.shiftedRight(epsOfRow, shift), shift);
    }
  }
  ir::Value* energy = emit.reduce(Reduce::Sum, emit.product(c, c, std::max(q, 0)), 1);
  if (q < 0) energy = emit.binary(Binary::LeftShift, energy, number(-q));
  energy = emit.binary(Binary::Add, energy, epsOfRow);
  // h = (clz - 1) / 2, rounded down.
  ir::Value* zeros = emit.unary(Unary::Clz, energy);
  ir::Value* h = emit.shiftedRight(emit.binary(Binary::Sub, zeros, number(2)), number(1));
  for (int i = 0; i < 2; ++i) energy = emit.binary(Binary::LeftShift, energy, h);

  // Rows that are not all zeros have V >= 2^(18 - lengthBits), h <= (14 + lengthBits) / 2 in 16 bits.
  const int factorBits = wide ? 31 - (14 + lengthBits) / 2 : 15;
  const Gain gain = gainOf(
      std::sqrt(static_cast<double>(rows.count) * std::ldexp(1.0, -q) * 0x1p-29) / (kRootOne * to->scale),
      factorBits, centredBits);
  CARINA_TRY(ir::Value * factor, inverseRoot(emit, energy));
  factor = emit.product(factor, number(gain.multiplier), gain.shift);
  factor = emit.binary(Binary::LeftShift, factor, h);
  ir::Value* product = emit.product(c, factor, gain.outerShift);
  CARINA_TRY(ir::Value* const codes,
             emit.rescale(product, to->dtype, 0, to->zeroPoint, std::array{std::ldexp(1.0, gain.extra)}));
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
