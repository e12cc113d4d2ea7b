// SPDX-License-Identifier: Apache-2.0
#include "pipeline/integer_io.hpp"

#include <algorithm>
#include <cmath>

#include "aten/ops.hpp"
#include "pipeline/port_codes.hpp"
#include "quantize/qparams.hpp"

namespace carina::pipeline {
namespace {

struct Quantizer {
  double scale;
  int64_t zeroPoint;
  DType dtype;
  friend bool operator==(const Quantizer&, const Quantizer&) = default;
};

/// What all users of a float input quantize it to; nullopt if any does not, or they differ.
std::optional<Quantizer> commonQuantizer(const ir::Value& input) {
  std::optional<Quantizer> common;
  for (const ir::Use& use : input.uses()) {
    auto quantize = ir::dynCast<aten::QuantizePerTensor>(use.node);
    if (!quantize) return std::nullopt;
    const Quantizer found{quantize.scale(), quantize.zeroPoint(), quantize.dtype()};
    if (common && *common != found) return std::nullopt;
    common = found;
  }
  return common;
}

DType typeOf(ProgramIo io) {
  return io == ProgramIo::Int16 ? DType::Int16 : DType::Int8;
}

/// The values of --io that match codes of this type.
std::string optionsFor(DType codes) {
  for (const ProgramIo io : {ProgramIo::Int8, ProgramIo::Int16}) {
    if (codes == typeOf(io)) return fmt::format("--io {} or --io float", programIoName(io));
  }
  return "--io float";
}

/// The network's own quantization determines the available integer types.
Status checkType(const std::string& what, DType found, ProgramIo asked) {
  if (asked == ProgramIo::UInt8) {
    if (found == DType::Int8) return {};
    return fail(Code::UnusableQuantization, "{} is quantized to {}: it has no 8-bit codes", what,
                dtypeName(found))
        .withRemedy("use " + optionsFor(found) + ", or --mean and --std if it takes pixels");
  }
  if (found == typeOf(asked)) return {};
  return fail(Code::UnusableQuantization, "{} is quantized to {}, not {}", what, dtypeName(found),
              dtypeName(typeOf(asked)))
      .withRemedy("use " + optionsFor(found));
}

/// Makes the input hold codes.
void useCodesOf(ir::Value& input, const Quantizer& quantizer) {
  input.type.dtype = quantizer.dtype;
  input.quantization = ir::Quantization{{quantizer.scale}, {quantizer.zeroPoint}, -1};
}

/// Makes the input the result of the quantize nodes that read it.
void useCodes(ir::Graph& graph, ir::Value* input, const Quantizer& quantizer) {
  useCodesOf(*input, quantizer);
  const std::vector<ir::Use> uses = input->uses();
  for (const ir::Use& use : uses) {
    graph.replaceAllUses(use.node->result(), input);
    graph.erase(use.node);
  }
}

constexpr int64_t kHalf = 128;  // offset from int8 codes to uint8 codes

/// Makes the input hold those codes plus 128.
void useBytes(ir::Graph& graph, ir::Value* input, const Quantizer& quantizer) {
  const int64_t zero = quantizer.zeroPoint + kHalf;
  const std::vector<ir::Use> uses = input->uses();
  input->type.dtype = DType::UInt8;
  input->quantization = ir::Quantization{{quantizer.scale}, {zero}, -1};
  ir::Builder builder(graph, graph.firstNode());
  ir::Value* number =
      aten::DequantizePerTensor::create(builder, input, quantizer.scale, zero, integerMin(DType::UInt8),
                                        integerMax(DType::UInt8), DType::UInt8);
  for (const ir::Use& use : uses) use.node->setOperand(use.operand, number);
}

/// What the node dequantizes.
ir::Value* codesOf(const aten::DequantizePerTensor& dequantize) {
  ir::Value* integer = dequantize.input();
  integer->quantization = ir::Quantization{{dequantize.scale()}, {dequantize.zeroPoint()}, -1};
  return integer;
}

Status exposeInput(ir::Graph& graph, ir::Value* input, ProgramIo asked) {
  if (input->isGraphOutput())
    return fail(Code::UnusableQuantization, "program input '{}' is also an output", input->name)
        .withRemedy("use --io float");
  auto quantizer = commonQuantizer(*input);
  if (!quantizer) {
    return fail(Code::UnusableQuantization,
                "program input '{}' is not quantized in the same way by all its users", input->name)
        .withRemedy("use --io float");
  }
  CARINA_RETURN_IF_ERROR(checkType(fmt::format("program input '{}'", input->name), quantizer->dtype, asked));
  if (asked == ProgramIo::UInt8) {
    useBytes(graph, input, *quantizer);
  } else {
    useCodes(graph, input, *quantizer);
  }
  return {};
}

/// The codes of a constant, over its own range; zero is code 0.
ir::Value* codesOfConstant(ir::Graph& graph, const ir::Value& constant, ProgramIo asked) {
  const auto numbers = constant.constant().as<float>();
  float largest = 0;
  for (const float number : numbers) {
    if (std::isfinite(number)) largest = std::max(largest, std::abs(number));
  }
  const bool wide = asked == ProgramIo::Int16;
  const quantize::QParams codes = quantize::symmetricQParams(
      -largest, largest, wide ? quantize::kInt16Activation : quantize::kInt8Activation, quantize::kEpsTiny);
  ir::Value* integer = graph.addConstant(
      quantizeTensor(constant.constant(), codes.codes.dtype, codes.scale, codes.zeroPoint), constant.name);
  integer->quantization = ir::Quantization{{codes.scale}, {codes.zeroPoint}, -1};
  return integer;
}

Status exposeOutput(ir::Graph& graph, size_t index, ProgramIo asked) {
  ir::Value* output = graph.outputs()[index];
  if (output->isConstant()) {
    graph.setOutput(index, codesOfConstant(graph, *output, asked));
    return {};
  }
  auto dequantize = ir::producerAs<aten::DequantizePerTensor>(output);
  if (!dequantize) {
    return fail(Code::UnusableQuantization, "program output {} ('{}') is not the result of a dequantize",
                index, output->name)
        .withRemedy("use --io float");
  }
  CARINA_RETURN_IF_ERROR(
      checkType(fmt::format("program output {}", index), dequantize.input()->dtype(), asked));
  graph.setOutput(index, codesOf(dequantize));
  return {};
}

}  // namespace

Status exposeIntegers(ir::Graph& graph, const PortTypes& inputs, const PortTypes& outputs, size_t states) {
  for (size_t i = 0; i + states < graph.inputs().size(); ++i) {
    ir::Value* input = graph.inputs()[i];
    if (inputs.of(i) != ProgramIo::Float && isFloat(input->dtype()) && !input->unused())
      CARINA_RETURN_IF_ERROR(exposeInput(graph, input, inputs.of(i)));
  }
  for (size_t i = 0; i + states < graph.outputs().size(); ++i) {
    const ir::Value* output = graph.outputs()[i];
    if (outputs.of(i) != ProgramIo::Float && isFloat(output->dtype()))
      CARINA_RETURN_IF_ERROR(exposeOutput(graph, i, outputs.of(i)));
  }
  graph.eraseDeadNodes();
  return {};
}

void exposeIntegerState(ir::Graph& graph, size_t states) {
  const size_t inputs = graph.inputs().size() - states, outputs = graph.outputs().size() - states;
  for (size_t i = 0; i < states; ++i) {
    ir::Value* input = graph.inputs()[inputs + i];
    const auto quantizer =
        isFloat(input->dtype()) && !input->isGraphOutput() ? commonQuantizer(*input) : std::nullopt;
    const auto after = ir::producerAs<aten::DequantizePerTensor>(graph.outputs()[outputs + i]);
    if (!quantizer || !after || *quantizer != Quantizer{after.scale(), after.zeroPoint(), after.dtype()})
      continue;
    useCodes(graph, input, *quantizer);
    graph.setOutput(outputs + i, codesOf(after));
  }
  graph.eraseDeadNodes();
}

std::optional<quantize::QParams> stateCodes(const ir::Graph& graph, size_t states, size_t index) {
  const ir::Value* before = graph.inputs()[graph.inputs().size() - states + index];
  const ir::Value* after = graph.outputs()[graph.outputs().size() - states + index];
  if (!isFloat(before->dtype())) return std::nullopt;
  std::optional<quantize::QParams> codes;
  if (!before->uses().empty()) {
    if (!commonQuantizer(*before)) return std::nullopt;
    const auto q = ir::dynCast<aten::QuantizePerTensor>(before->uses().front().node);
    codes = quantize::QParams{q.scale(), q.zeroPoint(), {q.dtype(), q.quantMin(), q.quantMax()}};
  }
  if (after == before) return codes;
  const auto q = ir::producerAs<aten::DequantizePerTensor>(after);
  if (!q) return std::nullopt;
  const quantize::QParams written{q.scale(), q.zeroPoint(), {q.dtype(), q.quantMin(), q.quantMax()}};
  return !codes || *codes == written ? std::optional(written) : std::nullopt;
}

bool keepStateAs(ir::Graph& graph, size_t states, size_t index, const quantize::QParams& codes) {
  ir::Value* input = graph.inputs()[graph.inputs().size() - states + index];
  const size_t own = graph.outputs().size() - states + index;
  ir::Value* after = graph.outputs()[own];
  if (!isFloat(input->dtype())) return false;
  const Quantizer wanted{codes.scale, codes.zeroPoint, codes.codes.dtype};
  const auto dequantized = [&](const ir::Builder& builder) {
    return aten::DequantizePerTensor::create(builder, input, codes.scale, codes.zeroPoint, codes.codes.min,
                                             codes.codes.max, codes.codes.dtype);
  };
  const std::vector<ir::Use> uses = input->uses();
  std::vector<size_t> returned;  // outputs that return the variable's previous contents
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    if (graph.outputs()[i] == input && i != own) returned.push_back(i);
  }
  useCodesOf(*input, wanted);
  bool converts = false;
  for (const ir::Use& use : uses) {
    const auto q = ir::dynCast<aten::QuantizePerTensor>(use.node);
    if (q && Quantizer{q.scale(), q.zeroPoint(), q.dtype()} == wanted) {
      graph.replaceAllUses(q.output(), input);
      graph.erase(use.node);
      continue;
    }
    use.node->setOperand(use.operand, dequantized(ir::Builder::beforeNode(use.node)));
    converts = true;
  }
  for (const size_t i : returned) {
    graph.setOutput(i, dequantized(ir::Builder(graph)));
    converts = true;
  }
  if (after == input) return converts;
  const auto q = ir::producerAs<aten::DequantizePerTensor>(after);
  if (q && Quantizer{q.scale(), q.zeroPoint(), q.input()->dtype()} == wanted) {
    graph.setOutput(own, codesOf(q));
  } else {
    ir::Builder builder(graph);
    graph.setOutput(
        own, aten::QuantizePerTensor::create(builder, after, codes.scale, codes.zeroPoint, codes.codes.min,
                                             codes.codes.max, codes.codes.dtype));
    converts = true;
  }
  graph.eraseDeadNodes();
  return converts;
}

Tensor asInput(const Tensor& tensor, const ir::Value& input) {
  if (!isFloat(tensor.dtype()) || isFloat(input.dtype()) || !input.quantization) return tensor;
  return quantizeTensor(tensor, input.dtype(), input.quantization->scales.front(),
                        input.quantization->zeroPoints.front());
}

}  // namespace carina::pipeline
