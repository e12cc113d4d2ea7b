// SPDX-License-Identifier: Apache-2.0
#include "lower_tfl/lowering.hpp"

#include <algorithm>
#include <cmath>

#include "ir/invalid_node.hpp"
#include "lower_tfl/signed_codes.hpp"
#include "tosa/ops.hpp"
#include "tosa/tosa.hpp"

namespace carina::lower_tfl {
namespace {

constexpr size_t kMostErrors = 20;
constexpr lower::RescaleFactor kUnit{1 << 30, 30};

const Rules& rules() {
  static const Rules table = [] {
    Rules all;
    addWindowRules(all);
    addArithmeticRules(all);
    addFunctionRules(all);
    addSoftmaxRules(all);
    addRecurrentRules(all);
    addReduceRules(all);
    addMoveRules(all);
    addResizeRules(all);
    addLogicRules(all);
    return all;
  }();
  return table;
}

/// The TOSA type of a value of the network.
Result<DType> tosaType(const ir::Value& value) {
  switch (value.dtype()) {
    case DType::Int8:
    case DType::Int16:
    case DType::Int32:
    case DType::Bool:
      return value.dtype();
    case DType::Float32:
    case DType::Float16:
      return fail(Code::NotQuantized, "'{}' is {}: the NPU computes in integers", value.name,
                  ir::typeText(value.type))
          .withRemedy(
              "quantize the whole network when it is converted (representative data set, int8 operators, "
              "inputs and outputs), or export it as .pt2 and let Carina quantize it");
    default:
      return fail(Code::NoIntegerForm, "'{}' is {}", value.name, ir::typeText(value.type))
          .withRemedy(
              "the NPU takes int8, int16, int32 and bool tensors; convert the network with int8 activations");
  }
}

/// Converts TFLite's multiplier and shift to TOSA's. Fails if RESCALE cannot represent them.
Result<lower::RescaleFactor> tosaFactor(const Multiplier& factor, int bits) {
  if (factor.value == 0) return lower::RescaleFactor{0, 62};  // a shift that accepts any input
  int shift = bits - factor.shift;
  int64_t value = factor.value;
  while (shift > 62) {
    value /= 2;
    --shift;
  }
  if (shift < 2) {
    return fail(Code::UnusableQuantization, "the factor {} between its scales is too large",
                std::ldexp(factor.value, factor.shift - bits))
        .withRemedy("the scale of its result is far too small; quantize the network again");
  }
  return lower::RescaleFactor{static_cast<int32_t>(value), static_cast<int8_t>(shift)};
}

}  // namespace

std::string placeOf(const ir::Node& node) {
  if (!node.location()) return std::string(node.opName());
  return fmt::format("{} '{}'", node.location()->source, node.location()->name);
}

bool hasRule(const ir::OpDef& def) {
  // DEQUANTIZE has no rule: it is removed from the end of the network.
  return rules().contains(&def) || &def == &tfl::Dequantize::def();
}

bool Lowered::floatEdges() const {
  const auto any = [](const std::vector<DType>& types) {
    return std::any_of(types.begin(), types.end(), isFloat);
  };
  return any(inputTypes) || any(outputTypes);
}

std::vector<Tensor> Lowered::networkOutputs(std::vector<Tensor> outputs) const {
  for (size_t i = 0; i < outputs.size() && i < outputTypes.size(); ++i) {
    if (outputTypes[i] != DType::UInt8) continue;
    const auto owner = std::make_shared<const Tensor>(std::move(outputs[i]));
    outputs[i] = Tensor::borrow(DType::UInt8, owner->shape(), owner->bytes(), owner);
  }
  return outputs;
}

Result<Lowered> lowerToTosa(const ir::Graph& network) {
  if (auto changed = signedCodes(network)) return Lowering(changed->graph, std::move(changed->bytes)).run();
  return Lowering(network).run();
}

Result<Lowered> Lowering::run() {
  std::vector<Diagnostic> problems;
  const auto note = [&](Status status, const std::string& place) {
    if (status.ok()) return;
    const Error error = std::move(status).error().at(place);
    problems.insert(problems.end(), error.diagnostics().begin(), error.diagnostics().end());
  };
  note(addInputs(), "input");
  for (const ir::Node* node : source_.nodes()) {
    if (problems.size() >= kMostErrors) break;
    location_ = node->location();
    emitter_.setLocation(location_);
    const std::string place = placeOf(*node);
    note(ir::rejectInvalidNodes(place, [&] { return lowerNode(*node); }), place);
    // Operators after a failed one find placeholders for its results, so that they are also checked.
    for (const ir::Value* result : node->results()) {
      if (values_.contains(result)) continue;
      const auto dtype = tosaType(*result);
      values_[result] = target_.addInput({dtype ? *dtype : DType::Int8, result->shape()});
    }
  }
  if (problems.empty()) note(addOutputs(), "output");
  if (!problems.empty()) return Error(std::move(problems));
  target_.eraseDeadNodes();
  CARINA_RETURN_IF_ERROR(tosa::verify(target_, {.extensions = tosa::kIntegerExtensions}));
  return Lowered{std::move(target_), std::move(inputTypes_), std::move(outputTypes_)};
}

namespace {

/// The integer value that all uses of a float input quantize it to; null if one does not.
const ir::Value* quantizedInput(const ir::Value* input) {
  const ir::Value* quantized = nullptr;
  for (const ir::Use& use : input->uses()) {
    const auto quantize = ir::dynCast<tfl::Quantize>(use.node);
    if (!quantize) return nullptr;
    const ir::Value* result = quantize.output();
    if (quantized && (quantized->type != result->type || quantized->quantization != result->quantization))
      return nullptr;
    quantized = result;
  }
  return quantized;
}

/// The integer value that a float output is dequantized from; null if dequantization is not the last step.
const ir::Value* dequantizedOutput(const ir::Value* output) {
  const auto dequantize = ir::producerAs<tfl::Dequantize>(output);
  return dequantize && output->uses().empty() ? dequantize.input() : nullptr;
}

}  // namespace

Status Lowering::addInputs() {
  std::vector<Diagnostic> problems;
  for (const ir::Value* input : source_.inputs()) {
    if (auto status = addInput(input); !status.ok()) {
      const Error error = std::move(status).error();
      problems.insert(problems.end(), error.diagnostics().begin(), error.diagnostics().end());
      values_[input] = target_.addInput({DType::Int8, input->shape()}, input->name);
    }
  }
  if (!problems.empty()) return Error(std::move(problems));
  return {};
}

Status Lowering::addInput(const ir::Value* input) {
  const ir::Value* codes = input->dtype() == DType::Float32 ? quantizedInput(input) : nullptr;
  const bool real = codes != nullptr, unsignedCodes = !real && isUnsigned(input);
  inputTypes_.push_back(unsignedCodes ? DType::UInt8 : input->dtype());
  if (!codes) codes = input;
  CARINA_TRY(const DType dtype, tosaType(*codes));
  if (real) {
    CARINA_TRY([[maybe_unused]] const Quantum quantum, codesOf(codes, "input"));
  }
  ir::Value* value = target_.addInput({dtype, input->shape()}, input->name);
  value->quantization = codes->quantization;
  if (unsignedCodes) {
    value->quantization->zeroPoints[0] += kSignedOffset;
    value = emitter_.lessHalf(value);
  }
  values_[input] = value;
  if (real) {
    for (const ir::Use& use : input->uses()) values_[use.node->result()] = value;
  }
  return {};
}

Status Lowering::addOutputs() {
  std::vector<ir::Value*> outputs;
  for (const ir::Value* output : source_.outputs()) {
    const ir::Value* codes = dequantizedOutput(output);
    const bool real = codes != nullptr, unsignedCodes = !real && isUnsigned(output);
    outputTypes_.push_back(unsignedCodes ? DType::UInt8 : output->dtype());
    if (!codes) codes = output;
    CARINA_TRY([[maybe_unused]] const DType dtype, tosaType(*codes));
    if (real) {
      CARINA_TRY([[maybe_unused]] const Quantum quantum, codesOf(codes, "result"));
    }
    ir::Value* value = get(codes);
    if (unsignedCodes) {
      if (value->name == output->name) value->name.clear();  // the name belongs to the bytes
      value = emitter_.plusHalf(value);
    }
    const bool taken = std::find(outputs.begin(), outputs.end(), value) != outputs.end();
    if (value->isInput() || value->isConstant() || taken) {
      value = emitter_.unary(Unary::Identity, value);  // outputs must be distinct values
    }
    value->name = output->name;
    value->quantization = codes->quantization;
    if (unsignedCodes) value->quantization->zeroPoints[0] += kSignedOffset;
    outputs.push_back(value);
  }
  target_.setOutputs(std::move(outputs));
  return {};
}

Status Lowering::lowerNode(const ir::Node& node) {
  // Conversions from and to float at the network's edges are the program's, not the NPU's.
  if (!node.results().empty() && values_.contains(node.result())) return {};
  if (ir::isa<tfl::Dequantize>(&node) && node.result()->isGraphOutput() && dequantizedOutput(node.result())) {
    values_[node.result()] = get(node.operand(0));
    return {};
  }
  for (const ir::Value* value : node.results()) {
    CARINA_TRY([[maybe_unused]] const DType dtype, tosaType(*value));
    if (value->rank() > tosa::kLevel8K.maxRank)
      return fail(Code::NoIntegerForm, "a result has {} dimensions, more than {}", value->rank(),
                  tosa::kLevel8K.maxRank);
  }
  for (const ir::Value* value : node.operands()) {
    if (value->rank() > tosa::kLevel8K.maxRank)
      return fail(Code::NoIntegerForm, "an operand has {} dimensions, more than {}", value->rank(),
                  tosa::kLevel8K.maxRank);
    // Constants that are not computed with (sizes, axes) may have any type.
    if (!value->isConstant()) {
      CARINA_TRY([[maybe_unused]] const DType dtype, tosaType(*value));
    }
  }
  const auto rule = rules().find(&node.def());
  if (rule == rules().end()) {
    return fail(Code::NoIntegerForm, "{} is not supported on the NPU", node.opName().substr(4))
        .withRemedy("replace it in the network, or cut the network before it (see docs/tflite.md)");
  }
  const auto anyUnsigned = [&](const std::vector<ir::Value*>& values) {
    return std::any_of(values.begin(), values.end(),
                       [&](const ir::Value* value) { return isUnsigned(value); });
  };
  if (!takesUnsigned(node.def()) && (anyUnsigned(node.operands()) || anyUnsigned(node.results()))) {
    return fail(Code::NoIntegerForm, "{} is not supported on the NPU for uint8", node.opName().substr(4))
        .withRemedy("convert the network with int8 activations");
  }
  CARINA_RETURN_IF_ERROR(rule->second(*this, node));
  for (const ir::Value* result : node.results()) {
    ir::Value* value = values_.at(result);
    if (value->type != ir::Type{result->dtype(), result->shape()}) {
      return fail(Code::NoIntegerForm, "the file declares result '{}' as {}, but the operator produces {}",
                  result->name, ir::typeText(result->type), ir::typeText(value->type));
    }
    if (value->name.empty() && !value->isConstant()) value->name = result->name;
  }
  return {};
}

ir::Value* Lowering::get(const ir::Value* value) {
  const auto known = values_.find(value);
  if (known != values_.end()) return known->second;
  CARINA_CHECK(value->isConstant(), "a value is used before it is made");
  return values_[value] = emitter_.constant(value->constant());
}

ir::Value* Lowering::ranked(const ir::Value* value, int64_t rank) {
  Shape shape = value->shape();
  while (static_cast<int64_t>(shape.size()) < rank) shape.insert(shape.begin(), 1);
  return emitter_.reshape(get(value), shape);
}

Result<Quantum> Lowering::quantumOf(const ir::Value* value) const {
  if (!value->quantization) {
    return fail(Code::NotQuantized, "'{}' ({}) is not quantized", value->name, ir::typeText(value->type))
        .withRemedy("quantize the network when it is converted");
  }
  if (value->quantization->perChannel())
    return fail(Code::UnusableQuantization, "'{}' has a scale per channel where one is needed", value->name)
        .withRemedy("quantize it per tensor");
  const int64_t zero = value->quantization->zeroPoints[0];
  if (zero < integerMin(value->dtype()) || zero > integerMax(value->dtype()))
    return fail(Code::UnusableQuantization, "'{}' ({}) has zero point {}", value->name,
                ir::typeText(value->type), zero);
  return Quantum{value->quantization->scales[0], zero};
}

Result<Quantum> Lowering::codesOf(const ir::Value* value, std::string_view what) const {
  if (value->dtype() != DType::Int8 && value->dtype() != DType::Int16) {
    return fail(Code::NoIntegerForm, "its {} '{}' is {}, not int8 or int16", what, value->name,
                ir::typeText(value->type))
        .withRemedy("convert the network with int8 activations");
  }
  CARINA_TRY(const Quantum quantum, quantumOf(value));
  if (value->dtype() == DType::Int16 && quantum.zero != 0)
    return fail(Code::UnusableQuantization, "its {} '{}' is int16 with zero point {}", what, value->name,
                quantum.zero)
        .withRemedy("int16 is symmetric: the zero point must be 0");
  return quantum;
}

Result<Quantum> Lowering::bytesOf(const ir::Value* value, std::string_view what) const {
  if (value->dtype() != DType::Int8) {
    return fail(Code::NoIntegerForm, "its {} '{}' is {}, not int8", what, value->name,
                ir::typeText(value->type))
        .withRemedy("convert the network with int8 activations");
  }
  return codesOf(value, what);
}

Result<ir::Value*> Lowering::rescale(ir::Value* input, DType to, int64_t inputZero, int64_t outputZero,
                                     std::span<const Multiplier> factors) {
  std::vector<lower::RescaleFactor> pairs;
  for (const Multiplier& factor : factors) {
    CARINA_TRY(const lower::RescaleFactor pair, tosaFactor(factor, 31));
    pairs.push_back(pair);
  }
  return emitter_.rescale(input, to, inputZero, outputZero, pairs, true, true);
}

Result<ir::Value*> Lowering::rescale48(ir::Value* input, DType to, std::span<const Multiplier> factors) {
  std::vector<lower::RescaleFactor> pairs;
  for (const Multiplier& factor : factors) {
    const int64_t reduced = std::min<int64_t>((int64_t{factor.value} + (1 << 15)) >> 16, 0x7fff);
    CARINA_TRY(const lower::RescaleFactor pair,
               tosaFactor({static_cast<int32_t>(reduced), factor.shift}, 15));
    pairs.push_back(pair);
  }
  return emitter_.rescale(input, to, 0, 0, pairs, false, false);
}

ir::Value* Lowering::widened(ir::Value* input, int64_t zero, int shift) {
  ir::Value* wide = emitter_.rescale(input, DType::Int32, zero, 0, std::array{kUnit}, true, false);
  // RESCALE with a factor only accepts small values.
  return shift == 0 ? wide : shiftedLeft(wide, shift);
}

ir::Value* Lowering::shiftedLeft(ir::Value* value, int shift) {
  return emitter_.binary(Binary::LeftShift, value, number(shift, value));
}

ir::Value* Lowering::narrowed(ir::Value* input, DType to, int64_t zero) {
  return emitter_.rescale(input, to, 0, zero, std::array{kUnit}, true, false);
}

ir::Value* Lowering::number(int64_t value, const ir::Value* like) {
  return emitter_.number(value, like);
}

ir::Value* Lowering::highProduct(ir::Value* a, ir::Value* b, int shift) {
  return emitter_.product(a, b, shift);
}

ir::Value* Lowering::shiftedRight(ir::Value* a, ir::Value* b) {
  return emitter_.shiftedRight(a, b);
}

Result<CodeRange> Lowering::activation(tfl::Activation activation, const ir::Value* output) const {
  CodeRange range{integerMin(output->dtype()), integerMax(output->dtype())};
  if (activation == tfl::Activation::NONE) return range;
  CARINA_TRY(const Quantum quantum, quantumOf(output));
  const auto limit = [&](float x) {
    const double code = std::round(x / quantum.single()) + static_cast<double>(quantum.zero);
    return static_cast<int64_t>(
        std::clamp(code, static_cast<double>(range.low), static_cast<double>(range.high)));
  };
  switch (activation) {
    case tfl::Activation::RELU:
      return CodeRange{limit(0), range.high};
    case tfl::Activation::RELU6:
      return CodeRange{limit(0), limit(6)};
    case tfl::Activation::RELU_N1_TO_1:
      return CodeRange{limit(-1), limit(1)};
    default:
      break;
  }
  return fail(Code::NoIntegerForm, "it has the unknown fused activation {}", static_cast<int64_t>(activation))
      .withRemedy("only NONE, RELU, RELU6 and RELU_N1_TO_1 can be fused; use separate operators for others");
}

ir::Value* Lowering::clamped(ir::Value* value, const CodeRange& range) {
  if (range.low <= integerMin(value->dtype()) && range.high >= integerMax(value->dtype())) return value;
  return emitter_.clamp(value, range.low, range.high);
}

}  // namespace carina::lower_tfl
