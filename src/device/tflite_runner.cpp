// SPDX-License-Identifier: Apache-2.0
#include "device/tflite_runner.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <optional>

#include "device/npu_host.hpp"
#include "device/tflite_memory.hpp"
#include "device/tflite_operator.hpp"
#include "npu/isa/payload.hpp"
#include "tflite/control_flow.hpp"
#include "tflite/variables.hpp"
#include "tflite/vela.hpp"

namespace carina::device {
namespace {

/// Fixed steps of any operator (base/work_budget.hpp), and of a subgraph excluding its operators.
constexpr double kOperatorWork = 5000, kSubgraphWork = 1000;

/// Base pointers of an operator: constants, scratch, fast scratch, then as many inputs and outputs as fit
/// (all of them are in the arena as well, where compilers address them).
constexpr size_t kMaxRegions = 8;

Result<Runner::Io> ioOf(const tflite::Tensor& tensor) {
  const auto dtype = tflite::toDType(tensor.type);
  if (!dtype)
    return fail(Code::UnsupportedProgram, "tensor '{}' is {}, which cannot cross the program boundary",
                tensor.name, tensor.str());
  return Runner::Io{*dtype, tensor.shape};
}

AlignedBuffer copyOf(ByteSpan bytes) {
  AlignedBuffer buffer(bytes.size());
  if (!bytes.empty()) std::memcpy(buffer.data(), bytes.data(), bytes.size());
  return buffer;
}

std::string placeOf(size_t subgraph, size_t index) {
  return fmt::format("operator {}", index) + (subgraph == 0 ? "" : fmt::format(" of subgraph {}", subgraph));
}

bool isBuiltin(const tflite::Operator& op, std::string_view name) {
  return !op.custom && op.name == name;
}

}  // namespace

struct TfliteRunner::State {
  /// An `ethos-u` operator with its own memory.
  struct Call {
    AlignedBuffer payload, constants, fastScratch;
    std::vector<npu::InitializedRange> initialized;
  };
  /// The action of one step, on the tensors of its subgraph.
  using Action = std::function<Status(RunStats&)>;

  RunOptions options;
  tflite::Model model;
  tflite::NpuProgram program;
  std::optional<WorkBudget> budget;
  NpuHost npu;  // without a device if the program has no calls
  std::optional<TfliteMemory> memory;
  std::optional<TfliteVariables> variables;
  std::vector<Call> calls;
  std::vector<std::vector<Action>> actions;                              // by subgraph
  std::vector<std::pair<size_t, std::vector<int32_t>>> variableTensors;  // of operators, with their subgraph
  std::map<std::pair<size_t, int32_t>, int32_t> handles;                 // by subgraph and tensor
  std::vector<std::shared_ptr<bool>> ran;                                // of each CALL_ONCE
  std::vector<Runner::Io> inputs, outputs;

  Status open(ByteSpan file) {
    CARINA_TRY(model, tflite::readModel(file));
    CARINA_TRY(program, tflite::npuProgram(model));
    budget.emplace(file.size(), options.trusted);
    memory.emplace(program);
    variables.emplace(budget->bytes());
    if (!program.calls.empty()) CARINA_RETURN_IF_ERROR(openNpu());
    const auto takeEnds = [this](const std::vector<int32_t>& tensors,
                                 std::vector<Runner::Io>& ends) -> Status {
      for (const int32_t index : tensors) {
        memory->place(0, index);
        CARINA_TRY(Runner::Io io, ioOf(memory->tensor(0, index)));
        ends.push_back(std::move(io));
      }
      return {};
    };
    CARINA_RETURN_IF_ERROR(takeEnds(program.main().inputs, inputs));
    CARINA_RETURN_IF_ERROR(takeEnds(program.main().outputs, outputs));
    for (const tflite::NpuCall& call : program.calls) calls.push_back(prepare(call));
    nameVariables();
    actions.resize(program.subgraphs.size());
    std::vector<Diagnostic> missing;
    for (size_t g = 0; g < program.subgraphs.size(); ++g) {
      for (const tflite::NpuProgram::Step& step : program.subgraphs[g].steps) {
        auto action = step.isCall ? Result<Action>([this, index = step.index](RunStats& stats) {
          return execute(index, stats);
        })
                                  : actionOf(g, step.index);
        if (action) {
          actions[g].push_back(std::move(*action));
        } else {
          missing.push_back(action.error().diagnostics().front());
        }
      }
    }
    if (!missing.empty()) return Error(std::move(missing));
    return {};
  }

