// SPDX-License-Identifier: Apache-2.0
#include "aten/executor.hpp"

#include <algorithm>
#include <unordered_map>

#include "aten/control_flow.hpp"
#include "aten/kernels/cast.hpp"
#include "aten/kernels/kernel.hpp"
#include "aten/movement.hpp"
#include "aten/work.hpp"
#include "base/failed_checks.hpp"
#include "onednn/single_thread.hpp"

namespace carina::aten {
namespace {

bool isHalf(DType dtype) {
  return dtype == DType::Float16 || dtype == DType::BFloat16;
}

/// Half-precision arithmetic is done in float32 and rounded once per operator; moves and casts are not
/// arithmetic.
bool computesInHalf(const ir::Node& node) {
  const auto isHalfOne = [](const ir::Value* value) { return value && isHalf(value->dtype()); };
  if (std::none_of(node.operands().begin(), node.operands().end(), isHalfOne) &&
      std::none_of(node.results().begin(), node.results().end(), isHalfOne))
    return false;
  if (isControlFlow(node)) return false;
  const auto isNamed = [&](const KernelEntry& entry) { return entry.op == node.opName(); };
  return std::none_of(movementKernels().begin(), movementKernels().end(), isNamed) &&
         std::none_of(castKernels().begin(), castKernels().end(), isNamed);
}

Diagnostic describe(const ir::Node& node, Diagnostic diagnostic) {
  if (diagnostic.place.empty()) diagnostic.place = node.where();
  diagnostic.message = fmt::format("{}: {}", node.opName(), diagnostic.message);
  return diagnostic;
}

Error describe(const ir::Node& node, const Error& error) {
  std::vector<Diagnostic> diagnostics;
  for (const Diagnostic& diagnostic : error.diagnostics()) diagnostics.push_back(describe(node, diagnostic));
  return Error(std::move(diagnostics));
}

Result<Kernel> prepareNode(const ir::Node& node) {
  if (node.def().has(ir::kInPlace)) {
    return Error(Diagnostic{"the operator modifies its operand",
                            "run decompose::functionalize on the graph first", "", "",
                            Code::UnsupportedForm});
  }
  const Prepare prepare = findKernel(node.opName());
  if (!prepare) {
    return Error(Diagnostic{
        "the float executor has no kernel for this operator",
        "replace it in the model by supported operators, or export with run_decompositions() so that it "
        "is split into them",
        "", "", Code::UnknownOperator});
  }
  return rejectFailedChecks([&] { return prepare(node); });
}

/// A node prepared for execution.
struct Step {
  const ir::Node* node = nullptr;
  Kernel kernel;                  // not used by control flow
  std::vector<Executor> regions;  // control flow only
  std::vector<int> operands;      // slots, -1 if absent
  std::vector<int> results;       // slots
  std::vector<bool> lastUse;      // per operand
  std::vector<int> dying;         // slots to free afterwards
  std::vector<ir::Type> types;
  bool inFloat = false;  // half-precision node
  bool folded = false;   // results are constants of the plan
  bool late = false;     // constant, but computed immediately before its first use
  WorkBudget* loops = nullptr;
  double turnSteps = 0;  // work of one iteration of a while_loop
};

Status prepare(const ir::Node& node, Folding folding, WorkBudget* loops, Step& step) {
  if (!isControlFlow(node)) {
    auto kernel = prepareNode(node);
    if (!kernel) return describe(node, std::move(kernel).error());
    step.kernel = std::move(*kernel);
    return {};
  }
  for (const auto& region : node.regions()) {
    auto executor = Executor::create(*region, folding, loops);
    if (!executor) return std::move(executor).error().at(node.where());
    step.regions.push_back(std::move(*executor));
  }
  if (loops == nullptr || !node.is(whileLoopDef())) return {};
  step.loops = loops;
  for (const auto& region : node.regions()) step.turnSteps += workOf(*region);
  return {};
}

/// What happens to values after their last use.
enum class Keep : uint8_t { Nothing, All };

/// Runs one step on the slots.
Status runStep(const Step& step, std::vector<Tensor>& slots, Keep keep) {
  std::vector<Call::Operand> operands(step.operands.size());
  std::vector<Tensor> widened(step.inFloat ? step.operands.size() : 0);
  for (size_t i = 0; i < operands.size(); ++i) {
    if (step.operands[i] < 0) continue;
    Tensor& tensor = slots[static_cast<size_t>(step.operands[i])];
    operands[i] = {&tensor, keep == Keep::Nothing && step.lastUse[i]};
    if (step.inFloat && isHalf(tensor.dtype())) {
      widened[i] = castTo(tensor, DType::Float32);
      operands[i] = {&widened[i], true};
    }
  }
  std::vector<Tensor> results(step.types.size());
  std::vector<ir::Type> floatTypes;
  if (step.inFloat) {
    floatTypes = step.types;
    for (ir::Type& type : floatTypes) {
      if (isHalf(type.dtype)) type.dtype = DType::Float32;
    }
  }
  Call call(*step.node, operands, step.inFloat ? floatTypes : step.types, results);
  // Kernels rely on the operand types that inference accepted: other types cause an error, not a crash.
  if (auto status = rejectFailedChecks([&] { return step.kernel(call); }); !status)
    return describe(*step.node, std::move(status).error());
  for (size_t i = 0; i < results.size(); ++i) {
    if (step.inFloat) results[i] = castTo(results[i], step.types[i].dtype);
    const bool right = results[i].dtype() == step.types[i].dtype && results[i].shape() == step.types[i].shape;
    if (!right) {
      return describe(*step.node, fail(Code::InvalidGraph, "the result is {}, but the graph declares {}",
                                       ir::typeText({results[i].dtype(), results[i].shape()}),
                                       ir::typeText(step.types[i])));
    }
    slots[static_cast<size_t>(step.results[i])] = std::move(results[i]);
  }
  return {};
}

using Values = Result<std::vector<Tensor>>;

/// `values` are the operands of condition and body: the carried values change, the additional ones do not.
Values runLoop(const Step& step, std::vector<Tensor> values, const Observer& observer) {
  const auto carried = static_cast<std::ptrdiff_t>(step.results.size());
  for (int64_t turn = 0; turn < kMaxLoopIterations; ++turn) {
    if (step.loops != nullptr)
      CARINA_RETURN_IF_ERROR(
          step.loops->require(step.turnSteps, fmt::format("iteration {} of the loop", turn)));
    CARINA_TRY(const std::vector<Tensor> condition, step.regions[0].run(values, observer));
    if (condition[0].integerAt(0) == 0) {
      values.erase(values.begin() + carried, values.end());
      return values;
    }
    CARINA_TRY(std::vector<Tensor> next, step.regions[1].run(values, observer));
    std::move(next.begin(), next.end(), values.begin());
  }
  return Error(Diagnostic{fmt::format("the loop is still running after {} iterations", kMaxLoopIterations),
                          "check its condition: it must become false for every input", "", "",
                          Code::NoResult});
}

Values runScan(const Step& step, std::span<const Tensor> operands, const Observer& observer) {
  const Scan scan(*step.node);
  std::vector<Tensor> values(operands.begin(), operands.end());  // operands of the body
  std::vector<Tensor> results;
  for (const ir::Type& type : step.types) results.push_back(Tensor::uninitialized(type.dtype, type.shape));
  for (int64_t turn = 0; turn < scan.turns; ++turn) {
    for (size_t i = scan.carried; i < scan.carried + scan.sliced; ++i)
      values[i] = sliceOf(operands[i], scan, turn);
    CARINA_TRY(std::vector<Tensor> given, step.regions[0].run(values, observer));
    for (size_t i = scan.carried; i < given.size(); ++i) putSlice(results[i], scan, turn, given[i]);
    std::move(given.begin(), given.begin() + static_cast<std::ptrdiff_t>(scan.carried), values.begin());
  }
  std::move(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(scan.carried), results.begin());
  return results;
}

/// Runs the regions that a control flow node selects.
Status runControlFlow(const Step& step, std::vector<Tensor>& slots, const Observer& observer) {
  std::vector<Tensor> operands;
  for (int slot : step.operands) operands.push_back(slots[static_cast<size_t>(slot)]);
  const auto run = [&]() -> Values {
    if (step.node->is(whileLoopDef())) return runLoop(step, std::move(operands), observer);
    if (step.node->is(scanDef())) return runScan(step, operands, observer);
    const size_t branch = operands[0].integerAt(0) != 0 ? 0 : 1;
    return step.regions[branch].run(std::span(operands).subspan(1), observer);
  };
  auto results = run();
  if (!results) return std::move(results).error().at(step.node->where());
  for (size_t i = 0; i < results->size(); ++i)
    slots[static_cast<size_t>(step.results[i])] = std::move((*results)[i]);
  return {};
}

Status runAny(const Step& step, std::vector<Tensor>& slots, const Observer& observer,
              Keep keep = Keep::Nothing) {
  return step.regions.empty() ? runStep(step, slots, keep) : runControlFlow(step, slots, observer);
}

}  // namespace

namespace {

/// Numbers the values of a graph.
class Slots {
 public:
  int add(const ir::Value* value) {
    const int slot = static_cast<int>(index_.size());
    index_.emplace(value, slot);
    return slot;
  }
  int of(const ir::Value* value) const {
    const auto it = index_.find(value);
    CARINA_CHECK(it != index_.end(), "a value is used before it is defined");
    return it->second;
  }
  size_t size() const { return index_.size(); }

