// SPDX-License-Identifier: Apache-2.0
// Operators on 32-bit codes (wide.hpp): arithmetic, sums, and functions.
#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "aten/ops.hpp"
#include "lower/reduction.hpp"
#include "lower/rules.hpp"
#include "lower/wide.hpp"

namespace carina::lower {
namespace {

/// Bits of results; sums of two fit 31.
constexpr int kResultBits = 30;
constexpr double kMaxResult = 0x1p30 - 1;

/// The unit of a result with values up to `reach`: the scale of the following quantize node if they fit,
/// otherwise the finest one.
double resultUnit(const Lowering& lowering, const ir::Value* result, double reach) {
  const auto codes = lowering.codesAfter(result);
  if (codes && isWide(*codes) && reach / codes->scale < kMaxResult) return codes->scale;
  return unitFor(reach, kResultBits);
}

struct WidePair {
  std::array<Wide, 2> x;
  Layout layout;
};

Result<WidePair> widePair(Lowering& lowering, const ir::Node& node) {
  WidePair pair;
  for (size_t i = 0; i < 2; ++i) {
    CARINA_TRY(pair.x[i], wideOperand(lowering, node.operands()[i]));
  }
  Lowering::Aligned aligned = lowering.align({pair.x[0].data, pair.x[1].data}, node.result()->shape());
  for (size_t i = 0; i < 2; ++i) pair.x[i].data = {aligned.values[i], aligned.layout};
  pair.layout = std::move(aligned.layout);
  return pair;
}

/// x + factor * y.
Status defineSum(Lowering& lowering, const ir::Node& node, double factor) {
  CARINA_TRY(WidePair pair, widePair(lowering, node));
  auto& [x, y] = pair.x;
  y.scale *= std::abs(factor);
  if (!std::isfinite(x.reach() + y.reach()))
    return fail(Code::NoIntegerForm, "{} has an alpha of {}", node.opName(), factor)
        .withRemedy("use a number within the range of float32");
  const double unit = resultUnit(lowering, node.result(), x.reach() + y.reach());
  x = inUnits(lowering.emit(), x, unit);
  y = inUnits(lowering.emit(), y, unit);
  if (factor < 0) y.within = {-y.within.high, -y.within.low};
  ir::Value* sum = lowering.emit().binary(factor < 0 ? Binary::Sub : Binary::Add, x.data.value, y.data.value);
  defineWide(lowering, node.result(),
             {{sum, pair.layout}, unit, {x.within.low + y.within.low, x.within.high + y.within.high}});
  return {};
}

Status lowerAdd(Lowering& lowering, const ir::Node& node) {
  return defineSum(lowering, node, ir::scalarReal(ir::cast<aten::AddTensor>(&node).alpha()));
}
Status lowerSub(Lowering& lowering, const ir::Node& node) {
  return defineSum(lowering, node, -ir::scalarReal(ir::cast<aten::SubTensor>(&node).alpha()));
}

Wide negated(Emitter& emit, Wide x) {
  ir::Value*& value = x.data.value;
  value = emit.binary(Binary::Sub, emit.number(0, value), value);
  x.within = {-x.within.high, -x.within.low};
  return x;
}

/// x + number; the sum must fit its codes.
Wide plus(Emitter& emit, Wide x, double number) {
  if (const int64_t code = std::llround(number / x.scale); code != 0) {
    x.data.value = emit.binary(Binary::Add, x.data.value, emit.number(code, x.data.value));
    x.within = {x.within.low + code, x.within.high + code};
  }
  return x;
}

/// factor * x + number.
Status defineLinear(Lowering& lowering, const ir::Node& node, double factor, double number) {
  Emitter& emit = lowering.emit();
  CARINA_TRY(Wide x, wideOperand(lowering, node.operands()[0]));
  if (!std::isfinite(factor) || !std::isfinite(number))
    return fail(Code::NoIntegerForm, "{} has a factor or an addend that is not a number", node.opName())
        .withRemedy("replace it with a number");
  x.scale *= std::abs(factor);
  const double reach = x.reach() + std::abs(number);
  const double unit = resultUnit(lowering, node.result(), reach > 0 ? reach : 1);
  if (factor == 0) {
    x = {{emit.product(x.data.value, emit.number(0, x.data.value), 0), x.data.layout}, unit, {0, 0}};
  } else {
    x = inUnits(emit, x, unit);
    if (factor < 0) x = negated(emit, x);
  }
  defineWide(lowering, node.result(), plus(emit, std::move(x), number));
  return {};
}

template <typename Op, int kSelf, int kOther>
Status lowerAddNumber(Lowering& lowering, const ir::Node& node) {
  const Op op = ir::cast<Op>(&node);
  const double alpha = ir::scalarReal(op.alpha()), other = ir::scalarReal(op.other());
  if (std::is_same_v<Op, aten::RsubScalar>) return defineLinear(lowering, node, kSelf * alpha, other);
  return defineLinear(lowering, node, kSelf, kOther * alpha * other);
}
Status lowerNeg(Lowering& lowering, const ir::Node& node) {
  return defineLinear(lowering, node, -1, 0);
}
/// A positive factor only changes the scale.
Status scaleBy(Lowering& lowering, const ir::Node& node, double factor) {
  if (!(factor > 0x1p-60 && factor < 0x1p60)) return defineLinear(lowering, node, factor, 0);
  CARINA_TRY(QuantizedValue real, lowering.plainValue(node.operands()[0]));
  real.scales[0] *= factor;
  lowering.define(node.result(), std::move(real));
  return {};
}
Status lowerMulNumber(Lowering& lowering, const ir::Node& node) {
  return scaleBy(lowering, node, ir::scalarReal(ir::cast<aten::MulScalar>(&node).other()));
}
Status lowerDivNumber(Lowering& lowering, const ir::Node& node) {
  return scaleBy(lowering, node, 1 / ir::scalarReal(ir::cast<aten::DivScalar>(&node).other()));
}

Interval productOf(const Interval& a, const Interval& b, int shift) {
  Interval result{0, 0};
  for (const int64_t x : {a.low, a.high}) {
    for (const int64_t y : {b.low, b.high}) {
      const double end = std::ldexp(static_cast<double>(x) * static_cast<double>(y), -shift);
      result.low = std::min(result.low, static_cast<int64_t>(std::floor(end)));
      result.high = std::max(result.high, static_cast<int64_t>(std::ceil(end)));
    }
  }
  return result;
}

/// x * y. If a shift yields the scale of the following quantize node, the result already has its codes.
Status defineProduct(Lowering& lowering, const ir::Node& node, const Wide& x, const Wide& y, Layout layout) {
  const double scale = x.scale * y.scale;
  const double unit = resultUnit(lowering, node.result(), x.reach() * y.reach());
  int shift = 0;
  while (std::ldexp(static_cast<double>(x.within.magnitude()) * static_cast<double>(y.within.magnitude()),
                    -shift) > kMaxResult)
    ++shift;
  int exponent = 0;
  if (std::frexp(unit / scale, &exponent) == 0.5) shift = std::clamp(exponent - 1, shift, 62);
  ir::Value* product = lowering.emit().product(x.data.value, y.data.value, shift);
  defineWide(lowering, node.result(),
             {{product, std::move(layout)}, std::ldexp(scale, shift), productOf(x.within, y.within, shift)});
  return {};
}

Status lowerMul(Lowering& lowering, const ir::Node& node) {
  CARINA_TRY(WidePair pair, widePair(lowering, node));
  return defineProduct(lowering, node, pair.x[0], pair.x[1], std::move(pair.layout));
}
Status lowerSquare(Lowering& lowering, const ir::Node& node) {
  CARINA_TRY(const Wide x, wideOperand(lowering, node.operands()[0]));
  return defineProduct(lowering, node, x, x, x.data.layout);
}

Status defineTotal(Lowering& lowering, const ir::Node& node, const std::optional<ir::Ints>& dims, bool mean) {
  Emitter& emit = lowering.emit();
  const ir::Value* input = node.operands()[0];
  CARINA_TRY(Wide x, wideOperand(lowering, input));
  const std::vector<int> wrapped = wrappedDims(dims, input->rank());
  int64_t count = 1;
  for (const int d : wrapped) count *= input->dim(d);
  const double reach = x.reach() * static_cast<double>(count);
  x = inUnits(emit, x, std::max(x.scale, unitFor(reach > 0 ? reach : 1, kResultBits)));
  const Reduction reduction = reductionOf(lowering, x.data, wrapped);
  ir::Value* sum = emit.reduce(
      Reduce::Sum, emit.reshape(reduction.value, {reduction.outer, reduction.count(), reduction.inner}), 1);
  defineWide(lowering, node.result(),
             {{sum, resultLayout(reduction, input->shape(), node.result()->shape())},
              mean ? x.scale / static_cast<double>(count) : x.scale,
              {x.within.low * count, x.within.high * count}});
  return {};
}

Status lowerWideSum(Lowering& l, const ir::Node& n) {
  return defineTotal(l, n, std::nullopt, false);
}
Status lowerWideSumDims(Lowering& l, const ir::Node& n) {
  return defineTotal(l, n, ir::cast<aten::SumDimIntList>(&n).dim(), false);
}
Status lowerWideMean(Lowering& l, const ir::Node& n) {
  return defineTotal(l, n, std::nullopt, true);
}
Status lowerWideMeanDims(Lowering& l, const ir::Node& n) {
  return defineTotal(l, n, ir::cast<aten::MeanDim>(&n).dim(), true);
}

Status defineFunctionOf(Lowering& lowering, const ir::Node& node, const Function& function) {
  CARINA_TRY(const Wide x, wideOperand(lowering, node.operands()[0]));
  CARINA_TRY(Wide y, wideFunction(lowering.emit(), x, function));
  defineWide(lowering, node.result(), std::move(y));
  return {};
}

/// exp(x) = 2^whole * 2^fraction with whole + fraction = x * log2(e): keeps relative errors at those of one
/// octave, to which averages over few elements in a row (attention) are sensitive.
Status lowerExp(Lowering& lowering, const ir::Node& node) {
  Emitter& emit = lowering.emit();
  CARINA_TRY(Wide x, wideOperand(lowering, node.operands()[0]));
  constexpr double kMost = 80;  // near the limit of float32
  if (!(x.reach() < kMost)) return defineFunctionOf(lowering, node, [](double v) { return std::exp(v); });
  x.scale *= std::numbers::log2e;
  constexpr int kFractionBits = 23;
  x = inUnits(emit, x, std::ldexp(1.0, -kFractionBits));
  const ir::Value* like = x.data.value;
  ir::Value* whole =
      emit.binary(Binary::ArithmeticRightShift, x.data.value, emit.number(kFractionBits, like));
  ir::Value* below = emit.product(whole, emit.number(int64_t{1} << kFractionBits, like), 0);
  const Wide fraction{{emit.binary(Binary::Sub, x.data.value, below), x.data.layout},
                      std::ldexp(1.0, -kFractionBits),
                      {0, int64_t{1} << kFractionBits}};
  CARINA_TRY(Wide y, wideFunction(emit, fraction, [](double v) { return std::exp2(v); }));
  const int64_t most = x.within.high >> kFractionBits;
  ir::Value* down = emit.binary(Binary::Sub, emit.number(most, like), whole);
  down = emit.binary(Binary::Minimum, down, emit.number(31, like));
  y.data.value = emit.shiftedRight(y.data.value, down);
  y.scale = std::ldexp(y.scale, static_cast<int>(most));
  y.within.low = 0;
  defineWide(lowering, node.result(), std::move(y));
  return {};
}
Status lowerSigmoid(Lowering& l, const ir::Node& n) {
  return defineFunctionOf(l, n, [](double x) { return 1 / (1 + std::exp(-x)); });
}
Status lowerTanh(Lowering& l, const ir::Node& n) {
  return defineFunctionOf(l, n, [](double x) { return std::tanh(x); });
}
Status lowerErf(Lowering& l, const ir::Node& n) {
  return defineFunctionOf(l, n, [](double x) { return std::erf(x); });
}
Status lowerSilu(Lowering& l, const ir::Node& n) {
  return defineFunctionOf(l, n, [](double x) { return x / (1 + std::exp(-x)); });
}
Status lowerGelu(Lowering& l, const ir::Node& n) {
  if (ir::cast<aten::Gelu>(&n).approximate() == "tanh") {
    return defineFunctionOf(l, n, [](double x) {
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    });
  }
  return defineFunctionOf(l, n, [](double x) { return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2)); });
}

