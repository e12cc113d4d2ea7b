// SPDX-License-Identifier: Apache-2.0
#include "device/tflite_operator.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>

#include "aten/executor.hpp"
#include "lower_tfl/lower.hpp"
#include "lower_tfl/to_aten.hpp"
#include "tflite/graph_builder.hpp"
#include "tosa/interpreter.hpp"

namespace carina::device {
namespace {

using Kernel = std::function<Result<std::vector<Tensor>>(std::span<const Tensor>)>;

/// The operator as a network of its own.
tflite::Model networkOf(const tflite::Model& model, size_t index, TfliteOperator& op) {
  const tflite::Subgraph& subgraph = model.subgraphs.front();
  const tflite::Operator& from = subgraph.operators[index];
  op.name = from.name;
  op.outputs = from.outputs;
  for (const int32_t input : from.inputs) {
    if (input < 0) continue;
    const tflite::Tensor& tensor = subgraph.tensors[static_cast<size_t>(input)];
    const bool known = std::count(op.inputs.begin(), op.inputs.end(), input) != 0;
    if (tensor.data.empty() && !tensor.isVariable && !known) op.inputs.push_back(input);
  }
  tflite::Model network;
  network.version = model.version;
  network.subgraphs.push_back({subgraph.name, subgraph.tensors, op.inputs, op.outputs, {from}});
  return network;
}

/// float32 to codes as TensorFlow Lite does it: halves away from zero.
template <typename T>
Tensor quantized(const Tensor& from, DType dtype, double scale, int64_t zero) {
  Tensor to = Tensor::uninitialized(dtype, from.shape());
  const auto values = from.as<float>();
  const auto codes = to.mutableAs<T>();
  const auto low = static_cast<double>(std::numeric_limits<T>::min());
  const auto high = static_cast<double>(std::numeric_limits<T>::max());
  for (size_t i = 0; i < values.size(); ++i) {
    const double rounded = std::round(values[i] / static_cast<float>(scale)) + static_cast<double>(zero);
    codes[i] = static_cast<T>(std::isnan(rounded) ? low : std::clamp(rounded, low, high));
  }
  return to;
}

/// A QUANTIZE from float, or a DEQUANTIZE to it.
std::optional<Kernel> conversionOf(const tflite::Model& model, const tflite::Operator& op) {
  if ((op.name != "QUANTIZE" && op.name != "DEQUANTIZE") || op.custom || op.inputs.size() != 1 ||
      op.outputs.size() != 1 || op.inputs[0] < 0 || op.outputs[0] < 0)
    return std::nullopt;
  const auto& tensors = model.subgraphs.front().tensors;
  const tflite::Tensor& from = tensors[static_cast<size_t>(op.inputs[0])];
  const tflite::Tensor& to = tensors[static_cast<size_t>(op.outputs[0])];
  const tflite::Tensor& codes = op.name == "QUANTIZE" ? to : from;
  const tflite::Tensor& numbers = op.name == "QUANTIZE" ? from : to;
  if (numbers.type != tflite::TensorType::Float32 || codes.scales.size() != 1 || from.shape != to.shape)
    return std::nullopt;
  const double scale = codes.scales[0];
  const int64_t zero = codes.zeroPoints.empty() ? 0 : codes.zeroPoints[0];
  const tflite::TensorType type = codes.type;
  using Types = tflite::TensorType;
  if (type != Types::Int8 && type != Types::UInt8 && type != Types::Int16) return std::nullopt;
  if (op.name == "QUANTIZE") {
    return [=](std::span<const Tensor> inputs) -> Result<std::vector<Tensor>> {
      const Tensor& input = inputs[0];
      return std::vector<Tensor>{type == Types::Int8 ? quantized<int8_t>(input, DType::Int8, scale, zero)
                                 : type == Types::UInt8
                                     ? quantized<uint8_t>(input, DType::UInt8, scale, zero)
                                     : quantized<int16_t>(input, DType::Int16, scale, zero)};
    };
  }
  return [=](std::span<const Tensor> inputs) -> Result<std::vector<Tensor>> {
    Tensor output = Tensor::uninitialized(DType::Float32, inputs[0].shape());
    const auto values = output.mutableAs<float>();
    for (size_t i = 0; i < values.size(); ++i) {
      const int64_t code = inputs[0].integerAt(static_cast<int64_t>(i));
      values[i] = static_cast<float>(scale * static_cast<double>(code - zero));
    }
    return std::vector<Tensor>{std::move(output)};
  };
}

/// A RESHAPE and the like, of any element type: the result has the bytes of the operand.
std::optional<Kernel> viewOf(const tflite::Model& model, const tflite::Operator& op) {
  if ((op.name != "RESHAPE" && op.name != "SQUEEZE" && op.name != "EXPAND_DIMS") || op.custom ||
      op.inputs.empty() || op.inputs[0] < 0 || op.outputs.size() != 1 || op.outputs[0] < 0)
    return std::nullopt;
  const auto& tensors = model.subgraphs.front().tensors;
  const tflite::Tensor& from = tensors[static_cast<size_t>(op.inputs[0])];
  const tflite::Tensor& to = tensors[static_cast<size_t>(op.outputs[0])];
  const auto dtype = tflite::toDType(to.type);
  if (!dtype || from.type != to.type || tflite::tensorBytes(from) != tflite::tensorBytes(to) ||
      !from.data.empty())
    return std::nullopt;
  return [dtype = *dtype, shape = to.shape](std::span<const Tensor> inputs) -> Result<std::vector<Tensor>> {
    Tensor output = Tensor::uninitialized(dtype, shape);
    std::copy(inputs[0].bytes().begin(), inputs[0].bytes().end(), output.mutableBytes().begin());
    return std::vector<Tensor>{std::move(output)};
  };
}

}  // namespace

Result<TfliteOperator> prepareOperator(const tflite::Model& model, size_t index) {
  TfliteOperator op;
  const tflite::Model network = networkOf(model, index, op);
  const tflite::Operator& described = network.subgraphs.front().operators.front();
  for (const auto& find : {conversionOf, viewOf}) {
    if (auto kernel = find(network, described)) {
      op.run = std::move(*kernel);
      return op;
    }
  }
  const auto refuse = [&](const Error& why) -> Result<TfliteOperator> {
    return fail(Code::UnsupportedProgram, "{} is left to the CPU and is not computed here: {}", op.name,
                why.diagnostics().front().message)
        .at(fmt::format("operator {}", index))
        .withRemedy("run the model in TensorFlow Lite for Microcontrollers");
  };
  auto graph = tflite::buildGraph(network, nullptr);
  if (!graph) return refuse(graph.error());
  auto lowered = lower_tfl::lowerToTosa(*graph);
  if (lowered && !lowered->floatEdges()) {
    op.run = [tosa = std::make_shared<const ir::Graph>(std::move(lowered->tosa))](
                 std::span<const Tensor> inputs) { return tosa::interpret(*tosa, inputs); };
    return op;
  }
  if (const Status status = lower_tfl::toAten(*graph); !status.ok())
    return refuse(lowered ? status.error() : lowered.error());
  const auto floats = std::make_shared<const ir::Graph>(std::move(*graph));
  auto executor = aten::Executor::create(*floats);
  if (!executor) return refuse(executor.error());
  op.run = [floats, executor = std::make_shared<const aten::Executor>(std::move(*executor))](
               std::span<const Tensor> inputs) { return executor->run(inputs); };
  return op;
}

}  // namespace carina::device