 private:
  std::unordered_map<const ir::Value*, int> index_;
};

}  // namespace

struct Executor::Plan {
  const ir::Graph* graph = nullptr;
  std::vector<Step> steps;
  std::vector<Tensor> initial;  // per slot: constants and folded results, empty otherwise
  std::vector<int> inputs, outputs;
  Slots slots;

  Status checkInputs(std::span<const Tensor> given) const;
  bool hasLateSteps() const {
    return std::any_of(steps.begin(), steps.end(), [](const Step& step) { return step.late; });
  }
  /// Moves the `late` steps to immediately before their first use.
  void delayLateSteps();
  /// Determines the values that each step is the last to read. `known`: slots of constants, which are kept.
  void findLastUses(std::vector<bool> known);
  /// Computes the steps whose results are `wanted` into the slots; stand-ins replace results.
  Status compute(const Replacements& standIns, const std::vector<bool>& wanted,
                 std::vector<Tensor>& values) const;
};

Executor::Executor(std::unique_ptr<Plan> plan) : plan_(std::move(plan)) {}
Executor::~Executor() = default;
Executor::Executor(Executor&&) noexcept = default;
Executor& Executor::operator=(Executor&&) noexcept = default;

void Executor::Plan::delayLateSteps() {
  std::unordered_map<int, size_t> makers;  // steps, among the late ones, by the slots of their results
  for (size_t i = 0; i < steps.size(); ++i) {
    for (int slot : steps[i].results) {
      if (steps[i].late) makers.emplace(slot, i);
    }
  }
  if (makers.empty()) return;
  std::vector<size_t> order, pending;
  std::vector<bool> placed(steps.size(), false);
  const auto place = [&](size_t step) {
    pending.assign(1, step);
    while (!pending.empty()) {  // operands of a step precede it
      const size_t last = pending.back();
      for (int slot : steps[last].operands) {
        const auto maker = makers.find(slot);
        if (maker != makers.end() && !placed[maker->second]) pending.push_back(maker->second);
      }
      if (pending.back() != last) continue;
      pending.pop_back();
      if (!placed[last]) order.push_back(last);
      placed[last] = true;
    }
  };
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!steps[i].late) place(i);
  }
  for (size_t i = 0; i < steps.size(); ++i) place(i);  // outputs that are constant
  std::vector<Step> moved;
  moved.reserve(steps.size());
  for (size_t i : order) moved.push_back(std::move(steps[i]));
  steps = std::move(moved);
}