// Functions of positive codes that are steep near 0: the code is u * 2^-up with u from 2^30 to 2^31, or from
// 2^29 if the power must be even.
struct Leading {
  Wide u;                       // scale 1
  ir::Value* half = nullptr;    // up, or half of it
  int64_t least = 0, most = 0;  // of `half`
};

Leading leadingBits(Emitter& emit, const Wide& x, int64_t least, bool even) {
  ir::Value* value = emit.binary(Binary::Maximum, x.data.value, emit.number(least, x.data.value));
  ir::Value* up = emit.binary(Binary::Sub, emit.unary(Unary::Clz, value), emit.number(even ? 2 : 1, value));
  Leading result;
  // (clz - 1) / 2, rounded down
  result.half = even ? emit.shiftedRight(up, emit.number(1, value)) : up;
  const auto upOf = [&](int64_t code) {
    return (std::countl_zero(static_cast<uint32_t>(code)) - 1) / (even ? 2 : 1);
  };
  result.least = upOf(std::max(x.within.high, least));
  result.most = upOf(least);
  ir::Value* u = emit.binary(Binary::LeftShift, value, result.half);
  if (even) u = emit.binary(Binary::LeftShift, u, result.half);
  result.u = {{u, x.data.layout}, 1, {int64_t{1} << (even ? 29 : 30), integerMax(DType::Int32)}};
  return result;
}

