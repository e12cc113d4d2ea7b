// SPDX-License-Identifier: Apache-2.0
#include "pipeline/integer_io.hpp"

#include <algorithm>
#include <cmath>

#include "aten/ops.hpp"

namespace carina::pipeline {
namespace {

struct Quantizer {
  double scale;
  int64_t zeroPoint;
  DType dtype;
  friend bool operator==(const Quantizer&, const Quantizer&) = default;
};

/// What all users of a float input quantize it to; nothing when one of them does not.
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

/// The network's own quantization decides what integers there are.
Status checkType(const std::string& what, DType found, ProgramIo asked) {
  if (found == typeOf(asked)) return {};
  return fail(Code::UnusableQuantization, "{} is quantized to {}, not {}", what, dtypeName(found),
              dtypeName(typeOf(asked)))
      .withRemedy(fmt::format("use --io {} or --io float", dtypeName(found)));
}

/// The input holds codes.
void useCodesOf(ir::Value& input, const Quantizer& quantizer) {
  input.type.dtype = quantizer.dtype;
  input.quantization = ir::Quantization{{quantizer.scale}, {quantizer.zeroPoint}, -1};
}

/// The input becomes what the quantize nodes that read it make of it.
void useCodes(ir::Graph& graph, ir::Value* input, const Quantizer& quantizer) {
  useCodesOf(*input, quantizer);
  const std::vector<ir::Use> uses = input->uses();
  for (const ir::Use& use : uses) {
    graph.replaceAllUses(use.node->result(), input);
    graph.erase(use.node);
  }
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
    return fail(Code::UnusableQuantization, "program input '{}' is not quantized in one way by all its users",
                input->name)
        .withRemedy("use --io float");
  }
  CARINA_RETURN_IF_ERROR(checkType(fmt::format("program input '{}'", input->name), quantizer->dtype, asked));
  useCodes(graph, input, *quantizer);
  return {};
}

Status exposeOutput(ir::Graph& graph, size_t index, ProgramIo asked) {
  ir::Value* output = graph.outputs()[index];
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

Status exposeIntegers(ir::Graph& graph, ProgramIo inputs, ProgramIo outputs, size_t states) {
  if (inputs != ProgramIo::Float) {
    for (size_t i = 0; i + states < graph.inputs().size(); ++i) {
      ir::Value* input = graph.inputs()[i];
      if (isFloat(input->dtype()) && !input->unused())
        CARINA_RETURN_IF_ERROR(exposeInput(graph, input, inputs));
    }
  }
  if (outputs != ProgramIo::Float) {
    for (size_t i = 0; i + states < graph.outputs().size(); ++i) {
      ir::Value* output = graph.outputs()[i];
      if (isFloat(output->dtype())) CARINA_RETURN_IF_ERROR(exposeOutput(graph, i, outputs));
    }
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
  const auto dequantized = [&](ir::Builder builder) {
    return aten::DequantizePerTensor::create(builder, input, codes.scale, codes.zeroPoint, codes.codes.min,
                                             codes.codes.max, codes.codes.dtype, std::nullopt)
        .output();
  };
  const std::vector<ir::Use> uses = input->uses();
  std::vector<size_t> returned;  // outputs that show what the variable held before the call
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
    graph.setOutput(own, aten::QuantizePerTensor::create(builder, after, codes.scale, codes.zeroPoint,
                                                         codes.codes.min, codes.codes.max, codes.codes.dtype)
                             .output());
    converts = true;
  }
  graph.eraseDeadNodes();
  return converts;
}

Tensor asInput(const Tensor& tensor, const ir::Value& input) {
  if (!isFloat(tensor.dtype()) || isFloat(input.dtype()) || !input.quantization) return tensor;
  const auto inverse = static_cast<float>(1.0 / input.quantization->scales.front());
  const auto zero = static_cast<float>(input.quantization->zeroPoints.front());
  Tensor integers = Tensor::uninitialized(input.dtype(), input.shape());
  const auto low = static_cast<float>(integerMin(input.dtype())),
             high = static_cast<float>(integerMax(input.dtype()));
  for (int64_t k = 0; k < integers.numElements(); ++k) {
    const float q = std::nearbyint(static_cast<float>(tensor.realAt(k)) * inverse) + zero;
    integers.setIntegerAt(k, static_cast<int64_t>(std::clamp(q, low, high)));
  }
  return integers;
}

}  // namespace carina::pipeline