void Executor::Plan::findLastUses(std::vector<bool> known) {
  // Backwards: the first read encountered is the last use. Outputs and constants are kept.
  std::vector<bool>& needed = known;
  std::vector<uint32_t> reads(needed.size(), 0);  // of each value by the current step
  for (int slot : outputs) needed[static_cast<size_t>(slot)] = true;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    for (int slot : step->results) {
      if (!needed[static_cast<size_t>(slot)]) step->dying.push_back(slot);  // never read
    }
    for (int slot : step->operands) {
      if (slot >= 0 && !needed[static_cast<size_t>(slot)] && ++reads[static_cast<size_t>(slot)] == 1)
        step->dying.push_back(slot);
    }
    for (size_t i = 0; i < step->operands.size(); ++i) {
      const int slot = step->operands[i];
      if (slot >= 0 && reads[static_cast<size_t>(slot)] == 1) step->lastUse[i] = true;
    }
    for (int slot : step->operands) {
      if (slot < 0) continue;
      needed[static_cast<size_t>(slot)] = true;
      reads[static_cast<size_t>(slot)] = 0;
    }
  }
}

namespace {

/// Whether the results occupy more bytes than all operands.
bool grows(const ir::Node& node) {
  const auto bytesOf = [](const std::vector<ir::Value*>& values) {
    int64_t bytes = 0;
    for (const ir::Value* value : values) {
      if (value) bytes += value->numBytes();
    }
    return bytes;
  };
  return bytesOf(node.results()) > bytesOf(node.operands());
}

}  // namespace