/// `part` * 2^(half - most).
ir::Value* shiftedBack(Emitter& emit, const Leading& leading, ir::Value* part) {
  if (leading.least == leading.most) return part;
  return emit.shiftedRight(part, emit.binary(Binary::Sub, emit.number(leading.most, part), leading.half));
}

/// 1 / x or 1 / sqrt(x). Values of x whose result would exceed the largest code are raised to one that does
/// not.
Status defineInverse(Lowering& lowering, const ir::Node& node, bool root) {
  Emitter& emit = lowering.emit();
  CARINA_TRY(const Wide x, wideOperand(lowering, node.operands()[0]));
  double least = 1;
  if (const auto codes = lowering.codesAfter(node.result())) {
    const double most = static_cast<double>(codes->max) * codes->scale;
    least = std::max(least, std::floor((root ? 1 / (most * most) : 1 / most) / x.scale));
  }
  const Leading leading = leadingBits(emit, x, static_cast<int64_t>(std::min(least, 0x1p30)), root);
  CARINA_TRY(Wide y, wideFunction(emit, leading.u,
                                  [root](double u) { return root ? std::sqrt(0x1p29 / u) : 0x1p30 / u; }));
  // 1 / (u * 2^-up * scale)
  const double power = std::ldexp(1.0, static_cast<int>(leading.most));
  y.scale *= root ? power / std::sqrt(0x1p29 * x.scale) : power / (0x1p30 * x.scale);
  y.data = {shiftedBack(emit, leading, y.data.value), x.data.layout};
  y.within.low = std::min<int64_t>(y.within.low, 0);
  defineWide(lowering, node.result(), std::move(y));
  return {};
}

