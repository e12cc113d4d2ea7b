// SPDX-License-Identifier: Apache-2.0
// Functions of one quantized value: evaluated at every code and stored in a TABLE.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>

#include "aten/ops.hpp"
#include "lower/fine_table.hpp"
#include "lower/quantize_rules.hpp"
#include "lower/rules.hpp"

namespace carina::lower {
namespace {

using RealFunction = double (*)(double);

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}
double softplus(double x, double beta, double threshold) {
  return beta * x > threshold ? x : std::log1p(std::exp(beta * x)) / beta;
}
double sign(double x) {
  return x > 0 ? 1 : x < 0 ? -1 : 0;
}
/// hardsigmoid
double sixth(double x) {
  return std::min(std::max(x + 3, 0.0), 6.0) / 6;
}

/// The inverse of erf: a closed-form approximation, then Newton iterations.
double erfinv(double y) {
  if (!(std::abs(y) < 1)) return std::abs(y) == 1 ? std::copysign(HUGE_VAL, y) : std::nan("");
  constexpr double kA = 0.147;
  const double half = std::log((1 - y) * (1 + y)) / 2, a = 2 / (std::numbers::pi * kA) + half;
  double x = std::copysign(std::sqrt(std::sqrt(a * a - 2 * half / kA) - a), y);
  for (int i = 0; i < 3; ++i) x -= (std::erf(x) - y) * std::sqrt(std::numbers::pi) / 2 * std::exp(x * x);
  return x;
}

double sinc(double x) {
  return x == 0 ? 1 : std::sin(std::numbers::pi * x) / (std::numbers::pi * x);
}

/// The derivative of lgamma: the recurrence up to where its asymptotic series is accurate.
double digamma(double x) {
  if (x <= 0 && x == std::floor(x)) return std::nan("");
  if (x < 0) return digamma(1 - x) - std::numbers::pi / std::tan(std::numbers::pi * x);
  double below = 0;
  while (x < 10) {
    below += 1 / x;
    x += 1;
  }
  const double y = 1 / (x * x);
  const double series = y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y * (1.0 / 240 - y / 132))));
  return std::log(x) - 1 / (2 * x) - series - below;
}

double scalar(const ir::Attribute& value) {
  return ir::scalarReal(value);
}

Status lowerGelu(Lowering& lowering, const ir::Node& node) {
  if (ir::cast<aten::Gelu>(&node).approximate() == "tanh") {
    return defineFunction(lowering, node, [](double x) {
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    });
  }
  return defineFunction(lowering, node,
                        [](double x) { return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2)); });
}

Status lowerLeakyRelu(Lowering& lowering, const ir::Node& node) {
  const double slope = scalar(ir::cast<aten::LeakyRelu>(&node).negativeSlope());
  return defineFunction(lowering, node, [slope](double x) { return x > 0 ? x : x * slope; });
}

Status lowerElu(Lowering& lowering, const ir::Node& node) {
  const aten::Elu op = ir::cast<aten::Elu>(&node);
  const double alpha = scalar(op.alpha()), scale = scalar(op.scale()), inputScale = scalar(op.inputScale());
  return defineFunction(lowering, node, [=](double x) {
    return x > 0 ? scale * x : scale * alpha * std::expm1(x * inputScale);
  });
}

Status lowerSelu(Lowering& lowering, const ir::Node& node) {
  return defineFunction(lowering, node, [](double x) {
    constexpr double kAlpha = 1.6732632423543772, kScale = 1.0507009873554805;
    return x > 0 ? kScale * x : kScale * kAlpha * std::expm1(x);
  });
}

Status lowerCelu(Lowering& lowering, const ir::Node& node) {
  const double alpha = scalar(ir::cast<aten::Celu>(&node).alpha());
  return defineFunction(lowering, node,
                        [alpha](double x) { return x > 0 ? x : alpha * std::expm1(x / alpha); });
}

Status lowerSoftplus(Lowering& lowering, const ir::Node& node) {
  const aten::Softplus op = ir::cast<aten::Softplus>(&node);
  const double beta = scalar(op.beta()), threshold = scalar(op.threshold());
  return defineFunction(lowering, node, [=](double x) { return softplus(x, beta, threshold); });
}