  // Operators of the NPU
  // ----------------------------------------------------------------------------------------------

  Status openNpu() {
    auto payload = npu::readPayload(program.calls.front().payload);
    if (!payload) return std::move(payload).error().at(program.calls.front().name);
    CARINA_TRY(const npu::Target* target, npu::payloadTarget(*payload));
    pte::EthosUSettings compiled;
    compiled.target = std::string(target->name);
    CARINA_TRY(npu, NpuHost::open(compiled, options));
    npu.device->share(*budget);
    return {};
  }

  Call prepare(const tflite::NpuCall& from) {
    const size_t g = from.subgraph;
    const auto& offsets = program.subgraphs[g].offsets;
    Call call;
    call.payload = copyOf(from.payload);
    call.constants = copyOf(from.constants);
    memory->place(g, from.scratch);
    // Separate fast scratch is not in the arena: on a device the driver puts it into on-chip memory.
    if (!program.sharesScratch(from)) call.fastScratch = AlignedBuffer(memory->bytes(g, from.fastScratch));
    size_t next = 3;
    const auto add = [&](int32_t index, bool input) {
      memory->place(g, index);
      const auto region = static_cast<uint8_t>(next++);
      if (!input) return;
      if (region < kMaxRegions) call.initialized.push_back({region, 0, memory->bytes(g, index)});
      const auto& at = offsets[static_cast<size_t>(index)];
      const auto& scratch = offsets[static_cast<size_t>(from.scratch)];
      if (at && scratch && *at >= *scratch)
        call.initialized.push_back({1, *at - *scratch, memory->bytes(g, index)});
    };
    for (const int32_t input : from.inputs) add(input, true);
    for (const int32_t output : from.outputs) add(output, false);
    return call;
  }

  Status execute(size_t index, RunStats& stats) {
    const tflite::NpuCall& from = program.calls[index];
    const Call& call = calls[index];
    CARINA_RETURN_IF_ERROR(budget->require(kOperatorWork, from.name));
    std::vector<rt::Region> regions = {{call.constants.data(), call.constants.size(), rt::Access::Read},
                                       memory->region(from.subgraph, from.scratch)};
    regions.push_back(
        program.sharesScratch(from)
            ? regions[1]
            : rt::Region{call.fastScratch.data(), call.fastScratch.size(), rt::Access::ReadWrite});
    for (const auto* tensors : {&from.inputs, &from.outputs}) {
      for (const int32_t tensor : *tensors) {
        if (regions.size() < kMaxRegions) regions.push_back(memory->region(from.subgraph, tensor));
      }
    }
    npu.device->npu().setInitialized(call.initialized);
    const rt::Bytes payload(call.payload.data(), call.payload.size());
    const rt::Status status =
        npu.driver->run(payload, rt::Span<const rt::Region>(regions.data(), regions.size()));
    if (!status.ok()) return npu.explain(status).at(from.name);
    DelegateRun run;
    run.instruction = static_cast<uint32_t>(index);
    run.stats = npu.device->stats();
    run.findings = npu.device->findings();
    run.pmuCycles = npu.driver->pmu().cycles;
    if (options.keepDelegateIo) {
      for (const int32_t input : from.inputs) run.inputs.push_back(contents(from.subgraph, input));
      for (const int32_t output : from.outputs) run.outputs.push_back(contents(from.subgraph, output));
    }
    stats.npuCycles += static_cast<int64_t>(run.pmuCycles);
    stats.fastScratchBytes = std::max(stats.fastScratchBytes, static_cast<int64_t>(call.fastScratch.size()));
    stats.delegates.push_back(std::move(run));
    return {};
  }