Status lowerReciprocal(Lowering& l, const ir::Node& n) {
  return defineInverse(l, n, false);
}
Status lowerRsqrt(Lowering& l, const ir::Node& n) {
  return defineInverse(l, n, true);
}

/// sqrt(x) from the leading bits of x; 0 if x is not positive.
Status lowerSqrt(Lowering& lowering, const ir::Node& node) {
  Emitter& emit = lowering.emit();
  CARINA_TRY(const Wide x, wideOperand(lowering, node.operands()[0]));
  const Leading leading = leadingBits(emit, x, 1, true);
  CARINA_TRY(Wide y, wideFunction(emit, leading.u, [](double u) { return std::sqrt(u / 0x1p31); }));
  // sqrt(u * 2^-(2 half) * scale): decreases with `half`.
  ir::Value* value = y.data.value;
  ir::Value* down = leading.half;
  if (leading.least > 0) down = emit.binary(Binary::Sub, down, emit.number(leading.least, value));
  value = emit.shiftedRight(value, down);
  ir::Value* positive = emit.binary(Binary::Greater, x.data.value, emit.number(0, value));
  value = emit.select(positive, value, emit.number(0, value));
  y.scale *= std::ldexp(std::sqrt(0x1p31 * x.scale), -static_cast<int>(leading.least));
  y.data = {value, x.data.layout};
  y.within.low = std::min<int64_t>(y.within.low, 0);
  defineWide(lowering, node.result(), std::move(y));
  return {};
}