Status lowerHardshrink(Lowering& lowering, const ir::Node& node) {
  const double limit = scalar(ir::cast<aten::Hardshrink>(&node).lambd());
  return defineFunction(lowering, node, [limit](double x) { return std::abs(x) <= limit ? 0 : x; });
}

Status lowerSoftshrink(Lowering& lowering, const ir::Node& node) {
  const double limit = scalar(ir::cast<aten::Softshrink>(&node).lambd());
  return defineFunction(lowering, node,
                        [limit](double x) { return std::abs(x) > limit ? x - std::copysign(limit, x) : 0; });
}

Status lowerThreshold(Lowering& lowering, const ir::Node& node) {
  const aten::Threshold op = ir::cast<aten::Threshold>(&node);
  const double limit = scalar(op.threshold()), value = scalar(op.value());
  return defineFunction(lowering, node, [=](double x) { return x <= limit ? value : x; });
}

Status lowerLogit(Lowering& lowering, const ir::Node& node) {
  const auto eps = ir::cast<aten::Logit>(&node).eps();
  return defineFunction(lowering, node, [eps](double x) {
    const double y = eps ? std::clamp(x, *eps, 1 - *eps) : x;
    return std::log(y / (1 - y));
  });
}

Status lowerPow(Lowering& lowering, const ir::Node& node) {
  const double exponent = scalar(ir::cast<aten::PowTensorScalar>(&node).exponent());
  return defineFunction(lowering, node, [exponent](double x) { return std::pow(x, exponent); });
}

Status lowerPowScalar(Lowering& lowering, const ir::Node& node) {
  const double base = scalar(ir::cast<aten::PowScalar>(&node).self());
  return defineFunction(lowering, node, [base](double x) { return std::pow(base, x); });
}

/// x + alpha * c and its variants, with a number as second operand.
template <typename Op, int kSelf, int kOther>
Status lowerAddNumber(Lowering& lowering, const ir::Node& node) {
  if (!lowering.isFloatValue(node.operands()[0]))
    return fail(Code::NoIntegerForm, "{} of an integer tensor and a scalar is not supported on the NPU",
                node.opName())
        .withRemedy("convert the tensor to float first");
  const Op op = ir::cast<Op>(&node);
  const double alpha = scalar(op.alpha()), other = scalar(op.other());
  const bool reversed = std::is_same_v<Op, aten::RsubScalar>;
  const double self = kSelf * (reversed ? alpha : 1), offset = kOther * other * (reversed ? 1 : alpha);
  return defineFunction(lowering, node, [=](double x) { return self * x + offset; });
}

/// A positive factor changes the scale only.
Status scaleBy(Lowering& lowering, const ir::Node& node, double factor) {
  if (!lowering.isFloatValue(node.operands()[0]))
    return fail(Code::NoIntegerForm, "{} of an integer tensor and a scalar is not supported on the NPU",
                node.opName())
        .withRemedy("convert the tensor to float first");
  CARINA_TRY(QuantizedValue real, lowering.quantizedValue(node.operands()[0]));
  if (factor > 0 && std::isfinite(factor) && real.plain()) {
    real.scales[0] *= factor;
    lowering.define(node.result(), std::move(real));
    return {};
  }
  return defineFunction(lowering, node, [factor](double x) { return x * factor; });
}

Status lowerMulNumber(Lowering& lowering, const ir::Node& node) {
  return scaleBy(lowering, node, scalar(ir::cast<aten::MulScalar>(&node).other()));
}
Status lowerDivNumber(Lowering& lowering, const ir::Node& node) {
  return scaleBy(lowering, node, 1 / scalar(ir::cast<aten::DivScalar>(&node).other()));
}

