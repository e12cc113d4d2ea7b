// SPDX-License-Identifier: Apache-2.0
// Arithmetic of two operands, and conversions between quantizations.
#include <algorithm>
#include <optional>

#include "lower_tfl/lowering.hpp"

namespace carina::lower_tfl {
namespace {

int64_t commonRank(const ir::Node& node) {
  return node.result()->rank();
}

/// Bits that operands gain before they are scaled, which keeps rounding errors small.
int headroom(DType dtype) {
  return dtype == DType::Int8 ? 20 : 15;
}

/// Unquantized int32 operands.
template <typename Op>
Status integers(Lowering& lowering, const ir::Node& node, Binary binary) {
  const Op op = ir::cast<Op>(&node);
  if (op.fusedActivationFunction() != tfl::Activation::NONE)
    return fail(Code::NoIntegerForm, "it has a fused activation on int32 values").withRemedy("leave it out");
  const int64_t rank = std::max<int64_t>(commonRank(node), 1);
  ir::Value* value =
      lowering.emit().binary(binary, lowering.ranked(op.x(), rank), lowering.ranked(op.y(), rank));
  lowering.define(op.output(), lowering.emit().reshape(value, op.output()->shape()));
  return {};
}

/// ADD and SUB: both operands in units of half the larger scale / 2^headroom.
template <typename Op>
Status lowerSum(Lowering& lowering, const ir::Node& node) {
  const Op op = ir::cast<Op>(&node);
  constexpr bool kSub = std::is_same_v<Op, tfl::Sub>;
  if (op.x()->dtype() == DType::Int32) return integers<Op>(lowering, node, kSub ? Binary::Sub : Binary::Add);
  CARINA_TRY(const Quantum x, lowering.codesOf(op.x(), "first operand"));
  CARINA_TRY(const Quantum y, lowering.codesOf(op.y(), "second operand"));
  CARINA_TRY(const Quantum to, lowering.codesOf(op.output(), "result"));
  CARINA_TRY(const CodeRange range, lowering.activation(op.fusedActivationFunction(), op.output()));
  const int left = headroom(op.x()->dtype());
  double factorX = 0, factorY = 0, factorOut = 0;
  if constexpr (kSub) {
    // The kernel of SUB computes these in float32.
    const float twice = 2 * std::max(x.single(), y.single());
    factorX = static_cast<double>(x.single() / twice);
    factorY = static_cast<double>(y.single() / twice);
    factorOut = static_cast<double>(twice / (static_cast<float>(1 << left) * to.single()));
  } else {
    const double twice = 2 * std::max(x.scale, y.scale);
    factorX = x.scale / twice;
    factorY = y.scale / twice;
    factorOut = twice / ((1 << left) * to.scale);
  }
  const auto operand = [&](const ir::Value* value, const Quantum& quantum, double factor) {
    ir::Value* wide = lowering.widened(lowering.ranked(value, commonRank(node)), quantum.zero, left);
    return lowering.rescale(wide, DType::Int32, 0, 0, quantizeMultiplier(factor));
  };
  CARINA_TRY(ir::Value * a, operand(op.x(), x, factorX));
  CARINA_TRY(ir::Value * b, operand(op.y(), y, factorY));
  ir::Value* sum = lowering.emit().binary(kSub ? Binary::Sub : Binary::Add, a, b);
  CARINA_TRY(ir::Value * codes,
             lowering.rescale(sum, op.output()->dtype(), 0, to.zero, quantizeMultiplier(factorOut)));
  lowering.define(op.output(), lowering.clamped(codes, range));
  return {};
}

Status lowerMul(Lowering& lowering, const ir::Node& node) {
  const auto op = ir::cast<tfl::Mul>(&node);
  if (op.x()->dtype() == DType::Int32) return integers<tfl::Mul>(lowering, node, Binary::Mul);
  CARINA_TRY(const Quantum x, lowering.codesOf(op.x(), "first operand"));
  CARINA_TRY(const Quantum y, lowering.codesOf(op.y(), "second operand"));
  CARINA_TRY(const Quantum to, lowering.codesOf(op.output(), "result"));
  CARINA_TRY(const CodeRange range, lowering.activation(op.fusedActivationFunction(), op.output()));
  ir::Value* a = lowering.widened(lowering.ranked(op.x(), commonRank(node)), x.zero);
  ir::Value* b = lowering.widened(lowering.ranked(op.y(), commonRank(node)), y.zero);
  CARINA_TRY(ir::Value * codes,
             lowering.rescale(lowering.emit().binary(Binary::Mul, a, b), op.output()->dtype(), 0, to.zero,
                              quantizeMultiplier(x.scale * y.scale / to.scale)));
  lowering.define(op.output(), lowering.clamped(codes, range));
  return {};
}

Status lowerSquaredDifference(Lowering& lowering, const ir::Node& node) {
  const auto op = ir::cast<tfl::SquaredDifference>(&node);
  CARINA_TRY(const Quantum x, lowering.codesOf(op.x(), "first operand"));
  CARINA_TRY(const Quantum y, lowering.codesOf(op.y(), "second operand"));
  CARINA_TRY(const Quantum to, lowering.codesOf(op.output(), "result"));
  const int left = op.x()->dtype() == DType::Int8 ? 7 : 0;
  const double twice = 2 * std::max(x.scale, y.scale);
  const auto operand = [&](const ir::Value* value, const Quantum& quantum) {
    ir::Value* wide = lowering.widened(lowering.ranked(value, commonRank(node)), quantum.zero, left);
    return lowering.rescale(wide, DType::Int32, 0, 0, quantizeMultiplier(quantum.scale / twice));
  };
  CARINA_TRY(ir::Value * a, operand(op.x(), x));
  CARINA_TRY(ir::Value * b, operand(op.y(), y));
  ir::Value* difference = lowering.emit().binary(Binary::Sub, a, b);
  // The kernel multiplies 2^(2 left) and the scale in float32.
  const double unit = static_cast<double>(static_cast<float>(1 << (2 * left)) * to.single());
  CARINA_TRY(ir::Value * codes,
             lowering.rescale(lowering.emit().binary(Binary::Mul, difference, difference),
                              op.output()->dtype(), 0, to.zero, quantizeMultiplier(twice * twice / unit)));
  lowering.define(op.output(), codes);
  return {};
}

/// Compares the codes directly: operands and result share one quantization, which converters ensure.
template <Binary kBinary>
Status lowerExtremum(Lowering& lowering, const ir::Node& node) {
  const ir::Value* output = node.result();
  const int64_t rank = std::max<int64_t>(commonRank(node), 1);
  ir::Value* a = lowering.ranked(node.operand(0), rank);
  ir::Value* b = lowering.ranked(node.operand(1), rank);
  Emitter& emit = lowering.emit();
  if (output->dtype() == DType::Int32) {
    lowering.define(output, emit.reshape(emit.binary(kBinary, a, b), output->shape()));
    return {};
  }
  CARINA_TRY(const Quantum to, lowering.codesOf(output, "result"));
  for (const ir::Value* operand : node.operands()) {
    CARINA_TRY(const Quantum from, lowering.codesOf(operand, "operand"));
    if (from.zero != to.zero || from.single() != to.single())
      return fail(Code::UnusableQuantization, "'{}' and '{}' have different quantizations", operand->name,
                  output->name)
          .withRemedy("give both operands and the result the same scale and zero point");
  }
  ir::Value* codes = lowering.narrowed(emit.binary(kBinary, lowering.widened(a, 0), lowering.widened(b, 0)),
                                       output->dtype(), 0);
  lowering.define(output, emit.reshape(codes, output->shape()));
  return {};
}

/// y = round(x * positive) if x >= 0, otherwise round(x * alpha * negative), where x is a code minus its zero
/// point.
struct TwoSided {
  ir::Value* codes = nullptr;
  int64_t zero = 0;
  Multiplier positive, negative;
  ir::Value* alpha = nullptr;   // int32; null: 1
  std::vector<int64_t> alphas;  // its values, if constant
};

/// Whether round(x * factorA * a) is at least round(x * factorB * b) for every x >= 0, and at most that for
/// every x < 0, among the x that the codes represent.
bool isSteeper(const TwoSided& sides, const Multiplier& a, int64_t factorA, const Multiplier& b,
               int64_t factorB) {
  if (isSteeper(a, factorA, b, factorB)) return true;
  const DType type = sides.codes->dtype();
  if (type != DType::Int8) return false;
  for (int64_t code = integerMin(type); code <= integerMax(type); ++code) {
    const int64_t x = code - sides.zero;
    const int32_t first = multiply(static_cast<int32_t>(x * factorA), a),
                  second = multiply(static_cast<int32_t>(x * factorB), b);
    if (x >= 0 ? first < second : first > second) return false;
  }
  return true;
}

/// Maximum or Minimum if the larger or the smaller side is correct for every x; nothing if that depends on x.
std::optional<Binary> sideOf(const TwoSided& sides) {
  std::vector<int64_t> factors = sides.alpha ? sides.alphas : std::vector<int64_t>{1};
  std::sort(factors.begin(), factors.end());
  factors.erase(std::unique(factors.begin(), factors.end()), factors.end());
  const auto all = [&](auto holds) {
    return !factors.empty() && std::all_of(factors.begin(), factors.end(), holds);
  };
  if (all([&](int64_t alpha) { return isSteeper(sides, sides.positive, 1, sides.negative, alpha); }))
    return Binary::Maximum;
  if (all([&](int64_t alpha) { return isSteeper(sides, sides.negative, alpha, sides.positive, 1); }))
    return Binary::Minimum;
  return std::nullopt;
}

/// x * alpha * negative in the codes of the result.
Result<ir::Value*> below(Lowering& lowering, const TwoSided& sides, ir::Value* x, DType type, int64_t zero) {
  if (sides.alpha) x = lowering.emit().binary(Binary::Mul, lowering.widened(x, sides.zero), sides.alpha);
  return lowering.rescale(x, type, sides.alpha ? 0 : sides.zero, zero, sides.negative);
}

/// Both sides are narrowed to the result's type before they are combined. Saturation is monotonic, so it does
/// not affect the maximum and the minimum; in the sum one of the sides is zero.
Result<ir::Value*> lowerTwoSided(Lowering& lowering, const TwoSided& sides, const ir::Value* output) {
  CARINA_TRY(const Quantum to, lowering.codesOf(output, "result"));
  const DType type = output->dtype();
  Emitter& emit = lowering.emit();
  CARINA_TRY(ir::Value * above, lowering.rescale(sides.codes, type, sides.zero, to.zero, sides.positive));
  if (const std::optional<Binary> side = sideOf(sides)) {
    CARINA_TRY(ir::Value * other, below(lowering, sides, sides.codes, type, to.zero));
    const auto wide = [&](ir::Value* codes) { return lowering.widened(codes, 0); };
    return lowering.narrowed(emit.binary(*side, wide(above), wide(other)), type, 0);
  }
  above = emit.clamp(above, to.zero, integerMax(type));
  // If slopes are at least 0, clamping the result of the negative side has the same effect as clamping its
  // operand, and needs no separate pass.
  const bool rises =
      !sides.alphas.empty() && *std::min_element(sides.alphas.begin(), sides.alphas.end()) >= 0;
  ir::Value* negative = rises ? sides.codes : emit.clamp(sides.codes, integerMin(type), sides.zero);
  CARINA_TRY(ir::Value * other, below(lowering, sides, negative, type, to.zero));
  if (rises) other = emit.clamp(other, integerMin(type), to.zero);
  ir::Value* sum =
      emit.binary(Binary::Add, lowering.widened(above, to.zero), lowering.widened(other, to.zero));
  return lowering.narrowed(sum, type, to.zero);
}

Status lowerPrelu(Lowering& lowering, const ir::Node& node) {
  const auto op = ir::cast<tfl::Prelu>(&node);
  CARINA_TRY(const Quantum x, lowering.codesOf(op.input(), "input"));
  CARINA_TRY(const Quantum slope, lowering.codesOf(op.alpha(), "alpha"));
  CARINA_TRY(const Quantum to, lowering.codesOf(op.output(), "result"));
  TwoSided sides{lowering.ranked(op.input(), commonRank(node)),
                 x.zero,
                 quantizeMultiplier(x.scale / to.scale),
                 quantizeMultiplier(x.scale * slope.scale / to.scale),
                 lowering.widened(lowering.ranked(op.alpha(), commonRank(node)), slope.zero),
                 {}};
  if (const ir::Value* alpha = lowering.get(op.alpha()); alpha->isConstant()) {
    for (int64_t n = 0; n < alpha->numElements(); ++n)
      sides.alphas.push_back(alpha->constant().integerAt(n) - slope.zero);
  }
  CARINA_TRY(ir::Value * codes, lowerTwoSided(lowering, sides, op.output()));
  lowering.define(op.output(), codes);
  return {};
}

/// For int16; int8 uses a table.
Status lowerWideLeakyRelu(Lowering& lowering, const tfl::LeakyRelu& op) {
  CARINA_TRY(const Quantum x, lowering.codesOf(op.input(), "input"));
  CARINA_TRY(const Quantum to, lowering.codesOf(op.output(), "result"));
  const float alpha = static_cast<float>(op.alpha());
  if (!(alpha >= 0)) {
    return fail(Code::NoIntegerForm, "it has alpha {} on int16 values", op.alpha())
        .withRemedy("alpha must not be negative");
  }
  const TwoSided sides{lowering.get(op.input()),
                       x.zero,
                       quantizeMultiplier(static_cast<double>(x.single() / to.single())),
                       quantizeMultiplier(static_cast<double>(x.single() * alpha / to.single())),
                       nullptr,
                       {}};
  CARINA_TRY(ir::Value * codes, lowerTwoSided(lowering, sides, op.output()));
  lowering.define(op.output(), codes);
  return {};
}

Status lowerQuantize(Lowering& lowering, const ir::Node& node) {
  const ir::Value *input = node.operand(0), *output = node.result();
  const bool wide = input->dtype() == DType::Int32;
  CARINA_TRY(const Quantum from, wide ? lowering.quantumOf(input) : lowering.codesOf(input, "input"));
  CARINA_TRY(const Quantum to, lowering.quantumOf(output));
  if (wide && (from.zero != 0 || output->dtype() == DType::Int32))
    return fail(Code::UnusableQuantization, "it converts '{}' ({}) with zero point {} to {}", input->name,
                ir::typeText(input->type), from.zero, dtypeName(output->dtype()));
  if (output->dtype() != DType::Int8 && output->dtype() != DType::Int16 && output->dtype() != DType::Int32)
    return fail(Code::NoIntegerForm, "its result is {}", ir::typeText(output->type));
  ir::Value* codes = lowering.get(input);
  // Conversions from uint8 to int8 with the same scale, which converters insert before a network, need no
  // operation.
  const bool same = codes->dtype() == output->dtype() && from.zero == to.zero && from.scale == to.scale;
  if (!same) {
    CARINA_TRY(codes, lowering.rescale(codes, output->dtype(), from.zero, to.zero,
                                       quantizeMultiplier(from.scale / to.scale)));
  }
  lowering.define(output, codes);
  return {};
}

Status lowerAbs(Lowering& lowering, const ir::Node& node) {
  const ir::Value *input = node.operand(0), *output = node.result();
  CARINA_TRY(const Quantum from, lowering.codesOf(input, "input"));
  CARINA_TRY(const Quantum to, lowering.codesOf(output, "result"));
  ir::Value* size = lowering.emit().unary(Unary::Abs, lowering.widened(lowering.get(input), from.zero));
  const Multiplier factor = quantizeMultiplier(static_cast<double>(from.single() / to.single()));
  CARINA_TRY(ir::Value * codes, lowering.rescale(size, output->dtype(), 0, to.zero, factor));
  lowering.define(output, codes);
  return {};
}

template <tfl::Activation kActivation>
Status lowerRelu(Lowering& lowering, const ir::Node& node) {
  const ir::Value *input = node.operand(0), *output = node.result();
  CARINA_TRY(const Quantum from, lowering.codesOf(input, "input"));
  CARINA_TRY(const Quantum to, lowering.codesOf(output, "result"));
  CARINA_TRY(const CodeRange range, lowering.activation(kActivation, output));
  ir::Value* codes = lowering.get(input);
  if (from.zero != to.zero || from.single() != to.single()) {
    const Multiplier factor = quantizeMultiplier(static_cast<double>(from.single() / to.single()));
    CARINA_TRY(codes, lowering.rescale(codes, output->dtype(), from.zero, to.zero, factor));
  }
  lowering.define(output, lowering.clamped(codes, range));
  return {};
}

Status lowerLeakyReluRule(Lowering& lowering, const ir::Node& node) {
  return lowerWideLeakyRelu(lowering, ir::dynCast<tfl::LeakyRelu>(&node));
}

/// Converts codes and integers to another type regardless of their scales; values that do not fit wrap.
Status lowerCast(Lowering& lowering, const ir::Node& node) {
  ir::Value* value = lowering.get(node.operand(0));
  const DType to = node.result()->dtype();
  lowering.define(node.result(), value->dtype() == to ? value : lowering.emit().cast(value, to));
  return {};
}

}  // namespace

void addArithmeticRules(Rules& rules) {
  rules[&tfl::Add::def()] = lowerSum<tfl::Add>;
  rules[&tfl::Sub::def()] = lowerSum<tfl::Sub>;
  rules[&tfl::Mul::def()] = lowerMul;
  rules[&tfl::SquaredDifference::def()] = lowerSquaredDifference;
  rules[&tfl::Minimum::def()] = lowerExtremum<Binary::Minimum>;
  rules[&tfl::Maximum::def()] = lowerExtremum<Binary::Maximum>;
  rules[&tfl::Prelu::def()] = lowerPrelu;
  rules[&tfl::Quantize::def()] = lowerQuantize;
  rules[&tfl::Cast::def()] = lowerCast;
  rules[&tfl::Abs::def()] = lowerAbs;
  rules[&tfl::LeakyRelu::def()] = lowerLeakyReluRule;
  rules[&tfl::Relu::def()] = lowerRelu<tfl::Activation::RELU>;
  rules[&tfl::Relu6::def()] = lowerRelu<tfl::Activation::RELU6>;
  rules[&tfl::ReluN1To1::def()] = lowerRelu<tfl::Activation::RELU_N1_TO_1>;
}

}  // namespace carina::lower_tfl
