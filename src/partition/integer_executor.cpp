// SPDX-License-Identifier: Apache-2.0
// Each value of codes is one step: the nodes between it and the codes from which it is computed, as a
// separate graph.
#include "partition/integer_executor.hpp"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "aten/control_flow.hpp"
#include "lower/lower.hpp"
#include "partition/units.hpp"
#include "tosa/interpreter.hpp"

namespace carina::partition {
namespace {

/// The computation of one value of the graph from others.
struct Step {
  const ir::Value* value = nullptr;
  std::vector<const ir::Value*> inputs;  // of the graph; converted to `types`
  std::vector<ir::Type> types;
  std::unique_ptr<ir::Graph> graph;          // aten or TOSA
  std::unique_ptr<aten::Executor> executor;  // null: the TOSA interpreter
  std::vector<const ir::Value*> done;        // not read after this step
};

bool isCodes(const ir::Value& value) {
  return !isFloat(value.dtype());
}

/// Whether it dequantizes codes that a quantize node produced; observers see both values.
bool isShown(const ir::Node& node) {
  return isDequantize(node) && node.operand(0)->producer() && isQuantize(*node.operand(0)->producer());
}

/// The nodes that compute a value from codes and from inputs of the graph, in program order.
std::vector<const ir::Node*> sliceOf(const ir::Value& value,
                                     const std::unordered_map<const ir::Node*, size_t>& order) {
  std::unordered_set<const ir::Node*> found;
  std::vector<const ir::Node*> slice{value.producer()};
  found.insert(value.producer());
  for (size_t i = 0; i < slice.size(); ++i) {
    for (const ir::Value* operand : slice[i]->operands()) {
      if (operand && operand->producer() && !isCodes(*operand) && found.insert(operand->producer()).second)
        slice.push_back(operand->producer());
    }
  }
  std::sort(slice.begin(), slice.end(),
            [&](const ir::Node* a, const ir::Node* b) { return order.at(a) < order.at(b); });
  return slice;
}

/// The graph of a step. With `narrow`, integers cross its border as they enter an NPU part: int64 as int32.
Result<Step> stepOf(const ir::Value& value, const std::vector<const ir::Node*>& slice, bool narrow) {
  Step step;
  step.value = &value;
  step.graph = std::make_unique<ir::Graph>("step");
  ir::Graph& graph = *step.graph;
  std::unordered_map<const ir::Value*, ir::Value*> mapping;
  for (const ir::Node* node : slice) {
    for (const ir::Value* operand : node->operands()) {
      if (!operand || mapping.contains(operand)) continue;
      if (operand->isConstant()) {
        mapping[operand] = graph.addConstant(operand->constant(), operand->name);
      } else {
        const bool cast = narrow && operand->dtype() == DType::Int64;
        const ir::Type type{cast ? DType::Int32 : operand->dtype(), operand->shape()};
        ir::Value* input = graph.addInput(type, operand->name);
        step.inputs.push_back(operand);
        step.types.push_back(type);
        ir::Builder builder(graph);
        mapping[operand] = cast ? converted(builder, input, DType::Int64) : input;
      }
      mapping[operand]->quantization = operand->quantization;
    }
    CARINA_TRY([[maybe_unused]] const ir::Node* const copy, ir::cloneNode(*node, graph, mapping));
  }
  graph.setOutputs({mapping.at(&value)});
  return step;
}

}  // namespace

struct IntegerExecutor::Plan {
  const ir::Graph& graph;
  std::vector<Step> steps;
  size_t inIntegers = 0, quantized = 0;

  explicit Plan(const ir::Graph& of) : graph(of) {}

  Status build() {
    std::unordered_map<const ir::Node*, size_t> order;
    for (const ir::Node* node : graph.nodes()) order.emplace(node, order.size());
    for (const ir::Node* node : graph.nodes()) {
      for (const ir::Value* result : node->results()) {
        if (result->unused() || (!isCodes(*result) && !result->isGraphOutput() && !isShown(*node))) continue;
        CARINA_RETURN_IF_ERROR(add(*result, sliceOf(*result, order)));
      }
    }
    release();
    return {};
  }

  Status add(const ir::Value& value, const std::vector<const ir::Node*>& slice) {
    const bool counts = isQuantize(*value.producer());
    quantized += counts;
    if (isCodes(value) && value.dtype() != DType::Int64) {
      CARINA_TRY(Step step, stepOf(value, slice, true));
      if (auto lowered = lower::lowerToTosa(*step.graph); lowered.ok()) {
        *step.graph = std::move(*lowered);
        steps.push_back(std::move(step));
        inIntegers += counts;
        return {};
      }
    }
    CARINA_TRY(Step step, stepOf(value, slice, false));
    CARINA_TRY(auto executor, aten::Executor::create(*step.graph));
    step.executor = std::make_unique<aten::Executor>(std::move(executor));
    steps.push_back(std::move(step));
    return {};
  }

  /// Records after which step each value is no longer read.
  void release() {
    std::unordered_set<const ir::Value*> seen(graph.outputs().begin(), graph.outputs().end());
    for (size_t i = steps.size(); i-- > 0;) {
      for (const ir::Value* input : steps[i].inputs) {
        if (seen.insert(input).second) steps[i].done.push_back(input);
      }
      if (seen.insert(steps[i].value).second) steps[i].done.push_back(steps[i].value);
    }
  }
};

IntegerExecutor::IntegerExecutor(std::unique_ptr<Plan> plan) : plan_(std::move(plan)) {}
IntegerExecutor::~IntegerExecutor() = default;
IntegerExecutor::IntegerExecutor(IntegerExecutor&&) noexcept = default;
IntegerExecutor& IntegerExecutor::operator=(IntegerExecutor&&) noexcept = default;

Result<IntegerExecutor> IntegerExecutor::create(const ir::Graph& graph) {
  auto plan = std::make_unique<Plan>(graph);
  CARINA_RETURN_IF_ERROR(plan->build());
  return IntegerExecutor(std::move(plan));
}

size_t IntegerExecutor::inIntegers() const {
  return plan_->inIntegers;
}

size_t IntegerExecutor::quantized() const {
  return plan_->quantized;
}

Result<std::vector<Tensor>> IntegerExecutor::run(std::span<const Tensor> inputs,
                                                 const aten::Observer& observer) const {
  const ir::Graph& graph = plan_->graph;
  if (inputs.size() != graph.inputs().size()) {
    return fail(Code::InputMismatch, "graph @{} takes {} inputs, got {}", graph.name, graph.inputs().size(),
                inputs.size());
  }
  std::unordered_map<const ir::Value*, Tensor> values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (observer) observer(*graph.inputs()[i], inputs[i]);
    values[graph.inputs()[i]] = inputs[i];
  }
  for (const Step& step : plan_->steps) {
    std::vector<Tensor> operands;
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const Tensor& tensor = values.at(step.inputs[i]);
      operands.push_back(tensor.dtype() == step.types[i].dtype ? tensor
                                                               : convert(tensor, step.types[i].dtype));
    }
    CARINA_TRY(std::vector<Tensor> results,
               step.executor ? step.executor->run(operands) : tosa::interpret(*step.graph, operands));
    if (observer) observer(*step.value, results[0]);
    values[step.value] = std::move(results[0]);
    for (const ir::Value* done : step.done) values.erase(done);
  }
  std::vector<Tensor> outputs;
  for (const ir::Value* output : graph.outputs())
    outputs.push_back(output->isConstant() ? output->constant() : values.at(output));
  return outputs;
}

}  // namespace carina::partition
