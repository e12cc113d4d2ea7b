// SPDX-License-Identifier: Apache-2.0
#include "device/tflite_operator.hpp"

#include <algorithm>
#include <memory>

#include "aten/executor.hpp"
#include "aten/work.hpp"
#include "device/tflite_kernels.hpp"
#include "lower_tfl/lower.hpp"
#include "lower_tfl/to_aten.hpp"
#include "tflite/graph_builder.hpp"
#include "tosa/interpreter.hpp"
#include "tosa/work.hpp"

namespace carina::device {
namespace {

/// The operator as a network of its own.
tflite::Model networkOf(const tflite::Model& model, const tflite::Subgraph& subgraph, size_t index,
                        TfliteOperator& op) {
  const tflite::Operator& from = subgraph.operators[index];
  op.name = from.name;
  op.outputs = from.outputs;
  for (const int32_t input : from.inputs) {
    if (input < 0) continue;
    const tflite::Tensor& tensor = subgraph.tensors[static_cast<size_t>(input)];
    auto& list = tensor.isVariable ? op.variables : op.inputs;
    if (tensor.data.empty() && std::count(list.begin(), list.end(), input) == 0) list.push_back(input);
  }
  tflite::Model network;
  network.version = model.version;
  network.subgraphs.push_back({subgraph.name, subgraph.tensors, op.inputs, op.outputs, {from}});
  return network;
}

/// Work of a kernel from tflite_kernels.hpp: every element of every tensor, and constants once per batch
/// entry.
double workOf(const tflite::Subgraph& graph, const tflite::Operator& op) {
  constexpr double kElement = 20, kProduct = 2;
  double elements = 0, constants = 0, batch = 1;
  for (const auto* tensors : {&op.inputs, &op.outputs}) {
    for (const int32_t index : *tensors) {
      if (index < 0) continue;
      const tflite::Tensor& tensor = graph.tensors[static_cast<size_t>(index)];
      double count = 1;
      for (const int64_t size : tensor.shape) count *= static_cast<double>(size);
      (tensor.data.empty() ? elements : constants) += count;
      if (!tensor.shape.empty()) batch = std::max(batch, static_cast<double>(tensor.shape.front()));
    }
  }
  return elements * kElement + batch * constants * kProduct;
}

}  // namespace

Result<TfliteOperator> prepareOperator(const tflite::Model& model, size_t subgraph, size_t index) {
  TfliteOperator op;
  const tflite::Model network = networkOf(model, model.subgraphs[subgraph], index, op);
  const tflite::Operator& described = network.subgraphs.front().operators.front();
  if (auto kernel = kernelOf(network.subgraphs.front(), described)) {
    op.run = std::move(*kernel);
    op.work = workOf(network.subgraphs.front(), described);
    return op;
  }
  const auto refuse = [&](const Error& why) -> Result<TfliteOperator> {
    return fail(Code::UnsupportedProgram, "{} is left to the CPU and is not computed here: {}", op.name,
                why.diagnostics().front().message)
        .at(fmt::format("operator {}", index) +
            (subgraph == 0 ? "" : fmt::format(" of subgraph {}", subgraph)))
        .withRemedy("run the model in TensorFlow Lite for Microcontrollers");
  };
  auto graph = tflite::buildGraph(network, nullptr);
  if (!graph) return refuse(graph.error());
  if (!op.variables.empty())
    return refuse(Error(fail(Code::UnsupportedForm, "it keeps values from run to run")));
  auto lowered = lower_tfl::lowerToTosa(*graph);
  if (lowered && !lowered->floatEdges()) {
    for (const ir::Node* node : lowered->tosa.nodes()) op.work += tosa::workOf(*node);
    op.run = [tosa = std::make_shared<const ir::Graph>(std::move(lowered->tosa))](
                 std::span<const Tensor> inputs) { return tosa::interpret(*tosa, inputs); };
    return op;
  }
  if (const Status status = lower_tfl::toAten(*graph); !status.ok())
    return refuse(lowered ? status.error() : lowered.error());
  const auto floats = std::make_shared<const ir::Graph>(std::move(*graph));
  op.work = aten::workOf(*floats);
  auto executor = aten::Executor::create(*floats);
  if (!executor) return refuse(executor.error());
  op.run = [floats, executor = std::make_shared<const aten::Executor>(std::move(*executor))](
               std::span<const Tensor> inputs) { return executor->run(inputs); };
  return op;
}

}  // namespace carina::device