  // Operators of the CPU
  // ----------------------------------------------------------------------------------------------

  Result<Action> actionOf(size_t g, size_t index) {
    const tflite::Operator& op = model.subgraphs[g].operators[index];
    const auto placed = [&](Result<Action> action) -> Result<Action> {
      if (!action) return std::move(action).error().at(placeOf(g, index) + fmt::format(" ({})", op.name));
      return action;
    };
    if (const auto flow = tflite::controlFlowOf(op)) return placed(controlFlow(g, op, *flow));
    for (const std::string_view name : {"VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE"}) {
      if (isBuiltin(op, name)) return placed(variableAction(g, op));
    }
    return kernelAction(g, index);
  }

  /// A kernel with memory for its operands and results.
  Result<Action> kernelAction(size_t g, size_t index) {
    CARINA_TRY(TfliteOperator op, prepareOperator(model, g, index));
    for (const auto* tensors : {&op.inputs, &op.outputs, &op.variables}) {
      for (const int32_t tensor : *tensors) memory->place(g, tensor);
    }
    if (!op.variables.empty()) variableTensors.emplace_back(g, op.variables);
    return Action([this, g, index, op = std::make_shared<const TfliteOperator>(std::move(op))](
                      RunStats& stats) { return executeKernel(g, index, *op, stats); });
  }

  Status executeKernel(size_t g, size_t index, const TfliteOperator& op, RunStats& stats) {
    if (Status enough = budget->require(op.work + kOperatorWork, op.name); !enough.ok())
      return std::move(enough).error().at(placeOf(g, index));
    std::vector<Tensor> operands;
    std::vector<int32_t> from = op.inputs, to = op.outputs;
    from.insert(from.end(), op.variables.begin(), op.variables.end());
    to.insert(to.end(), op.variables.begin(), op.variables.end());
    for (const int32_t input : from) {
      const rt::Region source = memory->region(g, input);
      const tflite::Tensor& tensor = memory->tensor(g, input);
      Tensor& operand =
          operands.emplace_back(Tensor::uninitialized(*tflite::toDType(tensor.type), tensor.shape));
      if (source.bytes > 0) std::memcpy(operand.mutableBytes().data(), source.data, source.bytes);
    }
    auto results = op.run(operands);
    if (!results) return std::move(results).error().at(placeOf(g, index) + fmt::format(" ({})", op.name));
    for (size_t i = 0; i < to.size(); ++i) {
      const rt::Region target = memory->region(g, to[i]);
      const ByteSpan bytes = (*results)[i].bytes();
      CARINA_CHECK(bytes.size() == target.bytes, "an operator gives results of the size that the file says");
      if (!bytes.empty()) std::memcpy(target.data, bytes.data(), bytes.size());
    }
    stats.kernels.push_back("tfl." + op.name);
    return {};
  }

  /// A tensor of a type that TOSA does not have is returned as bytes.
  Tensor contents(size_t g, int32_t index) {
    const rt::Region region = memory->region(g, index);
    const tflite::Tensor& described = memory->tensor(g, index);
    const auto dtype = tflite::toDType(described.type);
    const bool fits =
        dtype && numElements(described.shape) * dtypeSize(*dtype) == static_cast<int64_t>(region.bytes);
    Tensor tensor = fits ? Tensor::uninitialized(*dtype, described.shape)
                         : Tensor::uninitialized(DType::UInt8, {static_cast<int64_t>(region.bytes)});
    if (region.bytes > 0) std::memcpy(tensor.mutableBytes().data(), region.data, region.bytes);
    return tensor;
  }

  /// Allocates the tensors that an operator of the file uses; all must have a known size.
  Status placeAll(size_t g, const std::vector<int32_t>& tensors) {
    for (const int32_t tensor : tensors) {
      if (tensor < 0) return fail(Code::Damaged, "an operand or result is omitted");
      if (!tflite::storedBytes(memory->tensor(g, tensor)))
        return fail(Code::UnsupportedProgram, "tensor '{}' is {}, which has no size here",
                    memory->tensor(g, tensor).name, memory->tensor(g, tensor).str())
            .withRemedy("convert the network with fixed sizes");
      memory->place(g, tensor);
    }
    return {};
  }