/// The operators without attributes.
const std::unordered_map<const ir::OpDef*, RealFunction>& functions() {
  static const std::unordered_map<const ir::OpDef*, RealFunction> table{
      {&aten::Abs::def(), [](double x) { return std::abs(x); }},
      {&aten::Neg::def(), [](double x) { return -x; }},
      {&aten::Sign::def(), sign},
      {&aten::Sgn::def(), sign},
      {&aten::LogSigmoid::def(),
       [](double x) { return std::min(0.0, x) - std::log1p(std::exp(-std::abs(x))); }},
      {&aten::Square::def(), [](double x) { return x * x; }},
      {&aten::Exp::def(), [](double x) { return std::exp(x); }},
      {&aten::Exp2::def(), [](double x) { return std::exp2(x); }},
      {&aten::Expm1::def(), [](double x) { return std::expm1(x); }},
      {&aten::Log::def(), [](double x) { return std::log(x); }},
      {&aten::Log2::def(), [](double x) { return std::log2(x); }},
      {&aten::Log10::def(), [](double x) { return std::log10(x); }},
      {&aten::Log1p::def(), [](double x) { return std::log1p(x); }},
      {&aten::Sqrt::def(), [](double x) { return std::sqrt(x); }},
      {&aten::Rsqrt::def(), [](double x) { return 1 / std::sqrt(x); }},
      {&aten::Reciprocal::def(), [](double x) { return 1 / x; }},
      {&aten::Sin::def(), [](double x) { return std::sin(x); }},
      {&aten::Cos::def(), [](double x) { return std::cos(x); }},
      {&aten::Tan::def(), [](double x) { return std::tan(x); }},
      {&aten::Asin::def(), [](double x) { return std::asin(x); }},
      {&aten::Acos::def(), [](double x) { return std::acos(x); }},
      {&aten::Atan::def(), [](double x) { return std::atan(x); }},
      {&aten::Sinh::def(), [](double x) { return std::sinh(x); }},
      {&aten::Cosh::def(), [](double x) { return std::cosh(x); }},
      {&aten::Asinh::def(), [](double x) { return std::asinh(x); }},
      {&aten::Acosh::def(), [](double x) { return std::acosh(x); }},
      {&aten::Atanh::def(), [](double x) { return std::atanh(x); }},
      {&aten::Sigmoid::def(), sigmoid},
      {&aten::Tanh::def(), [](double x) { return std::tanh(x); }},
      {&aten::Erf::def(), [](double x) { return std::erf(x); }},
      {&aten::Erfc::def(), [](double x) { return std::erfc(x); }},
      {&aten::SpecialNdtr::def(), [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }},
      {&aten::SpecialErfcx::def(),
       [](double x) {
         // Beyond 25 the factors overflow or underflow, and the omitted terms are below 1e-10.
         if (x > 25) return (1 - 0.5 / (x * x) + 0.75 / (x * x * x * x)) / (x * std::sqrt(std::acos(-1.0)));
         return std::exp(x * x) * std::erfc(x);
       }},
      {&aten::SpecialBesselJ0::def(), [](double x) { return std::cyl_bessel_j(0.0, std::abs(x)); }},
      {&aten::Erfinv::def(), erfinv},
      {&aten::Sinc::def(), sinc},
      {&aten::Lgamma::def(), [](double x) { return std::lgamma(x); }},
      {&aten::Digamma::def(), digamma},
      {&aten::Silu::def(), [](double x) { return x * sigmoid(x); }},
      {&aten::Mish::def(), [](double x) { return x * std::tanh(softplus(x, 1, 20)); }},
      {&aten::Hardsigmoid::def(), sixth},
      {&aten::Hardswish::def(), [](double x) { return x * sixth(x); }},
  };
  return table;
}

Status lowerFunction(Lowering& lowering, const ir::Node& node) {
  return defineFunction(lowering, node, functions().at(&node.def()));
}

/// Whether arithmetic may replace a table, whose interpolation would round off the corners of a function: for
/// 16-bit codes that are quantized again immediately afterwards.
bool takesArithmetic(const QuantizedValue& real, const ir::Node& node) {
  const auto& uses = node.result()->uses();
  return real.plain() && real.data.dtype() == DType::Int16 && real.zeroPoint == 0 && !uses.empty() &&
         !node.result()->isGraphOutput() && std::all_of(uses.begin(), uses.end(), [](const ir::Use& use) {
           return ir::isa<aten::QuantizePerTensor>(use.node);
         });
}

/// The scale of hardswish's gate: 6 is the largest 16-bit code.
constexpr double kGateScale = 6.0 / 32767;

/// x + 3 as int32. The operand with the larger scale has exactly 14 fraction bits: such sums are a single
/// operation even on Ethos-U55.
struct PlusThree {
  ir::Value* value = nullptr;
  double scale = 1;
};
Result<PlusThree> plusThree(Lowering& lowering, const QuantizedValue& real) {
  constexpr int64_t kThree = 16384;  // in gate codes
  Emitter& emit = lowering.emit();
  const double unit = std::ldexp(std::max(real.scale(), kGateScale), -14);
  CARINA_TRY(ir::Value* const value,
             emit.rescale(real.data.value, DType::Int32, 0, 0, std::array{real.scale() / unit}));
  ir::Value* code = emit.reshape(emit.scalar(DType::Int16, kThree), Shape(value->shape().size(), 1));
  CARINA_TRY(ir::Value* const three, emit.rescale(code, DType::Int32, 0, 0, std::array{kGateScale / unit}));
  return PlusThree{emit.binary(Binary::Add, value, three), unit};
}

