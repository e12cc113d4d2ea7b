// SPDX-License-Identifier: Apache-2.0
// Fake quantization of quantization-aware training, as the quantize and dequantize nodes that converting the
// network would produce. Observers keep the scales from training.
#include <algorithm>
#include <optional>

#include "aten/control_flow.hpp"
#include "decompose/composite.hpp"
#include "decompose/composites.hpp"

namespace carina::decompose::composite {

using namespace aten;
namespace {

// The operators beyond torch's documented ones
// ---------------------------------------------------------------------------------------------------------

using ir::AttributeKind;

constexpr ir::OperandDef kSelf[] = {{"self", ir::Arity::One, false}};
constexpr ir::OperandDef kParameters[] = {
    {"self", ir::Arity::One, false}, {"scale", ir::Arity::One, false}, {"zero_point", ir::Arity::One, false}};
constexpr ir::OperandDef kSwitched[] = {{"self", ir::Arity::One, false},
                                        {"scale", ir::Arity::One, false},
                                        {"zero_point", ir::Arity::One, false},
                                        {"fake_quant_enabled", ir::Arity::One, false}};
constexpr ir::OperandDef kObserver[] = {
    {"self", ir::Arity::One, false},          {"observer_on", ir::Arity::One, false},
    {"fake_quant_on", ir::Arity::One, false}, {"running_min", ir::Arity::One, false},
    {"running_max", ir::Arity::One, false},   {"scale", ir::Arity::One, false},
    {"zero_point", ir::Arity::One, false}};
constexpr ir::AttributeDef kByNumbers[] = {{"scale", AttributeKind::Real, false, "", {}},
                                           {"zero_point", AttributeKind::Int, false, "", {}},
                                           {"quant_min", AttributeKind::Int, false, "", {}},
                                           {"quant_max", AttributeKind::Int, false, "", {}}};
constexpr ir::AttributeDef kByTensors[] = {{"quant_min", AttributeKind::Int, false, "", {}},
                                           {"quant_max", AttributeKind::Int, false, "", {}}};
constexpr ir::AttributeDef kAlong[] = {{"axis", AttributeKind::Int, false, "", {}},
                                       {"quant_min", AttributeKind::Int, false, "", {}},
                                       {"quant_max", AttributeKind::Int, false, "", {}}};
constexpr ir::AttributeDef kObserved[] = {{"averaging_const", AttributeKind::Real, false, "", {}},
                                          {"quant_min", AttributeKind::Int, false, "", {}},
                                          {"quant_max", AttributeKind::Int, false, "", {}},
                                          {"ch_axis", AttributeKind::Int, false, "", {}},
                                          {"per_row_fake_quant", AttributeKind::Bool, false, "False", {}},
                                          {"symmetric_quant", AttributeKind::Bool, false, "False", {}}};
constexpr ir::ResultDef kOne[] = {{"output", ir::Arity::One}};
constexpr ir::ResultDef kMasked[] = {{"output", ir::Arity::One}, {"mask", ir::Arity::One}};
constexpr ir::ResultDef kState[] = {{"output", ir::Arity::One},      {"mask", ir::Arity::One},
                                    {"running_min", ir::Arity::One}, {"running_max", ir::Arity::One},
                                    {"scale", ir::Arity::One},       {"zero_point", ir::Arity::One}};

constexpr ir::OpDef kOperators[] = {
    {"aten.fake_quantize_per_tensor_affine.default", 0, 0, ir::kPure, kSelf, kOne, kByNumbers, nullptr,
     nullptr},
    {"aten.fake_quantize_per_tensor_affine.tensor_qparams", 0, 0, ir::kPure, kParameters, kOne, kByTensors,
     nullptr, nullptr},
    {"aten.fake_quantize_per_tensor_affine_cachemask.default", 0, 0, ir::kPure, kSelf, kMasked, kByNumbers,
     nullptr, nullptr},
    {"aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default", 0, 0, ir::kPure, kSwitched,
     kMasked, kByTensors, nullptr, nullptr},
    {"aten.fake_quantize_per_channel_affine.default", 0, 0, ir::kPure, kParameters, kOne, kAlong, nullptr,
     nullptr},
    {"aten.fake_quantize_per_channel_affine_cachemask.default", 0, 0, ir::kPure, kParameters, kMasked, kAlong,
     nullptr, nullptr},
    {"aten._fused_moving_avg_obs_fq_helper_functional.default", 0, 0, ir::kPure, kObserver, kState, kObserved,
     nullptr, nullptr},
};

// Their replacements
// ----------------------------------------------------------------------------------------------------------

struct Limits {
  int64_t low = 0, high = 0;
  DType dtype = DType::Int8;
};

/// The narrowest integer type that holds the codes.
Result<Limits> limitsOf(const Composite& c) {
  Limits limits{c.arguments().integer("quant_min"), c.arguments().integer("quant_max")};
  for (DType dtype : {DType::Int8, DType::UInt8, DType::Int16, DType::Int32}) {
    if (limits.low < integerMin(dtype) || limits.high > integerMax(dtype)) continue;
    limits.dtype = dtype;
    return limits;
  }
  return fail(Code::UnusableQuantization, "codes from {} to {} do not fit any integer type", limits.low,
              limits.high)
      .withRemedy("train with limits that int8 or int16 can hold");
}

/// The real numbers that the codes of x represent, with one scale.
Value* roundedBy(Composite& c, Value* x, double scale, int64_t zeroPoint, const Limits& q) {
  Value* codes = QuantizePerTensor::create(c.b(), x, scale, zeroPoint, q.low, q.high, q.dtype);
  return DequantizePerTensor::create(c.b(), codes, scale, zeroPoint, q.low, q.high, q.dtype);
}
Value* roundedBy(Composite& c, Value* x, Value* scale, Value* zeroPoint, const Limits& q) {
  Value* codes = QuantizePerTensorByTensor::create(c.b(), x, scale, zeroPoint, q.low, q.high, q.dtype);
  return DequantizePerTensorByTensor::create(c.b(), codes, scale, zeroPoint, q.low, q.high, q.dtype);
}
Value* roundedAlong(Composite& c, Value* x, Value* scales, Value* zeroPoints, int64_t axis, const Limits& q) {
  Value* codes = QuantizePerChannel::create(c.b(), x, scales, zeroPoints, axis, q.low, q.high, q.dtype);
  return DequantizePerChannel::create(c.b(), codes, scales, zeroPoints, axis, q.low, q.high, q.dtype);
}

/// Whether a training switch is on; nothing if it is not constant.
std::optional<bool> isOn(const Value* value) {
  if (!value || !value->isConstant() || value->numElements() != 1) return std::nullopt;
  return value->constant().realAt(0) != 0;
}

Result<Results> perTensor(Composite& c) {
  CARINA_TRY(const Limits limits, limitsOf(c));
  if (!c.operand("scale")) {
    return Results{roundedBy(c, c.operand("self"), c.arguments().real("scale"),
                             c.arguments().integer("zero_point"), limits)};
  }
  if (c.operand("scale")->numElements() != 1 || c.operand("zero_point")->numElements() != 1) return none();
  if (Value* on = c.operand("fake_quant_enabled")) {
    const auto enabled = isOn(on);
    if (!enabled) return none();
    if (!*enabled) return Results{c.operand("self")};
  }
  return Results{roundedBy(c, c.operand("self"), c.operand("scale"), c.operand("zero_point"), limits)};
}

Result<Results> perChannel(Composite& c) {
  CARINA_TRY(const Limits limits, limitsOf(c));
  return Results{roundedAlong(c, c.operand("self"), c.operand("scale"), c.operand("zero_point"),
                              c.arguments().integer("axis"), limits)};
}

/// Observer combined with fake quantization.
Result<Results> observed(Composite& c) {
  CARINA_TRY(const Limits limits, limitsOf(c));
  Value *x = c.operand("self"), *scale = c.operand("scale"), *zeroPoint = c.operand("zero_point");
  const auto enabled = isOn(c.operand("fake_quant_on"));
  if (!enabled) return none();
  Value* result = x;
  if (*enabled && c.arguments().boolean("per_row_fake_quant")) {
    result = roundedAlong(c, x, scale, zeroPoint, c.arguments().integer("ch_axis"), limits);
  } else if (*enabled) {
    if (scale->numElements() != 1 || zeroPoint->numElements() != 1) return none();
    result = roundedBy(c, x, scale, zeroPoint, limits);
  }
  return Results{result, nullptr, c.operand("running_min"), c.operand("running_max"), scale, zeroPoint};
}

}  // namespace

const std::map<std::string_view, Composition>& fakeQuantization() {
  static const std::map<std::string_view, Composition> table{
      {"aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default", perTensor},
      {"aten._fused_moving_avg_obs_fq_helper_functional.default", observed},
      {"aten.fake_quantize_per_channel_affine.default", perChannel},
      {"aten.fake_quantize_per_channel_affine_cachemask.default", perChannel},
      {"aten.fake_quantize_per_tensor_affine.default", perTensor},
      {"aten.fake_quantize_per_tensor_affine.tensor_qparams", perTensor},
      {"aten.fake_quantize_per_tensor_affine_cachemask.default", perTensor},
      {"aten.fused_moving_avg_obs_fake_quant.default", observed},
  };
  return table;
}

}  // namespace carina::decompose::composite

namespace carina::decompose {

using namespace aten;

const ir::OpDef* findReadable(std::string_view name) {
  if (const ir::OpDef* known = findOperator(name)) return known;
  if (const ir::OpDef* known = findControlFlow(name)) return known;
  const auto* found = std::find_if(std::begin(composite::kOperators), std::end(composite::kOperators),
                                   [&](const ir::OpDef& def) { return def.name == name; });
  return found == std::end(composite::kOperators) ? nullptr : found;
}

}  // namespace carina::decompose