Result<Executor> Executor::create(const ir::Graph& graph, Folding folding, WorkBudget* loops) {
  const onednn::SingleThread singleThread;
  auto plan = std::make_unique<Plan>();
  plan->graph = &graph;
  Slots& slots = plan->slots;
  std::vector<Diagnostic> problems;
  for (const ir::Value* input : graph.inputs()) plan->inputs.push_back(slots.add(input));
  for (const auto& constant : graph.constants()) slots.add(constant.get());
  for (const ir::Node* node : graph.nodes()) {
    for (const ir::Value* result : node->results()) slots.add(result);
  }
  plan->initial.resize(slots.size());
  std::vector<bool> known(slots.size(), false);     // before a run starts
  std::vector<bool> constant(slots.size(), false);  // known, or computed from constants only
  for (const auto& value : graph.constants()) {
    const auto slot = static_cast<size_t>(slots.of(value.get()));
    plan->initial[slot] = value->constant();
    known[slot] = constant[slot] = true;
  }
  const auto areAll = [](const std::vector<bool>& what, const std::vector<int>& of) {
    return std::all_of(of.begin(), of.end(),
                       [&](int slot) { return slot < 0 || what[static_cast<size_t>(slot)]; });
  };
  for (const ir::Node* node : graph.nodes()) {
    Step step;
    step.node = node;
    if (Status prepared = prepare(*node, folding, loops, step); !prepared.ok()) {
      for (const Diagnostic& diagnostic : prepared.error().diagnostics()) problems.push_back(diagnostic);
      continue;
    }
    step.inFloat = computesInHalf(*node);
    for (const ir::Value* operand : node->operands())
      step.operands.push_back(operand ? slots.of(operand) : -1);
    for (const ir::Value* result : node->results()) {
      step.results.push_back(slots.of(result));
      step.types.push_back(result->type);
    }
    step.lastUse.assign(step.operands.size(), false);
    if (node->def().has(ir::kPure) && problems.empty() && areAll(constant, step.operands)) {
      step.late = !areAll(known, step.operands) || (folding == Folding::NothingThatGrows && grows(*node));
      step.folded = !step.late;
      if (step.folded) {
        if (auto status = runAny(step, plan->initial, nullptr); !status) {
          for (const Diagnostic& diagnostic : status.error().diagnostics()) problems.push_back(diagnostic);
          continue;
        }
      }
      for (int slot : step.results) {
        known[static_cast<size_t>(slot)] = step.folded;
        constant[static_cast<size_t>(slot)] = true;
      }
    }
    plan->steps.push_back(std::move(step));
  }
  if (!problems.empty()) return Error(std::move(problems));
  for (const ir::Value* output : graph.outputs()) plan->outputs.push_back(slots.of(output));
  plan->delayLateSteps();
  plan->findLastUses(std::move(known));
  return Executor(std::move(plan));
}

Status Executor::Plan::checkInputs(std::span<const Tensor> given) const {
  if (given.size() != graph->inputs().size()) {
    return fail(Code::InputMismatch, "the graph has {} inputs, but {} tensors were given",
                graph->inputs().size(), given.size());
  }
  for (size_t i = 0; i < given.size(); ++i) {
    const ir::Value& input = *graph->inputs()[i];
    const ir::Type type{given[i].dtype(), given[i].shape()};
    if (type == input.type) continue;
    return Error(Diagnostic{fmt::format("input {} is {}, but the graph expects {}", i, ir::typeText(type),
                                        ir::typeText(input.type)),
                            "give an array of this shape and type", "", input.name, Code::InputMismatch});
  }
  return {};
}

Result<std::vector<Tensor>> Executor::run(std::span<const Tensor> inputs, const Observer& observer) const {
  const onednn::SingleThread singleThread;
  const ir::Graph& graph = *plan_->graph;
  CARINA_RETURN_IF_ERROR(plan_->checkInputs(inputs));
  std::vector<Tensor> slots = plan_->initial;
  for (size_t i = 0; i < inputs.size(); ++i) {
    slots[static_cast<size_t>(plan_->inputs[i])] = inputs[i];
    if (observer) observer(*graph.inputs()[i], inputs[i]);
  }
  for (const Step& step : plan_->steps) {
    if (!step.folded) CARINA_RETURN_IF_ERROR(runAny(step, slots, observer));
    if (observer) {
      for (size_t i = 0; i < step.results.size(); ++i) {
        observer(*step.node->result(i), slots[static_cast<size_t>(step.results[i])]);
      }
    }
    for (int slot : step.dying) slots[static_cast<size_t>(slot)] = Tensor();
  }
  std::vector<Tensor> outputs;
  for (int slot : plan_->outputs) outputs.push_back(slots[static_cast<size_t>(slot)]);
  return outputs;
}