Status lowerHardsigmoid(Lowering& lowering, const ir::Node& node) {
  CARINA_TRY(const QuantizedValue real, lowering.quantizedValue(node.operands()[0]));
  if (!takesArithmetic(real, node)) return lowerFunction(lowering, node);
  CARINA_TRY(const PlusThree sum, plusThree(lowering, real));
  lowering.define(node.result(),
                  QuantizedValue{{sum.value, real.data.layout}, {sum.scale / 6}, 0, true, {}, {}, 0.0, 1.0});
  return {};
}

/// x * clamp(x + 3, 0, 6) / 6.
Status lowerHardswish(Lowering& lowering, const ir::Node& node) {
  CARINA_TRY(const QuantizedValue real, lowering.quantizedValue(node.operands()[0]));
  if (!takesArithmetic(real, node)) return lowerFunction(lowering, node);
  Emitter& emit = lowering.emit();
  CARINA_TRY(const PlusThree sum, plusThree(lowering, real));
  CARINA_TRY(ir::Value * gate,
             emit.rescale(sum.value, DType::Int16, 0, 0, std::array{sum.scale / kGateScale}));
  gate = emit.clamp(gate, 0, integerMax(DType::Int16));
  defineAccumulator(lowering, node.result(),
                    {emit.binary(Binary::Mul, real.data.value, gate), real.data.layout},
                    real.scale() * kGateScale / 6);
  return {};
}

/// Codes of sines in tables: 1 is the largest one.
constexpr double kSineScale = 1.0 / 32767;

/// A table read at multiples of 256 only: there, `function` of the multiple. In between are means, because
/// differences of adjacent entries are limited to 16 bits.
template <typename F>
Tensor tableOfMultiples(F function) {
  constexpr int64_t kHalf = 128;
  Tensor table = Tensor::uninitialized(DType::Int16, {4 * kHalf + 1});
  for (int64_t i = -kHalf; i < kHalf; ++i)
    table.setIntegerAt(2 * (i + kHalf),
                       static_cast<int64_t>(std::nearbyint(function(static_cast<double>(i)) / kSineScale)));
  table.setIntegerAt(4 * kHalf, table.integerAt(4 * kHalf - 2));
  for (int64_t i = 1; i < 4 * kHalf; i += 2)
    table.setIntegerAt(i, (table.integerAt(i - 1) + table.integerAt(i + 1)) / 2);
  return table;
}

/// The finest scale of the codes to which a value is quantized next, or after clamps; nothing if it is read
/// otherwise.
std::optional<double> finestScaleAfter(const ir::Value* value) {
  double finest = std::numeric_limits<double>::infinity();
  std::vector<const ir::Value*> pending{value};
  while (!pending.empty()) {
    value = pending.back();
    pending.pop_back();
    if (value->uses().empty() || value->isGraphOutput()) return std::nullopt;
    for (const ir::Use& use : value->uses()) {
      if (const auto codes = quantizeCodes(*use.node)) {
        finest = std::min(finest, codes->scale);
      } else if (isClampRule(*use.node)) {
        pending.push_back(use.node->result());
      } else {
        return std::nullopt;
      }
    }
  }
  return finest;
}

/// Whether a TABLE has too few pieces for a sine of 16-bit codes: the line of a piece that spans t radians is
/// up to t^2 / 8 off, half of that on either side of the curve.
bool turnsTooFast(const QuantizedValue& real, const ir::Node& node) {
  if (!real.plain() || real.data.dtype() != DType::Int16 || real.zeroPoint != 0 || !(real.scale() < 0x1p60))
    return false;
  const double piece = 128 * real.scale();
  const std::optional<double> finest = finestScaleAfter(node.result());
  return finest && piece * piece / 16 > static_cast<double>(kTableTolerance) * *finest;
}

