// SPDX-License-Identifier: Apache-2.0
// SOFTMAX over the last dimension, with the steps of TFLite's kernels in 32-bit fixed point: exponentials
// from a table, their sum, its reciprocal by Newton's method (int8) or from a table (int16), and a product.
#include <algorithm>
#include <cmath>

#include "lower_tfl/lowering.hpp"
#include "lower_tfl/tables.hpp"
#include "tosa/ops.hpp"

namespace carina::lower_tfl {
namespace {

constexpr int kAccumulatorBits = 12;  // integer bits of the sum of exponentials

ir::Value* leadingZeros(Lowering& lowering, ir::Value* value) {
  return tosa::Clz::create(lowering.builder(), value);
}

/// x - max(x) per row of [rows, depth], as int32 in [-255, 0] or [-65535, 0].
ir::Value* belowLargest(Lowering& lowering, ir::Value* x) {
  Emitter& emit = lowering.emit();
  ir::Value* largest = emit.reduce(Reduce::Max, x, 1);
  return emit.binary(Binary::Sub, lowering.widened(x, 0), lowering.widened(largest, 0));
}

/// exp(difference * scale * beta) as Q0 for the differences -255 ... 0: 256 int32 numbers.
std::array<int32_t, 256> exponentials(double scale, double beta) {
  constexpr int kDifferenceBits = 5;
  const double factor = std::min(beta * scale * (1 << (31 - kDifferenceBits)), 2147483647.0);
  const Multiplier multiplier = quantizeMultiplier(factor);
  const int32_t least = -inputRadius(kDifferenceBits, multiplier.shift);
  std::array<int32_t, 256> table{};
  for (int32_t i = 0; i < 256; ++i) {
    const int32_t difference = i - 255;
    if (difference < least) continue;
    table[static_cast<size_t>(i)] = expOnNegative(multiply(difference, multiplier), kDifferenceBits);
  }
  return table;
}

/// 1 / (1 + x) of int32 numbers x = 2 * half - 1 in Q0, `half` in [2^30, 2^31): Newton's division in Q2.
ir::Value* reciprocalOfTwice(Lowering& lowering, ir::Value* half) {
  Emitter& emit = lowering.emit();
  const auto number = [&](int64_t value) { return lowering.number(value, half); };
  ir::Value* x =
      emit.binary(Binary::Add, lowering.highProduct(half, number(-1010580540)), number(1515870810));
  for (int step = 0; step < 3; ++step) {
    ir::Value* missing = emit.binary(Binary::Sub, number(1 << 29), lowering.highProduct(half, x));
    ir::Value* correction = emit.binary(Binary::LeftShift, lowering.highProduct(x, missing), number(2));
    x = emit.binary(Binary::Add, x, correction);
  }
  return x;
}

Result<ir::Value*> softmax8(Lowering& lowering, ir::Value* x, double scale, double beta, DType to) {
  Emitter& emit = lowering.emit();
  // The difference as an int8 code: -255 ... 0 become -128 ... 127.
  ir::Value* codes = lowering.narrowed(belowLargest(lowering, x), DType::Int8, 127);
  ir::Value* exps = wideLookup(lowering, codes, exponentials(scale, beta));
  const auto number = [&](int64_t value) { return lowering.number(value, exps); };
  ir::Value* sum = emit.reduce(Reduce::Sum, lowering.shiftedRight(exps, number(kAccumulatorBits)), 1);
  ir::Value* zeros = leadingZeros(lowering, sum);
  ir::Value* half = emit.binary(Binary::LeftShift, sum, emit.binary(Binary::Sub, zeros, number(1)));
  ir::Value* reciprocal = reciprocalOfTwice(lowering, half);
  // The reciprocal is in Q2 and lacks a factor of two: the product drops 30 bits instead of 31.
  ir::Value* product = lowering.highProduct(exps, reciprocal, 30);
  const int bits = to == DType::Int8 ? 8 : 16;
  ir::Value* shift = emit.binary(Binary::Sub, number(kAccumulatorBits + 31 - bits), zeros);
  return lowering.narrowed(lowering.shiftedRight(product, shift), to, to == DType::Int8 ? -128 : 0);
}

Result<ir::Value*> softmax16(Lowering& lowering, ir::Value* x, double scale, double beta) {
  Emitter& emit = lowering.emit();
  constexpr float kRange = 65535;
  const Quantum unit{static_cast<double>(2.0F / kRange), 0};
  const auto lookup = [&](ir::Value* codes, Tensor table) {
    return emit.rescale(emit.table(codes, std::move(table)), DType::Int16, 0, 0, std::array{0x1p-7});
  };
  // Differences in units of 10 / 65535, so that -10 is the lowest code.
  CARINA_TRY(ir::Value * difference, lowering.rescale(belowLargest(lowering, x), DType::Int32, 0, 0,
                                                      quantizeMultiplier(scale * beta / (10.0 / 65535.0))));
  const auto number = [&](int64_t value) { return lowering.number(value, difference); };
  ir::Value* codes = lowering.narrowed(emit.binary(Binary::Add, difference, number(32767)), DType::Int16, 0);
  CARINA_TRY(ir::Value * narrow,
             lookup(codes, interpolatedTable([](float v) { return std::exp(v); },
                                             {static_cast<double>(10.0F / kRange), 32767}, unit)));
  ir::Value* exps = lowering.widened(narrow, 0);
  ir::Value* sum = emit.reduce(Reduce::Sum, exps, 1);
  ir::Value* zeros = leadingZeros(lowering, sum);
  ir::Value* top = emit.binary(Binary::LeftShift, sum, emit.binary(Binary::Sub, zeros, number(1)));
  ir::Value* fraction = emit.binary(Binary::Sub, lowering.shiftedRight(top, number(14)),
                                    number((int64_t{1} << 15) + (int64_t{1} << 16)));
  CARINA_TRY(ir::Value * reciprocal,
             lookup(lowering.narrowed(fraction, DType::Int16, 0),
                    interpolatedTable([](float v) { return 1.0F / (1.0F + v); },
                                      {static_cast<double>(1.0F / kRange), -32768}, unit)));
  ir::Value* product = emit.binary(Binary::Mul, exps, lowering.widened(reciprocal, 0));
  ir::Value* result = lowering.shiftedRight(product, emit.binary(Binary::Sub, number(31), zeros));
  return lowering.narrowed(result, DType::Int16, 0);
}

Status lowerSoftmax(Lowering& lowering, const ir::Node& node) {
  const auto op = ir::cast<tfl::Softmax>(&node);
  CARINA_TRY(const Quantum from, lowering.codesOf(op.input(), "input"));
  CARINA_TRY(const Quantum to, lowering.codesOf(op.output(), "result"));
  const bool narrow = op.input()->dtype() == DType::Int8;
  const double wanted = narrow ? 0x1p-8 : 0x1p-15;
  if (std::abs(to.scale - wanted) > wanted * 0.001 || to.zero != (narrow ? -128 : 0)) {
    return fail(Code::UnusableQuantization,
                "its result has scale {} and zero point {}, but TensorFlow Lite's kernel requires {} and {}",
                to.scale, to.zero, wanted, narrow ? -128 : 0);
  }
  if (!(op.beta() > 0) || !std::isfinite(op.beta()))
    return fail(Code::NoIntegerForm, "beta is {}", op.beta());
  const int64_t depth = op.input()->rank() == 0 ? 1 : op.input()->shape().back();
  if (narrow && depth >= int64_t{1} << kAccumulatorBits)
    return fail(Code::NoIntegerForm,
                "it has {} classes: their sum overflows TensorFlow Lite's kernel (at most 4095)", depth);
  Emitter& emit = lowering.emit();
  ir::Value* x = emit.reshape(lowering.get(op.input()), {op.input()->numElements() / depth, depth});
  CARINA_TRY(ir::Value * codes, narrow ? softmax8(lowering, x, from.scale, op.beta(), DType::Int8)
                                       : softmax16(lowering, x, from.scale, op.beta()));
  lowering.define(op.output(), emit.reshape(codes, op.output()->shape()));
  return {};
}

}  // namespace

void addSoftmaxRules(Rules& rules) {
  rules[&tfl::Softmax::def()] = lowerSoftmax;
}

}  // namespace carina::lower_tfl