  // Control flow
  // ------------------------------------------------------------------------------------------------------

  Status runSubgraph(size_t g, RunStats& stats) {
    CARINA_RETURN_IF_ERROR(budget->require(kSubgraphWork, "a subgraph"));
    for (const Action& action : actions[g]) CARINA_RETURN_IF_ERROR(action(stats));
    return {};
  }

  void copy(size_t fromGraph, const std::vector<int32_t>& from, size_t toGraph,
            const std::vector<int32_t>& to) {
    for (size_t i = 0; i < to.size(); ++i) memory->copy(fromGraph, from[i], toGraph, to[i]);
  }

  /// Checks values that are passed from one subgraph to another, one by one.
  Status checkPassing(size_t fromGraph, const std::vector<int32_t>& from, size_t toGraph,
                      const std::vector<int32_t>& to) {
    if (from.size() != to.size())
      return fail(Code::Damaged, "it exchanges {} values with subgraph {}, which has {}", from.size(),
                  toGraph, to.size());
    CARINA_RETURN_IF_ERROR(placeAll(fromGraph, from));
    CARINA_RETURN_IF_ERROR(placeAll(toGraph, to));
    for (size_t i = 0; i < from.size(); ++i) {
      const tflite::Tensor &one = memory->tensor(fromGraph, from[i]), &other = memory->tensor(toGraph, to[i]);
      if (one.type != other.type || memory->bytes(fromGraph, from[i]) != memory->bytes(toGraph, to[i]))
        return fail(Code::Damaged, "'{}' is {}, but '{}' of subgraph {} is {}", one.name, one.str(),
                    other.name, toGraph, other.str());
    }
    return {};
  }

  /// Checks a tensor that is used as a condition.
  Status checkCondition(size_t g, int32_t index) {
    const tflite::Tensor& tensor = memory->tensor(g, index);
    if (tensor.type == tflite::TensorType::Bool && memory->bytes(g, index) == 1) return {};
    return fail(Code::Damaged, "its condition '{}' is {}, not a single bool", tensor.name, tensor.str());
  }
  bool holds(size_t g, int32_t index) {
    return *static_cast<const uint8_t*>(memory->region(g, index).data) != 0;
  }

  Result<Action> controlFlow(size_t g, const tflite::Operator& op, const tflite::ControlFlow& flow) {
    const auto first = static_cast<size_t>(flow.subgraphs.front());
    if (flow.kind == tflite::ControlFlow::Kind::CallOnce) {
      ran.push_back(std::make_shared<bool>(false));
      return Action([this, first, done = ran.back()](RunStats& stats) -> Status {
        if (*done) return {};
        CARINA_RETURN_IF_ERROR(runSubgraph(first, stats));
        *done = true;
        return {};
      });
    }
    const auto second = static_cast<size_t>(flow.subgraphs.back());
    return flow.kind == tflite::ControlFlow::Kind::If ? choice(g, op, first, second)
                                                      : loop(g, op, first, second);
  }

  Result<Action> choice(size_t g, const tflite::Operator& op, size_t whenTrue, size_t whenFalse) {
    CARINA_RETURN_IF_ERROR(placeAll(g, op.inputs));
    if (op.inputs.empty()) return fail(Code::Damaged, "it has no condition");
    CARINA_RETURN_IF_ERROR(checkCondition(g, op.inputs.front()));
    const std::vector<int32_t> given(op.inputs.begin() + 1, op.inputs.end());
    for (const size_t side : {whenTrue, whenFalse}) {
      CARINA_RETURN_IF_ERROR(checkPassing(g, given, side, program.subgraphs[side].inputs));
      CARINA_RETURN_IF_ERROR(checkPassing(g, op.outputs, side, program.subgraphs[side].outputs));
    }
    return Action([this, g, given, whenTrue, whenFalse, condition = op.inputs.front(),
                   taken = op.outputs](RunStats& stats) -> Status {
      const size_t side = holds(g, condition) ? whenTrue : whenFalse;
      copy(g, given, side, program.subgraphs[side].inputs);
      CARINA_RETURN_IF_ERROR(runSubgraph(side, stats));
      copy(side, program.subgraphs[side].outputs, g, taken);
      return {};
    });
  }

