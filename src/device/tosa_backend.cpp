// SPDX-License-Identifier: Apache-2.0
#include "device/tosa_backend.hpp"

#include <algorithm>
#include <cstring>

#include "ir/invalid_node.hpp"
#include "ir/regions.hpp"
#include "tosa/interpreter.hpp"
#include "tosa_io/tosa_reader.hpp"

namespace carina::device {
namespace {

Result<ir::Graph> read(rt::Bytes blob) {
  const auto* data = reinterpret_cast<const std::byte*>(blob.data);
  const auto copy = std::make_shared<const std::vector<std::byte>>(data, data + blob.size);
  CARINA_TRY(ir::Graph graph, ir::rejectInvalidNodes("", [&] { return tosa_io::readTosa(*copy, copy); }));
  if (!computesInFloat(graph)) {
    return fail(Code::WrongKind, "the part is a TOSA graph of integers, which an NPU runs")
        .withRemedy("compile the program: carina compile PROGRAM.pte --target TARGET -o COMPILED.pte");
  }
  return graph;
}

}  // namespace

bool computesInFloat(const ir::Graph& tosa) {
  const auto inFloat = [](const ir::Value* value) { return isFloat(value->dtype()); };
  for (const ir::Graph* graph : ir::graphsWithin(tosa)) {
    if (std::any_of(graph->inputs().begin(), graph->inputs().end(), inFloat)) return true;
    for (const ir::Node* node : graph->nodes()) {
      if (std::any_of(node->results().begin(), node->results().end(), inFloat)) return true;
    }
  }
  return false;
}

bool hasTosaDelegate(const pte::Program& program) {
  return std::any_of(program.methods.begin(), program.methods.end(), [](const pte::Method& method) {
    return std::any_of(method.delegates.begin(), method.delegates.end(),
                       [](const pte::Delegate& delegate) { return delegate.id == "TOSABackend"; });
  });
}

rt::Status TosaBackend::prepare(rt::Bytes blob, const rt::NamedData&, void* state, size_t* temporaryBytes) {
  *temporaryBytes = 0;
  uint64_t index = 0;
  while (index < parts_.size() && parts_[index]->bytes != blob.data) ++index;
  if (index == parts_.size()) {
    auto graph = read(blob);
    if (!graph) {
      why_ = std::move(graph).error();
      return rt::failure(rt::Code::CorruptDelegate, "a TOSA graph cannot be loaded");
    }
    parts_.push_back(std::make_unique<Part>(Part{blob.data, std::move(*graph)}));
  }
  std::memcpy(state, &index, sizeof(index));
  return {};
}

const ir::Graph& TosaBackend::graphOf(const void* state) const {
  uint64_t index = 0;
  std::memcpy(&index, state, sizeof(index));
  CARINA_CHECK(index < parts_.size(), "the state was prepared here");
  return parts_[index]->graph;
}

rt::Status TosaBackend::checkCall(const void* state, rt::Span<const rt::Value> values,
                                  rt::Span<const int32_t> arguments) const {
  const ir::Graph& graph = graphOf(state);
  const size_t inputs = graph.inputs().size();
  if (arguments.size != inputs + graph.outputs().size()) {
    return rt::failure(rt::Code::InvalidArgument,
                       "a delegate call has a different number of arguments than its TOSA graph");
  }
  for (size_t i = 0; i < arguments.size; ++i) {
    const int32_t id = arguments[i];
    const ir::Value& value = i < inputs ? *graph.inputs()[i] : *graph.outputs()[i - inputs];
    const bool isTensor = id >= 0 && static_cast<size_t>(id) < values.size &&
                          values[static_cast<size_t>(id)].kind == rt::ValueKind::Tensor;
    if (!isTensor || values[static_cast<size_t>(id)].tensor.bytes != static_cast<size_t>(value.numBytes())) {
      return rt::failure(
          rt::Code::ShapeMismatch,
          "an argument of a delegate call is not a tensor of the size that its TOSA graph states",
          static_cast<uint32_t>(i));
    }
  }
  return {};
}

Status TosaBackend::run(const ir::Graph& graph, rt::Span<rt::Value> values,
                        rt::Span<const int32_t> arguments) {
  const auto tensorOf = [&](size_t argument) -> const rt::Tensor& {
    return values[static_cast<size_t>(arguments[argument])].tensor;
  };
  std::vector<Tensor> inputs;
  for (const ir::Value* input : graph.inputs()) {
    Tensor tensor = Tensor::uninitialized(input->dtype(), input->shape());
    std::memcpy(tensor.mutableBytes().data(), tensorOf(inputs.size()).data, tensor.bytes().size());
    inputs.push_back(std::move(tensor));
  }
  CARINA_TRY(const std::vector<Tensor> outputs, tosa::interpret(graph, inputs, nullptr, &budget_));
  for (size_t i = 0; i < outputs.size(); ++i)
    std::memcpy(tensorOf(inputs.size() + i).data, outputs[i].bytes().data(), outputs[i].bytes().size());
  return {};
}

rt::Status TosaBackend::execute(void* state, rt::Span<rt::Value> values, rt::Span<const int32_t> arguments,
                                rt::Arena&) {
  // Values may have been moved to other memory.
  if (const rt::Status status = checkCall(state, {values.data, values.size}, arguments); !status.ok())
    return status;
  if (auto status = run(graphOf(state), values, arguments); !status.ok()) {
    why_ = std::move(status).error();
    return rt::failure(rt::Code::DeviceFault, "a TOSA graph cannot be computed");
  }
  return {};
}

}  // namespace carina::device