Status Executor::Plan::compute(const Replacements& standIns, const std::vector<bool>& wanted,
                               std::vector<Tensor>& values) const {
  for (const Step& step : steps) {
    const auto isWanted = [&](int slot) { return wanted[static_cast<size_t>(slot)]; };
    if (std::none_of(step.results.begin(), step.results.end(), isWanted)) continue;
    if (const auto standIn = standIns.find(step.node); standIn != standIns.end()) {
      values[static_cast<size_t>(step.results[0])] = values[static_cast<size_t>(slots.of(standIn->second))];
      continue;
    }
    CARINA_RETURN_IF_ERROR(runAny(step, values, nullptr, Keep::All));
  }
  return {};
}

Result<KeptRun> Executor::keepRun(std::span<const Tensor> inputs, Replacements standIns) const {
  const onednn::SingleThread singleThread;
  CARINA_CHECK(!plan_->hasLateSteps(), "stand-ins come before what they stand for");
  CARINA_RETURN_IF_ERROR(plan_->checkInputs(inputs));
  KeptRun kept{plan_->initial, std::move(standIns)};
  for (size_t i = 0; i < inputs.size(); ++i) kept.values[static_cast<size_t>(plan_->inputs[i])] = inputs[i];
  CARINA_RETURN_IF_ERROR(
      plan_->compute(kept.standIns, std::vector<bool>(kept.values.size(), true), kept.values));
  return kept;
}

Result<std::vector<Tensor>> Executor::rerun(const KeptRun& before, const Replacements& standIns) const {
  const onednn::SingleThread singleThread;
  const auto standInOf = [](const Replacements& all, const ir::Node* node) {
    const auto found = all.find(node);
    return found == all.end() ? nullptr : found->second;
  };
  // Forwards: the values that differ. Backwards: those of them that the outputs need.
  std::vector<bool> differs(before.values.size(), false), wanted(before.values.size(), false);
  const auto isIn = [](const std::vector<bool>& set) {
    return [&set](int slot) { return slot >= 0 && set[static_cast<size_t>(slot)]; };
  };
  for (const Step& step : plan_->steps) {
    const ir::Value* standIn = standInOf(standIns, step.node);
    bool changed = standIn != standInOf(before.standIns, step.node);
    if (standIn) {
      changed = changed || isIn(differs)(plan_->slots.of(standIn));
    } else {
      changed = changed || std::any_of(step.operands.begin(), step.operands.end(), isIn(differs));
    }
    for (int slot : step.results) differs[static_cast<size_t>(slot)] = changed;
  }
  const auto want = [&](int slot) {
    if (slot >= 0 && differs[static_cast<size_t>(slot)]) wanted[static_cast<size_t>(slot)] = true;
  };
  for (int slot : plan_->outputs) want(slot);
  for (auto step = plan_->steps.rbegin(); step != plan_->steps.rend(); ++step) {
    if (std::none_of(step->results.begin(), step->results.end(), isIn(wanted))) continue;
    if (const ir::Value* standIn = standInOf(standIns, step->node)) {
      want(plan_->slots.of(standIn));
    } else {
      std::for_each(step->operands.begin(), step->operands.end(), want);
    }
  }
  std::vector<Tensor> values = before.values;
  CARINA_RETURN_IF_ERROR(plan_->compute(standIns, wanted, values));
  std::vector<Tensor> outputs;
  for (int slot : plan_->outputs) outputs.push_back(values[static_cast<size_t>(slot)]);
  return outputs;
}

Result<std::vector<Tensor>> execute(const ir::Graph& graph, std::span<const Tensor> inputs,
                                    const Observer& observer) {
  CARINA_TRY(const Executor executor, Executor::create(graph));
  return executor.run(inputs, observer);
}

bool canExecute(const ir::OpDef& def) {
  return findKernel(def.name) != nullptr;
}

}  // namespace carina::aten
