// SPDX-License-Identifier: Apache-2.0
// Normalisation of rows with results of 32 bits (wide.hpp): as in rules_norm.cpp, with more bits throughout.
// With d = x - mean as integers of up to 30 bits:
//
//   c = d * 2^up / 2^8                 up per row, so that the largest |c| has 22 bits
//   V = sum(c^2 / 2^q)                 q so that V < 2^31 whatever the row holds
//   W = V + E * 4^up                   E = eps in units of V
//   u = W * 4^h in [2^29, 2^31)        h per row
//   y = c * 2^h * sqrt(n / 2^q) / sqrt(u)
//
// |c * 2^h| fits 31 bits since c^2 / 2^q <= V.
#include <algorithm>
#include <bit>
#include <cmath>

#include "aten/ops.hpp"
#include "decompose/norms.hpp"
#include "lower/norm.hpp"
#include "lower/reduction.hpp"
#include "lower/rules.hpp"
#include "lower/wide.hpp"

namespace carina::lower {
namespace {

constexpr int kRowBits = 30, kDropped = 8, kCentredBits = kRowBits - kDropped;  // of d and c

/// d as [outer, n] or [outer, n, inner], with scale.
struct Rows {
  Wide d;
  int64_t count = 1;
};

Result<Rows> rowsOf(Lowering& lowering, const Wide& input, const Norm& norm, const Reduction& reduction) {
  Emitter& emit = lowering.emit();
  Rows rows{input, reduction.count()};
  Shape shape{reduction.outer, rows.count};
  if (reduction.inner != 1) shape.push_back(reduction.inner);
  rows.d.data = {emit.reshape(reduction.value, shape), Layout::rowMajor(shape)};
  if (!norm.centred) {
    rows.d = inUnits(emit, rows.d, rows.d.reach() / (std::ldexp(1.0, kRowBits) - 1));
    return rows;
  }
  // The mean in units of d: sums of 31 bits, in units of the codes if these are exact.
  const Wide x = inUnits(emit, rows.d, rows.d.reach() / (std::ldexp(1.0, kRowBits - 1) - 1));
  const double most = rows.d.reach() * static_cast<double>(rows.count);
  const Wide addend = inUnits(emit, rows.d, std::max(rows.d.scale, unitFor(most, kRowBits)));
  Wide mean{{emit.reduce(Reduce::Sum, addend.data.value, 1), {}},
            addend.scale / static_cast<double>(rows.count),
            {addend.within.low * rows.count, addend.within.high * rows.count}};
  mean = inUnits(emit, mean, x.scale);
  rows.d.data.value = emit.binary(Binary::Sub, x.data.value, mean.data.value);
  rows.d.scale = x.scale;
  return rows;
}

/// Left shifts of rows, at most `most`, that make their largest number have 30 bits.
ir::Value* shiftsOf(Emitter& emit, ir::Value* d, int64_t most) {
  ir::Value* largest = emit.reduce(Reduce::Max, emit.unary(Unary::Abs, d), 1);
  ir::Value* zeros = emit.unary(Unary::Clz, largest);
  ir::Value* up = emit.binary(Binary::Sub, zeros, emit.number(32 - kRowBits, zeros));
  up = emit.binary(Binary::Maximum, up, emit.number(0, up));
  return emit.binary(Binary::Minimum, up, emit.number(most, up));
}

Status lowerRows(Lowering& lowering, const ir::Node& node, const Norm& norm) {
  Emitter& emit = lowering.emit();
  const ir::Value* input = node.operands()[0];
  CARINA_TRY(const Wide x, wideOperand(lowering, input));
  const Reduction reduction = reductionOf(lowering, x.data, norm.dims);
  if (reduction.count() > decompose::kLongestRow) {
    return fail(Code::NoIntegerForm, "{} over {} elements exceeds the limit of {}", node.opName(),
                reduction.count(), decompose::kLongestRow)
        .withRemedy("normalize parts of the tensor");
  }
  CARINA_TRY(const Rows rows, rowsOf(lowering, x, norm, reduction));
  const auto count = static_cast<double>(rows.count);
  const int lengthBits = static_cast<int>(std::bit_width(static_cast<uint64_t>(rows.count - 1)));
  const int q = lengthBits + 2 * kCentredBits - kRowBits;

  // eps in units of V for rows that are shifted by `most`; it has 29 bits. Rows that `most` keeps from being
  // shifted further are negligible compared to eps.
  const double unit = rows.d.scale * rows.d.scale / count;
  int64_t most = kRowBits - 2;
  const auto units = [&] { return norm.eps / std::ldexp(unit, q + 2 * kDropped) * std::pow(4.0, most); };
  while (units() > 0x1p29 && most > 0) --most;
  if (units() > 0x1p29) {
    return fail(Code::UnusableQuantization, "eps {} of {} exceeds every value of its input", norm.eps,
                node.opName())
        .withRemedy("calibrate with samples like the network's real inputs");
  }
  const int64_t eps = std::max<int64_t>(std::llround(units()), 1);
  ir::Value* up = shiftsOf(emit, rows.d.data.value, most);
  ir::Value* c = emit.binary(Binary::LeftShift, rows.d.data.value, up);
  c = emit.product(c, emit.number(1, c), kDropped);
  ir::Value* energy = sumOfSquares(emit, c, q, partOfWideRows(rows.count));
  ir::Value* less = emit.binary(Binary::Sub, emit.number(most, up), up);
  ir::Value* epsOfRow = emit.shiftedRight(emit.shiftedRight(emit.number(eps, up), less), less);
  energy = emit.binary(Binary::Add, energy, epsOfRow);
  energy = emit.binary(Binary::Maximum, energy, emit.number(1, energy));
  // h = (clz - 1) / 2, rounded down.
  ir::Value* h = emit.binary(Binary::Sub, emit.unary(Unary::Clz, energy), emit.number(2, energy));
  h = emit.shiftedRight(h, emit.number(1, energy));
  for (int i = 0; i < 2; ++i) energy = emit.binary(Binary::LeftShift, energy, h);

  const Interval energies{int64_t{1} << 29, integerMax(DType::Int32)};
  CARINA_TRY(const Wide root,
             wideFunction(emit, {{energy, {}}, 1, energies}, [](double u) { return std::sqrt(0x1p29 / u); }));
  c = emit.binary(Binary::LeftShift, c, h);
  // No element exceeds sqrt(n), for which the unit leaves 29 bits.
  const double gain = std::sqrt(count * std::ldexp(1.0, -q) * 0x1p-29) * root.scale;
  const double reach = std::sqrt(count) * 1.001;
  int shift = 0;
  while (reach / std::ldexp(gain, shift) > 0x1p29 && shift < 62) ++shift;
  const double scale = std::ldexp(gain, shift);
  const auto end = static_cast<int64_t>(std::ceil(reach / scale));
  defineWide(lowering, node.result(),
             {{emit.product(c, root.data.value, shift), Layout::ordered(input->shape(), reduction.order)},
              scale,
              {-end, end}});
  return {};
}

}  // namespace

Status lowerWideNorm(Lowering& lowering, const ir::Node& node) {
  CARINA_TRY(const Norm norm, normOf(node));
  return lowerRows(lowering, node, norm);
}

}  // namespace carina::lower