  Result<Action> loop(size_t g, const tflite::Operator& op, size_t condition, size_t body) {
    const tflite::NpuProgram::Subgraph &asked = program.subgraphs[condition],
                                       &turned = program.subgraphs[body];
    CARINA_RETURN_IF_ERROR(checkPassing(g, op.inputs, condition, asked.inputs));
    CARINA_RETURN_IF_ERROR(checkPassing(g, op.inputs, body, turned.inputs));
    CARINA_RETURN_IF_ERROR(checkPassing(g, op.outputs, body, turned.outputs));
    CARINA_RETURN_IF_ERROR(checkPassing(g, op.outputs, condition, asked.inputs));
    if (asked.outputs.size() != 1)
      return fail(Code::Damaged, "its condition, subgraph {}, has {} results", condition,
                  asked.outputs.size());
    CARINA_RETURN_IF_ERROR(placeAll(condition, asked.outputs));
    CARINA_RETURN_IF_ERROR(checkCondition(condition, asked.outputs.front()));
    return Action(
        [this, g, condition, body, given = op.inputs, kept = op.outputs](RunStats& stats) -> Status {
          const tflite::NpuProgram::Subgraph &asks = program.subgraphs[condition],
                                             &turns = program.subgraphs[body];
          copy(g, given, g, kept);
          while (true) {
            copy(g, kept, condition, asks.inputs);
            CARINA_RETURN_IF_ERROR(runSubgraph(condition, stats));
            if (!holds(condition, asks.outputs.front())) return {};
            copy(g, kept, body, turns.inputs);
            CARINA_RETURN_IF_ERROR(runSubgraph(body, stats));
            copy(body, turns.outputs, g, kept);
          }
        });
  }

  // Variables
  // ---------------------------------------------------------------------------------------------------------

  int32_t handle(size_t g, int32_t index) {
    int32_t number = -1;
    std::memcpy(&number, memory->region(g, index).data, sizeof(number));
    return number;
  }

  /// Finds the tensors that name variables, if an operator of their own subgraph produces them.
  void nameVariables() {
    for (size_t g = 0; g < program.subgraphs.size(); ++g) {
      for (const tflite::Operator& op : model.subgraphs[g].operators) {
        if (isBuiltin(op, "VAR_HANDLE") && op.outputs.size() == 1)
          handles.emplace(std::pair(g, op.outputs.front()), variables->handleOf(tflite::variableName(op)));
      }
    }
  }