/// log(u * 2^-up * scale) = log(u / 2^30) - up * log(2) + a constant; times `unit`, and of
/// x + added.
Status defineLogarithm(Lowering& lowering, const ir::Node& node, double unit, double added = 0) {
  Emitter& emit = lowering.emit();
  CARINA_TRY(Wide x, wideOperand(lowering, node.operands()[0]));
  if (added > 0)
    x = plus(emit, inUnits(emit, x, std::max(x.scale, unitFor(x.reach() + added, kResultBits))), added);
  const Leading leading = leadingBits(emit, x, 1, false);
  CARINA_TRY(Wide y, wideFunction(emit, leading.u, [](double u) { return std::log(u / 0x1p30); }));
  const double offset = std::log(x.scale) + 30 * std::numbers::ln2;
  const double reach = std::abs(offset) + 32 * std::numbers::ln2;
  y = inUnits(emit, y, unitFor(reach, kResultBits));
  ir::Value* value = y.data.value;
  ir::Value* powers =
      emit.product(leading.half, emit.number(std::llround(std::numbers::ln2 / y.scale), value), 0);
  value = emit.binary(Binary::Sub, value, powers);
  value = emit.binary(Binary::Add, value, emit.number(std::llround(offset / y.scale), value));
  const auto most = static_cast<int64_t>(std::ceil(reach / y.scale));
  defineWide(lowering, node.result(), {{value, x.data.layout}, y.scale * unit, {-most, most}});
  return {};
}

Status lowerLog(Lowering& l, const ir::Node& n) {
  return defineLogarithm(l, n, 1);
}
Status lowerLog1p(Lowering& l, const ir::Node& n) {
  return defineLogarithm(l, n, 1, 1);
}
Status lowerLog2(Lowering& l, const ir::Node& n) {
  return defineLogarithm(l, n, std::numbers::log2e);
}
Status lowerLog10(Lowering& l, const ir::Node& n) {
  return defineLogarithm(l, n, std::numbers::log10e);
}

}  // namespace

Rule findWideRule(const ir::OpDef& def) {
  static const Rules rules{
      {&aten::AddTensor::def(), lowerAdd},
      {&aten::SubTensor::def(), lowerSub},
      {&aten::AddScalar::def(), lowerAddNumber<aten::AddScalar, 1, 1>},
      {&aten::SubScalar::def(), lowerAddNumber<aten::SubScalar, 1, -1>},
      {&aten::RsubScalar::def(), lowerAddNumber<aten::RsubScalar, -1, 1>},
      {&aten::Neg::def(), lowerNeg},
      {&aten::MulScalar::def(), lowerMulNumber},
      {&aten::DivScalar::def(), lowerDivNumber},
      {&aten::MulTensor::def(), lowerMul},
      {&aten::Square::def(), lowerSquare},
      {&aten::Sum::def(), lowerWideSum},
      {&aten::SumDimIntList::def(), lowerWideSumDims},
      {&aten::Mean::def(), lowerWideMean},
      {&aten::MeanDim::def(), lowerWideMeanDims},
      {&aten::Exp::def(), lowerExp},
      {&aten::Sigmoid::def(), lowerSigmoid},
      {&aten::Tanh::def(), lowerTanh},
      {&aten::Erf::def(), lowerErf},
      {&aten::Silu::def(), lowerSilu},
      {&aten::Gelu::def(), lowerGelu},
      {&aten::Reciprocal::def(), lowerReciprocal},
      {&aten::Rsqrt::def(), lowerRsqrt},
      {&aten::Sqrt::def(), lowerSqrt},
      {&aten::Log::def(), lowerLog},
      {&aten::Log1p::def(), lowerLog1p},
      {&aten::Log2::def(), lowerLog2},
      {&aten::Log10::def(), lowerLog10},
      {&aten::Matmul::def(), lowerWideMatmul},
      {&aten::Bmm::def(), lowerWideMatmul},
      {&aten::Mm::def(), lowerWideMatmul},
      {&aten::Linear::def(), lowerWideLinear},
      {&aten::LayerNorm::def(), lowerWideNorm},
      {&aten::RmsNorm::def(), lowerWideNorm},
  };
  const auto it = rules.find(&def);
  return it == rules.end() ? nullptr : it->second;
}

}  // namespace carina::lower
