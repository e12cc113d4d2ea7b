// SPDX-License-Identifier: Apache-2.0
#include "tosa/interpreter.hpp"

#include <unordered_map>

#include "ir/footprint.hpp"
#include "tosa/kernels/kernel.hpp"
#include "tosa/op_facts.hpp"
#include "tosa/work.hpp"

namespace carina::tosa {
namespace {

using kernels::Operands;
using kernels::Results;

/// A WHILE_LOOP with more iterations is considered endless.
constexpr int64_t kMaxIterations = 1'000'000;

/// What a run shares with the runs of nested graphs.
struct Session {
  const Observer& observer;
  WorkBudget* budget = nullptr;
};

Results runNode(const ir::Node& node, Operands operands, const Session& session);

/// Runs one graph; tensors live until their last use.
class Run {
 public:
  Run(const ir::Graph& graph, const Session& session) : graph_(graph), session_(session) {}

  Results operator()(Operands inputs) {
    if (inputs.size() != graph_.inputs().size()) {
      return fail(Code::InputMismatch, "graph @{} takes {} inputs, got {}", graph_.name,
                  graph_.inputs().size(), inputs.size());
    }
    for (size_t i = 0; i < inputs.size(); ++i)
      CARINA_RETURN_IF_ERROR(setInput(*graph_.inputs()[i], inputs[i], i));
    for (const ir::Node* node : graph_.nodes()) CARINA_RETURN_IF_ERROR(step(*node));
    std::vector<Tensor> outputs;
    for (const ir::Value* output : graph_.outputs()) outputs.push_back(valueOf(output));
    return outputs;
  }

 private:
  Status setInput(const ir::Value& value, const Tensor& tensor, size_t index) {
    const ir::Type given{tensor.dtype(), tensor.shape()};
    if (given == ir::Type{DType::UInt8, value.shape()} && value.dtype() == DType::Int8) {
      // TOSA tensors have no signedness: the RESCALE that reads them determines it.
      keep(value, Tensor::borrow(DType::Int8, tensor.shape(), tensor.bytes(),
                                 std::make_shared<const Tensor>(tensor)));
      return {};
    }
    if (given != value.type) {
      return fail(Code::InputMismatch, "input {} '{}' is {}, got {}", index, value.name,
                  ir::typeText(value.type), ir::typeText(given));
    }
    keep(value, tensor);
    return {};
  }

  void keep(const ir::Value& value, Tensor tensor) {
    if (!value.unused()) live_[&value] = {std::move(tensor), value.uses().size()};
  }

  Tensor valueOf(const ir::Value* value) const {
    if (value->isConstant()) return value->constant();
    const auto it = live_.find(value);
    CARINA_CHECK(it != live_.end(), "a value is used before it is computed");
    return it->second.tensor;
  }

  void used(const ir::Value* value) {
    const auto it = live_.find(value);
    if (it == live_.end()) return;
    if (--it->second.usesLeft == 0 && !value->isGraphOutput()) live_.erase(it);
  }

  Status step(const ir::Node& node) {
    std::vector<Tensor> operands;
    for (const ir::Value* operand : node.operands()) operands.push_back(valueOf(operand));
    auto results = runNode(node, operands, session_);
    if (!results.ok()) return std::move(results).error().at(node.where());
    operands.clear();
    for (const ir::Value* operand : node.operands()) used(operand);
    CARINA_CHECK(results->size() == node.results().size(), "a kernel gave another number of results");
    for (size_t i = 0; i < results->size(); ++i) {
      const ir::Value& value = *node.result(i);
      Tensor& tensor = (*results)[i];
      CARINA_CHECK(tensor.dtype() == value.dtype() && tensor.shape() == value.shape(),
                   "a kernel gave another type");
      if (session_.observer) session_.observer(value, tensor);
      keep(value, std::move(tensor));
    }
    return {};
  }

  struct Live {
    Tensor tensor;
    size_t usesLeft;
  };
  const ir::Graph& graph_;
  const Session& session_;
  std::unordered_map<const ir::Value*, Live> live_;
};

Results conditional(const ir::Node& node, Operands operands, const Session& session) {
  const size_t region = operands[0].integerAt(0) != 0 ? 0 : 1;
  return Run(node.region(region), session)(operands.subspan(1));
}

Results loop(const ir::Node& node, Operands operands, const Session& session) {
  std::vector<Tensor> state(operands.begin(), operands.end());
  for (int64_t i = 0; i < kMaxIterations; ++i) {
    CARINA_TRY(const std::vector<Tensor> condition, Run(node.region(0), session)(state));
    if (condition[0].integerAt(0) == 0) return state;
    CARINA_TRY(state, Run(node.region(1), session)(state));
  }
  return fail(Code::Excessive, "the loop is still running after {} iterations", kMaxIterations);
}

Results runNode(const ir::Node& node, Operands operands, const Session& session) {
  if (session.budget != nullptr) CARINA_RETURN_IF_ERROR(session.budget->require(workOf(node), node.opName()));
  if (const Kernel kernel = factsOf(node.def()).kernel) return kernel(node, operands);
  switch (opId(&node)) {
    case OpId::CondIf:
      return conditional(node, operands, session);
    case OpId::WhileLoop:
      return loop(node, operands, session);
    case OpId::Custom:
      return fail(Code::UnsupportedForm, "custom operator '{}' cannot be run here",
                  ir::cast<Custom>(&node).operatorName())
          .withRemedy("replace it with standard TOSA operators");
    case OpId::Variable:
    case OpId::VariableRead:
    case OpId::VariableWrite:
      return fail(Code::UnsupportedForm, "{}: graphs with state cannot be run", node.opName())
          .withRemedy("make the state an input and an output of the graph");
    default:
      CARINA_UNREACHABLE("operator without a kernel");
  }
}

/// Kernels need as much memory again for operands without zero points and 32-bit sums.
Status checkMemory(const ir::Graph& graph, const WorkBudget& budget) {
  const ir::Footprint most = ir::footprintOf(graph);
  for (const ir::Node* node : graph.nodes()) {
    for (const auto& region : node->regions()) CARINA_RETURN_IF_ERROR(checkMemory(*region, budget));
  }
  if (most.bytes <= budget.bytes() / 4) return {};
  return fail(Code::Excessive,
              "its tensors take {} bytes at once, more than {}, the limit for a file of its size", most.bytes,
              budget.bytes() / 4)
      .at(most.at ? most.at->where() : "inputs")
      .withRemedy(kTrustRemedy);
}

}  // namespace

Status checkBudget(const ir::Graph& graph, WorkBudget& budget) {
  CARINA_RETURN_IF_ERROR(checkMemory(graph, budget));
  const double steps = workOf(graph);
  if (steps <= static_cast<double>(budget.left())) return {};
  return budget.require(steps, "the interpreter");
}

Result<std::vector<Tensor>> interpret(const ir::Graph& graph, std::span<const Tensor> inputs,
                                      const Observer& observer, WorkBudget* budget) {
  for (const ir::Node* node : graph.nodes()) {
    if (!isOperator(node))
      return fail(Code::UnknownOperator, "{} is not a TOSA operator", node->opName()).at(node->where());
  }
  if (budget != nullptr) CARINA_RETURN_IF_ERROR(checkBudget(graph, *budget));
  return Run(graph, {observer, budget})(inputs);
}

Result<std::vector<Tensor>> interpretNode(const ir::Node& node, std::span<const Tensor> operands,
                                          const Observer& observer) {
  CARINA_CHECK(isOperator(&node), "not a TOSA operator");
  return runNode(node, operands, {observer});
}

}  // namespace carina::tosa