  Result<Action> variableAction(size_t g, const tflite::Operator& op) {
    CARINA_RETURN_IF_ERROR(placeAll(g, op.inputs));
    CARINA_RETURN_IF_ERROR(placeAll(g, op.outputs));
    const bool reads = op.name == "READ_VARIABLE", names = op.name == "VAR_HANDLE";
    if (op.inputs.size() != (names ? 0U : reads ? 1U : 2U) || op.outputs.size() != (names || reads ? 1U : 0U))
      return fail(Code::Damaged, "it has {} operands and {} results", op.inputs.size(), op.outputs.size());
    const int32_t named = names ? op.outputs.front() : op.inputs.front();
    if (memory->bytes(g, named) != sizeof(int32_t))
      return fail(Code::Damaged, "'{}' is {}, not a variable handle", memory->tensor(g, named).name,
                  memory->tensor(g, named).str());
    if (names) {
      return Action(
          [this, g, named, number = variables->handleOf(tflite::variableName(op))](RunStats&) -> Status {
            std::memcpy(memory->region(g, named).data, &number, sizeof(number));
            return {};
          });
    }
    const int32_t value = reads ? op.outputs.front() : op.inputs.back();
    if (!reads) {
      // The runtime fills variables with the lowest byte of the first assigned value's zero point.
      const tflite::Tensor& tensor = memory->tensor(g, value);
      const int64_t zero = tensor.zeroPoints.empty() ? 0 : tensor.zeroPoints.front();
      if (const auto known = handles.find({g, named}); known != handles.end())
        CARINA_RETURN_IF_ERROR(
            variables->describe(known->second, memory->bytes(g, value),
                                static_cast<std::byte>(static_cast<uint8_t>(zero & 0xff))));
    }
    return Action([this, g, named, value, reads](RunStats&) -> Status {
      const rt::Region region = memory->region(g, value);
      auto* const bytes = reinterpret_cast<std::byte*>(region.data);
      if (reads) return variables->read(handle(g, named), {bytes, region.bytes});
      return variables->assign(handle(g, named), {bytes, region.bytes});
    });
  }
};

TfliteRunner::TfliteRunner(std::unique_ptr<State> state) : state_(std::move(state)) {}
TfliteRunner::~TfliteRunner() = default;
TfliteRunner::TfliteRunner(TfliteRunner&&) noexcept = default;
TfliteRunner& TfliteRunner::operator=(TfliteRunner&&) noexcept = default;

Result<TfliteRunner> TfliteRunner::open(ByteSpan file, const RunOptions& options) {
  auto state = std::make_unique<State>();
  state->options = options;
  CARINA_RETURN_IF_ERROR(state->open(file));
  TfliteRunner runner(std::move(state));
  runner.reset();
  return runner;
}

const std::vector<Runner::Io>& TfliteRunner::inputs() const {
  return state_->inputs;
}
const std::vector<Runner::Io>& TfliteRunner::outputs() const {
  return state_->outputs;
}

const tflite::NpuProgram& TfliteRunner::program() const {
  return state_->program;
}

Tensor TfliteRunner::contents(size_t subgraph, int32_t tensor) const {
  return state_->contents(subgraph, tensor);
}

void TfliteRunner::reset() {
  State& state = *state_;
  state.variables->reset();
  for (const auto& done : state.ran) *done = false;
  for (const auto& [g, tensors] : state.variableTensors) {
    for (const int32_t variable : tensors) {
      const rt::Region region = state.memory->region(g, variable);
      const tflite::Tensor& described = state.memory->tensor(g, variable);
      const bool isByte = described.type == tflite::TensorType::Int8 && described.zeroPoints.size() == 1;
      if (region.bytes > 0)
        std::memset(region.data, isByte ? static_cast<int>(described.zeroPoints[0] & 0xff) : 0, region.bytes);
    }
  }
}

Result<RunOutcome> TfliteRunner::run(std::span<const Tensor> inputs) {
  State& state = *state_;
  CARINA_RETURN_IF_ERROR(checkInputs(inputs, state.inputs));
  state.budget->renew();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const rt::Region region = state.memory->region(0, state.program.main().inputs[i]);
    if (region.access == rt::Access::Read)
      return fail(Code::UnsupportedProgram, "input {} is a constant of the model", i);
    if (region.bytes > 0) std::memcpy(region.data, inputs[i].bytes().data(), region.bytes);
  }
  RunOutcome outcome;
  if (!state.program.calls.empty()) {
    outcome.stats.target = std::string(state.npu.machine.target->name);
    outcome.stats.systemConfig = state.npu.machine.system.name;
    outcome.stats.memoryMode = state.npu.machine.memory.name;
  }
  outcome.stats.temporaryBytes = static_cast<int64_t>(state.memory->arenaBytes());
  CARINA_RETURN_IF_ERROR(state.runSubgraph(0, outcome.stats));
  for (size_t i = 0; i < state.outputs.size(); ++i) {
    Tensor output = Tensor::uninitialized(state.outputs[i].dtype, state.outputs[i].shape);
    const rt::Region region = state.memory->region(0, state.program.main().outputs[i]);
    if (region.bytes > 0) std::memcpy(output.mutableBytes().data(), region.data, region.bytes);
    outcome.outputs.push_back(std::move(output));
  }
  return outcome;
}

}  // namespace carina::device