/// sin(scale * q + phase) of 16-bit codes. If a TABLE would be too coarse, by the addition theorem: q - 128
/// is split into 256 * h + l with 8 bits each, whose sines and cosines are entries of tables.
Status lowerSine(Lowering& lowering, const ir::Node& node, double phase) {
  CARINA_TRY(const QuantizedValue real, lowering.quantizedValue(node.operands()[0]));
  if (!turnsTooFast(real, node)) return lowerFunction(lowering, node);
  Emitter& emit = lowering.emit();
  CARINA_TRY(ir::Value * code, emit.rescale(real.data.value, DType::Int32, 0, 0, std::array{1.0}));
  code = emit.binary(Binary::Sub, code, emit.number(128, code));
  CARINA_TRY(ir::Value* const upper, emit.rescale(code, DType::Int16, 0, 0, std::array{0x1p-8}));
  CARINA_TRY(ir::Value * lower, emit.rescale(upper, DType::Int32, 0, 0, std::array{256.0}));
  lower = emit.binary(Binary::Sub, code, lower);
  CARINA_TRY(ir::Value* const coarse, emit.rescale(upper, DType::Int16, 0, 0, std::array{256.0}));
  CARINA_TRY(ir::Value* const fine, emit.rescale(lower, DType::Int16, 0, 0, std::array{256.0}));
  // The simulation has this scale as float32.
  const double scale = static_cast<float>(real.scale());
  const auto atUpper = [&](double h) { return scale * (256 * h + 128) + phase; };
  const auto product = [&](const Tensor& a, const Tensor& b) -> Result<ir::Value*> {
    CARINA_TRY(ir::Value* const x, emit.lookUp(coarse, a));
    CARINA_TRY(ir::Value* const y, emit.lookUp(fine, b));
    return emit.binary(Binary::Mul, x, y);
  };
  CARINA_TRY(ir::Value* const first,
             product(tableOfMultiples([&](double h) { return std::sin(atUpper(h)); }),
                     tableOfMultiples([&](double l) { return std::cos(scale * l); })));
  CARINA_TRY(ir::Value* const second,
             product(tableOfMultiples([&](double h) { return std::cos(atUpper(h)); }),
                     tableOfMultiples([&](double l) { return std::sin(scale * l); })));
  defineAccumulator(lowering, node.result(), {emit.binary(Binary::Add, first, second), real.data.layout},
                    kSineScale * kSineScale);
  return {};
}

Status lowerSin(Lowering& l, const ir::Node& n) {
  return lowerSine(l, n, 0);
}
Status lowerCos(Lowering& l, const ir::Node& n) {
  return lowerSine(l, n, std::numbers::pi / 2);
}

}  // namespace

void addFunctionRules(Rules& rules) {
  for (const auto& entry : functions()) rules[entry.first] = lowerFunction;
  rules[&aten::Sin::def()] = lowerSin;
  rules[&aten::Cos::def()] = lowerCos;
  rules[&aten::Hardsigmoid::def()] = lowerHardsigmoid;
  rules[&aten::Hardswish::def()] = lowerHardswish;
  rules[&aten::Gelu::def()] = lowerGelu;
  rules[&aten::LeakyRelu::def()] = lowerLeakyRelu;
  rules[&aten::Elu::def()] = lowerElu;
  rules[&aten::Selu::def()] = lowerSelu;
  rules[&aten::Celu::def()] = lowerCelu;
  rules[&aten::Softplus::def()] = lowerSoftplus;
  rules[&aten::Hardshrink::def()] = lowerHardshrink;
  rules[&aten::Softshrink::def()] = lowerSoftshrink;
  rules[&aten::Threshold::def()] = lowerThreshold;
  rules[&aten::Logit::def()] = lowerLogit;
  rules[&aten::PowTensorScalar::def()] = lowerPow;
  rules[&aten::PowScalar::def()] = lowerPowScalar;
  rules[&aten::AddScalar::def()] = lowerAddNumber<aten::AddScalar, 1, 1>;
  rules[&aten::SubScalar::def()] = lowerAddNumber<aten::SubScalar, 1, -1>;
  rules[&aten::RsubScalar::def()] = lowerAddNumber<aten::RsubScalar, -1, 1>;
  rules[&aten::MulScalar::def()] = lowerMulNumber;
  rules[&aten::DivScalar::def()] = lowerDivNumber;
}

}  // namespace carina::lower
