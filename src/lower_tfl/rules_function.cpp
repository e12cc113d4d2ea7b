// SPDX-License-Identifier: Apache-2.0
// Functions of one value as TABLEs. For int8 every entry is what TFLite's kernel computes for that code; for
// int16 TFLite itself interpolates between 513 entries like TABLE (LOGISTIC and TANH between others, in
// 32-bit arithmetic).
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>

#include "lower_tfl/lowering.hpp"
#include "lower_tfl/tables.hpp"

namespace carina::lower_tfl {
namespace {

using Codes = std::function<int64_t(int64_t)>;  // code to code, saturated by defineTable

void defineTable(Lowering& lowering, const ir::Node& node, const Codes& codes) {
  Tensor table = Tensor::uninitialized(DType::Int8, {256});
  for (int64_t i = 0; i < 256; ++i) table.setIntegerAt(i, std::clamp<int64_t>(codes(i - 128), -128, 127));
  lowering.define(node.result(), lowering.emit().table(lowering.get(node.operand(0)), std::move(table)));
}

/// The float32 function at every code, rounded to the nearest.
Codes roundedFunction(Function function, const Quantum& from, const Quantum& to) {
  const float inverse = 1 / to.single();
  return [=](int64_t code) {
    const float x = from.single() * static_cast<float>(code - from.zero);
    const float y = std::round(function(x) * inverse) + static_cast<float>(to.zero);
    if (std::isnan(y)) return to.zero;
    return static_cast<int64_t>(std::clamp(y, -256.0F, 256.0F));
  };
}

Status defineFunction(Lowering& lowering, const ir::Node& node, Function function) {
  CARINA_TRY(const Quantum from, lowering.codesOf(node.operand(0), "input"));
  CARINA_TRY(const Quantum to, lowering.codesOf(node.result(), "result"));
  if (node.result()->dtype() == DType::Int8) {
    defineTable(lowering, node, roundedFunction(function, from, to));
    return {};
  }
  Emitter& emit = lowering.emit();
  ir::Value* fine = emit.table(lowering.get(node.operand(0)), interpolatedTable(function, from, to));
  CARINA_TRY(ir::Value * codes, emit.rescale(fine, DType::Int16, 0, 0, std::array{0x1p-7}));
  lowering.define(node.result(), codes);
  return {};
}

float gelu(float x) {
  return x * 0.5F * (1 + std::erf(x * static_cast<float>(std::numbers::sqrt2 / 2)));
}
float geluByTanh(float x) {
  constexpr auto kRoot = static_cast<float>(2 * std::numbers::inv_sqrtpi / std::numbers::sqrt2);
  return 0.5F * x * (1 + std::tanh(kRoot * (x + 0.044715F * x * x * x)));
}

const std::unordered_map<const ir::OpDef*, Function>& functions() {
  static const std::unordered_map<const ir::OpDef*, Function> table{
      {&tfl::Exp::def(), [](float x) { return std::exp(x); }},
      {&tfl::Log::def(), [](float x) { return std::log(x); }},
      {&tfl::Sqrt::def(), [](float x) { return std::sqrt(x); }},
      {&tfl::Square::def(), [](float x) { return x * x; }},
      {&tfl::Neg::def(), [](float x) { return -x; }},
      {&tfl::Elu::def(), [](float x) { return x < 0 ? std::exp(x) - 1 : x; }},
      {&tfl::Relu0To1::def(), [](float x) { return std::min(std::max(x, 0.0F), 1.0F); }},
  };
  return table;
}

Status lowerFunction(Lowering& lowering, const ir::Node& node) {
  return defineFunction(lowering, node, functions().at(&node.def()));
}

Status lowerGelu(Lowering& lowering, const ir::Node& node) {
  return defineFunction(lowering, node, ir::cast<tfl::Gelu>(&node).approximate() ? geluByTanh : gelu);
}

// LOGISTIC and TANH
// --------------------------------------------------------------------------------------------

/// TFLite's int16 logistic table: 65536 * logistic(i / 24), raised by half of the error of interpolation to
/// the next entry, in the middle.
int64_t sigmoidEntry(int64_t i) {
  const auto exact = [](double at) { return 65536.0 / (1.0 + std::exp(-at / 24.0)); };
  const auto at = static_cast<double>(i);
  const double missed = exact(at + 0.5) - (exact(at) + exact(at + 1)) / 2;
  return i >= 255 ? 65535 : std::llround(exact(at) + missed / 2);
}

/// The entries up to 254, and the step from each to its successor.
struct SigmoidTable {
  std::array<int32_t, 256> entries{}, steps{};
};
const SigmoidTable& sigmoidTable() {
  static const SigmoidTable table = [] {
    SigmoidTable made;
    for (size_t i = 0; i < 255; ++i) {
      made.entries[i] = static_cast<int32_t>(sigmoidEntry(static_cast<int64_t>(i)));
      made.steps[i] = static_cast<int32_t>(sigmoidEntry(static_cast<int64_t>(i) + 1)) - made.entries[i];
    }
    return made;
  }();
  return table;
}

/// The scaling that LOGISTIC (no left shift) and TANH (at most one) apply to input codes.
WideInput wideInput(double scale, int mostLeftShift) {
  int exponent = 0;
  if (std::frexp(static_cast<float>(scale), &exponent) == 0.5F) {
    const int left = exponent - 1 + 12;
    if (left >= 0 && left <= mostLeftShift) return {int64_t{3} << left, 0};
  }
  WideInput input;
  double multiplier = scale * 4096 * 3;
  while (multiplier <= 32767.0 / 2 && input.shift <= 30) {
    ++input.shift;
    multiplier *= 2;
  }
  input.multiplier = static_cast<int64_t>(multiplier);
  return input;
}

}  // namespace

/// TFLite's own interpolation, between entries of the logistic function that are further apart than those of
/// a TABLE, in 32-bit arithmetic. tanh(x) = 2 * logistic(2 * x) - 1.
ir::Value* wideSigmoid(Lowering& lowering, ir::Value* input, const WideInput& scaled, bool tanh) {
  Emitter& emit = lowering.emit();
  ir::Value* x = lowering.widened(input, 0);
  const auto number = [&](int64_t value) { return lowering.number(value, x); };
  x = emit.binary(Binary::Mul, x, number(scaled.multiplier));
  if (scaled.shift > 0) x = lowering.shiftedRight(x, number(scaled.shift));
  const int fractionBits = tanh ? 8 : 9;
  ir::Value* size = emit.unary(Unary::Abs, x);
  ir::Value* index = emit.binary(Binary::ArithmeticRightShift, size, number(fractionBits));
  ir::Value* fraction = emit.binary(Binary::Sub, size, lowering.shiftedLeft(index, fractionBits));
  auto [entries, steps] = sigmoidTable();
  entries[255] = tanh ? 0xffff : 2 * 0x7fff;  // also for larger indices
  ir::Value* code = lowering.narrowed(index, DType::Int8, -128);
  ir::Value* base = lowering.shiftedLeft(wideLookup(lowering, code, entries), fractionBits);
  ir::Value* fine =
      emit.binary(Binary::Add, base, emit.binary(Binary::Mul, fraction, wideLookup(lowering, code, steps)));
  // Above one half for positive x, mirrored for negative ones, which are rounded in the other direction.
  const int64_t half = int64_t{1} << (tanh ? 23 : 24);
  ir::Value* negative = emit.binary(Binary::Maximum, emit.binary(Binary::Minimum, x, number(0)), number(-1));
  ir::Value* sign = emit.binary(Binary::Add, lowering.shiftedLeft(negative, 1), number(1));
  fine = emit.binary(Binary::Mul, emit.binary(Binary::Sub, fine, number(half)), sign);
  fine = emit.binary(Binary::Add, emit.binary(Binary::Add, fine, negative), number(tanh ? 128 : half + 512));
  fine = emit.binary(Binary::ArithmeticRightShift, fine, number(tanh ? 8 : 10));
  return lowering.narrowed(fine, DType::Int16, 0);
}

namespace {

template <bool kTanh>
Status lowerSigmoid(Lowering& lowering, const ir::Node& node) {
  const ir::Value *input = node.operand(0), *output = node.result();
  CARINA_TRY(const Quantum from, lowering.codesOf(input, "input"));
  CARINA_TRY(const Quantum to, lowering.codesOf(output, "result"));
  const bool wide = output->dtype() == DType::Int16;
  const double wanted = wide ? 0x1p-15 : kTanh ? 0x1p-7 : 0x1p-8;
  const int64_t zero = wide || kTanh ? 0 : -128;
  if (to.scale != wanted || to.zero != zero) {
    return fail(Code::UnusableQuantization,
                "its result has scale {} and zero point {}, but TensorFlow Lite's kernel requires {} and {}",
                to.scale, to.zero, wanted, zero);
  }
  if (wide) {
    const WideInput scaled = wideInput(from.scale, kTanh ? 1 : 0);
    if (scaled.multiplier > 32767) {
      return fail(Code::UnusableQuantization,
                  "its input has scale {}, too large for TensorFlow Lite's kernel", from.scale)
          .withRemedy("quantize the network again: values beyond 16 make no difference");
    }
    lowering.define(output, wideSigmoid(lowering, lowering.get(input), scaled, kTanh));
    return {};
  }
  if (lowering.isUnsigned(output)) {
    const Function function = kTanh ? Function([](float x) { return std::tanh(x); })
                                    : Function([](float x) { return 1 / (1 + std::exp(-x)); });
    defineTable(lowering, node, roundedFunction(function, from, to));
    return {};
  }
  // Input codes as Q4; larger values saturate.
  const Multiplier factor = quantizeMultiplier(from.scale * (1 << 27));
  const int32_t radius = inputRadius(4, factor.shift);
  defineTable(lowering, node, [&](int64_t code) -> int64_t {
    const auto x = static_cast<int32_t>(code - from.zero);
    if (x <= -radius) return -128;
    if (x >= radius) return 127;
    const int32_t q4 = multiply(x, factor);
    return kTanh ? roundingDivide(tanhOf(q4), 24) : roundingDivide(logistic(q4), 23) - 128;
  });
  return {};
}

// Other functions with their own arithmetic
// --------------------------------------------------------------------------

int16_t saturated16(int64_t x) {
  return static_cast<int16_t>(std::clamp<int64_t>(x, -32768, 32767));
}
int16_t highMul16(int16_t a, int16_t b) {
  const int64_t product = int64_t{a} * b;
  return saturated16((product + (1 << 14)) >> 15);
}
/// The 16 high bits of a multiplier.
int16_t high16(int32_t multiplier) {
  if (multiplier >= std::numeric_limits<int32_t>::max() - (1 << 15)) return 32767;
  return static_cast<int16_t>((multiplier + (1 << 15)) >> 16);
}

/// x * relu6(x + 3) / 6 in 16-bit fixed point.
Status lowerHardSwish(Lowering& lowering, const ir::Node& node) {
  CARINA_TRY(const Quantum from, lowering.bytesOf(node.operand(0), "input"));
  CARINA_TRY(const Quantum to, lowering.bytesOf(node.result(), "result"));
  const float fine = (1.0F / 128.0F) * from.single(), unit = 3.0F / 32768.0F;
  const Multiplier output = quantizeMultiplier(static_cast<double>(fine / to.single()));
  const Multiplier relu = quantizeMultiplier(static_cast<double>(fine / unit));
  if (output.shift > 0)
    return fail(Code::UnusableQuantization, "its result's scale {} is too small for its input's, {}",
                to.scale, from.scale);
  defineTable(lowering, node, [&](int64_t code) {
    const auto x = static_cast<int16_t>((code - from.zero) * 128);
    const int16_t onOutputScale = highMul16(x, high16(output.value));
    int16_t gate = x;  // becomes x / 3 in Q0, then (x / 3 + 1) / 2
    if (relu.shift > 0) gate = saturated16(int64_t{gate} << (relu.shift - 1));
    gate = highMul16(gate, high16(relu.value));
    if (relu.shift > 0) gate = saturated16(int64_t{gate} << 1);
    if (relu.shift < 0) gate = static_cast<int16_t>(roundingDivide(gate, -relu.shift));
    gate = static_cast<int16_t>((gate + (1 << 15)) >> 1);
    const auto product = static_cast<int16_t>(int32_t{gate} * onOutputScale / (1 << 15));
    return roundingDivide(product, -output.shift) + to.zero;
  });
  return {};
}

Status lowerLeakyRelu(Lowering& lowering, const ir::Node& node) {
  const auto alpha = static_cast<float>(ir::cast<tfl::LeakyRelu>(&node).alpha());
  CARINA_TRY(const Quantum from, lowering.bytesOf(node.operand(0), "input"));
  CARINA_TRY(const Quantum to, lowering.bytesOf(node.result(), "result"));
  if (!std::isfinite(alpha)) return fail(Code::NoIntegerForm, "alpha is {}", alpha);
  const Multiplier positive = quantizeMultiplier(static_cast<double>(from.single() / to.single()));
  const Multiplier negative =
      quantizeMultiplier(std::abs(static_cast<double>(from.single() * alpha / to.single())));
  defineTable(lowering, node, [&](int64_t code) {
    const auto x = static_cast<int32_t>(code - from.zero);
    if (x >= 0) return multiply(x, positive) + to.zero;
    return (alpha < 0 ? -multiply(x, negative) : multiply(x, negative)) + to.zero;
  });
  return {};
}

Status lowerRsqrt(Lowering& lowering, const ir::Node& node) {
  CARINA_TRY(const Quantum from, lowering.bytesOf(node.operand(0), "input"));
  CARINA_TRY(const Quantum to, lowering.bytesOf(node.result(), "result"));
  const Multiplier scale =
      quantizeMultiplier(1.0 / static_cast<double>(std::sqrt(from.single()) * to.single()));
  constexpr int kBits = 20;
  defineTable(lowering, node, [&](int64_t code) -> int64_t {
    // Negative numbers have no root and TFLite rejects them; here they and 0 give the largest result.
    if (code <= from.zero) return 127;
    const Multiplier root = inverseSqrt(static_cast<int32_t>(code - from.zero));
    const int32_t fine = multiply(1, {root.value, root.shift + kBits});
    return multiply(fine, {scale.value, scale.shift - kBits}) + to.zero;
  });
  return {};
}

/// Uses the rule for int8, or for wider codes the one that another file registered.
template <Rule kNarrow, const ir::OpDef& (*kDef)()>
struct ByWidth {
  static inline Rule wide = nullptr;
  static Status lower(Lowering& lowering, const ir::Node& node) {
    return node.result()->dtype() == DType::Int8 ? kNarrow(lowering, node) : wide(lowering, node);
  }
  static void add(Rules& rules) {
    wide = rules.at(&kDef());
    rules[&kDef()] = lower;
  }
};

}  // namespace

void addFunctionRules(Rules& rules) {
  for (const auto& entry : functions()) rules[entry.first] = lowerFunction;
  rules[&tfl::Gelu::def()] = lowerGelu;
  rules[&tfl::Logistic::def()] = lowerSigmoid<false>;
  rules[&tfl::Tanh::def()] = lowerSigmoid<true>;
  rules[&tfl::HardSwish::def()] = lowerHardSwish;
  rules[&tfl::Rsqrt::def()] = lowerRsqrt;
  ByWidth<lowerLeakyRelu, &tfl::LeakyRelu::def>::add(rules);
}

}  // namespace carina::lower_tfl
