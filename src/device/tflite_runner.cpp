// SPDX-License-Identifier: Apache-2.0
#include "device/tflite_runner.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <optional>

#include "device/npu_host.hpp"
#include "device/tflite_operator.hpp"
#include "npu/isa/payload.hpp"
#include "tflite/vela.hpp"

namespace carina::device {
namespace {

/// Base pointers of an operator: constants, scratch, fast scratch, then as many inputs and outputs as there
/// is room for (all of them lie in the arena as well, where compilers address them).
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

}  // namespace

struct TfliteRunner::State {
  RunOptions options;
  tflite::NpuProgram program;
  std::optional<WorkBudget> budget;
  NpuHost npu;
  AlignedBuffer arena;
  std::map<int32_t, AlignedBuffer> own;  // tensors outside the plan
  struct Call {
    AlignedBuffer payload, constants, fastScratch;
    std::vector<npu::InitializedRange> initialized;
  };
  std::vector<Call> calls;
  tflite::Model model;
  std::map<size_t, TfliteOperator> operators;  // of the CPU, by their index
  std::vector<Runner::Io> inputs, outputs;

  const tflite::Tensor& tensor(int32_t index) const { return program.tensors[static_cast<size_t>(index)]; }
  size_t bytes(int32_t index) const { return static_cast<size_t>(*tflite::tensorBytes(tensor(index))); }
  bool planned(int32_t index) const { return program.offsets[static_cast<size_t>(index)].has_value(); }

  rt::Region region(int32_t index) {
    rt::Region region{nullptr, bytes(index), rt::Access::ReadWrite};
    if (planned(index)) {
      region.data = arena.data() + *program.offsets[static_cast<size_t>(index)];
    } else {
      region.data = own.at(index).data();
      if (!tensor(index).data.empty()) region.access = rt::Access::Read;
    }
    return region;
  }

  /// Memory for everything that the plan leaves out.
  void placeUnplanned(int32_t index) {
    if (planned(index) || own.count(index) != 0) return;
    const ByteSpan stored = tensor(index).data;
    own[index] = stored.empty() ? AlignedBuffer(bytes(index)) : copyOf(stored.first(bytes(index)));
  }

  Call prepare(const tflite::NpuCall& from) {
    Call call;
    call.payload = copyOf(from.payload);
    call.constants = copyOf(from.constants);
    placeUnplanned(from.scratch);
    // Fast scratch of its own does not lie in the arena: on a device the driver puts it into on-chip memory.
    if (!program.sharesScratch(from)) call.fastScratch = AlignedBuffer(bytes(from.fastScratch));
    size_t next = 3;
    const auto add = [&](int32_t index, bool input) {
      placeUnplanned(index);
      const auto region = static_cast<uint8_t>(next++);
      if (!input) return;
      if (region < kMaxRegions) call.initialized.push_back({region, 0, bytes(index)});
      const auto& at = program.offsets[static_cast<size_t>(index)];
      const auto& scratch = program.offsets[static_cast<size_t>(from.scratch)];
      if (at && scratch && *at >= *scratch) call.initialized.push_back({1, *at - *scratch, bytes(index)});
    };
    for (const int32_t input : from.inputs) add(input, true);
    for (const int32_t output : from.outputs) add(output, false);
    return call;
  }

  /// An operator of the CPU with memory for what it takes and gives.
  Status prepareCpu(size_t index) {
    CARINA_TRY(TfliteOperator op, prepareOperator(model, index));
    for (const auto* tensors : {&op.inputs, &op.outputs, &op.variables}) {
      for (const int32_t tensor : *tensors) placeUnplanned(tensor);
    }
    operators.emplace(index, std::move(op));
    return {};
  }

  Status executeCpu(size_t index, RunStats& stats) {
    const TfliteOperator& op = operators.at(index);
    if (Status enough = budget->require(op.work, op.name); !enough.ok())
      return std::move(enough).error().at(fmt::format("operator {}", index));
    std::vector<Tensor> operands;
    std::vector<int32_t> from = op.inputs, to = op.outputs;
    from.insert(from.end(), op.variables.begin(), op.variables.end());
    to.insert(to.end(), op.variables.begin(), op.variables.end());
    for (const int32_t input : from) {
      const rt::Region memory = region(input);
      Tensor& operand = operands.emplace_back(
          Tensor::uninitialized(*tflite::toDType(tensor(input).type), tensor(input).shape));
      if (memory.bytes > 0) std::memcpy(operand.mutableBytes().data(), memory.data, memory.bytes);
    }
    auto results = op.run(operands);
    if (!results) return std::move(results).error().at(fmt::format("operator {} ({})", index, op.name));
    for (size_t i = 0; i < to.size(); ++i) {
      const rt::Region memory = region(to[i]);
      const ByteSpan bytes = (*results)[i].bytes();
      CARINA_CHECK(bytes.size() == memory.bytes, "an operator gives results of the size that the file says");
      if (!bytes.empty()) std::memcpy(memory.data, bytes.data(), bytes.size());
    }
    stats.kernels.push_back("tfl." + op.name);
    return {};
  }

  Status execute(size_t index, RunStats& stats) {
    const tflite::NpuCall& from = program.calls[index];
    const Call& call = calls[index];
    std::vector<rt::Region> regions = {{call.constants.data(), call.constants.size(), rt::Access::Read},
                                       region(from.scratch)};
    regions.push_back(
        program.sharesScratch(from)
            ? regions[1]
            : rt::Region{call.fastScratch.data(), call.fastScratch.size(), rt::Access::ReadWrite});
    for (const auto* tensors : {&from.inputs, &from.outputs}) {
      for (const int32_t tensor : *tensors) {
        if (regions.size() < kMaxRegions) regions.push_back(region(tensor));
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
    stats.npuCycles += static_cast<int64_t>(run.pmuCycles);
    stats.delegates.push_back(std::move(run));
    return {};
  }
};

TfliteRunner::TfliteRunner(std::unique_ptr<State> state) : state_(std::move(state)) {}
TfliteRunner::~TfliteRunner() = default;
TfliteRunner::TfliteRunner(TfliteRunner&&) noexcept = default;
TfliteRunner& TfliteRunner::operator=(TfliteRunner&&) noexcept = default;

Result<TfliteRunner> TfliteRunner::open(ByteSpan file, const RunOptions& options) {
  auto state = std::make_unique<State>();
  state->options = options;
  CARINA_TRY(state->model, tflite::readModel(file));
  CARINA_TRY(state->program, tflite::npuProgram(state->model));
  const tflite::NpuProgram& program = state->program;
  auto payload = npu::readPayload(program.calls.front().payload);
  if (!payload) return std::move(payload).error().at(program.calls.front().name);
  CARINA_TRY(const npu::Target* target, npu::payloadTarget(*payload));
  pte::EthosUSettings compiled;
  compiled.target = std::string(target->name);
  CARINA_TRY(state->npu, NpuHost::open(compiled, options));
  state->budget.emplace(file.size(), options.trusted);
  state->npu.device->share(*state->budget);
  state->arena = AlignedBuffer(program.arenaBytes);
  for (const int32_t index : program.inputs) {
    state->placeUnplanned(index);
    CARINA_TRY(Runner::Io io, ioOf(state->tensor(index)));
    state->inputs.push_back(std::move(io));
  }
  for (const int32_t index : program.outputs) {
    state->placeUnplanned(index);
    CARINA_TRY(Runner::Io io, ioOf(state->tensor(index)));
    state->outputs.push_back(std::move(io));
  }
  for (const tflite::NpuCall& call : program.calls) state->calls.push_back(state->prepare(call));
  std::vector<Diagnostic> missing;
  for (const tflite::NpuProgram::Step& step : program.steps) {
    if (step.isCall) continue;
    if (const Status status = state->prepareCpu(step.index); !status.ok())
      missing.push_back(status.error().diagnostics().front());
  }
  if (!missing.empty()) return Error(std::move(missing));
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

void TfliteRunner::reset() {
  for (const auto& [index, op] : state_->operators) {
    for (const int32_t variable : op.variables) {
      const rt::Region memory = state_->region(variable);
      const tflite::Tensor& described = state_->tensor(variable);
      const bool isByte = described.type == tflite::TensorType::Int8 && described.zeroPoints.size() == 1;
      if (memory.bytes > 0)
        std::memset(memory.data, isByte ? static_cast<int>(described.zeroPoints[0] & 0xff) : 0, memory.bytes);
    }
  }
}

Result<RunOutcome> TfliteRunner::run(std::span<const Tensor> inputs) {
  State& state = *state_;
  CARINA_RETURN_IF_ERROR(checkInputs(inputs, state.inputs));
  state.budget->renew();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const rt::Region region = state.region(state.program.inputs[i]);
    if (region.access == rt::Access::Read)
      return fail(Code::UnsupportedProgram, "input {} is a constant of the model", i);
    if (region.bytes > 0) std::memcpy(region.data, inputs[i].bytes().data(), region.bytes);
  }
  RunOutcome outcome;
  outcome.stats.target = std::string(state.npu.machine.target->name);
  outcome.stats.systemConfig = state.npu.machine.system.name;
  outcome.stats.memoryMode = state.npu.machine.memory.name;
  outcome.stats.temporaryBytes = static_cast<int64_t>(state.arena.size());
  for (const tflite::NpuProgram::Step& step : state.program.steps) {
    if (!step.isCall) {
      CARINA_RETURN_IF_ERROR(state.executeCpu(step.index, outcome.stats));
      continue;
    }
    outcome.stats.fastScratchBytes = std::max(
        outcome.stats.fastScratchBytes, static_cast<int64_t>(state.calls[step.index].fastScratch.size()));
    CARINA_RETURN_IF_ERROR(state.execute(step.index, outcome.stats));
  }
  for (size_t i = 0; i < state.outputs.size(); ++i) {
    Tensor output = Tensor::uninitialized(state.outputs[i].dtype, state.outputs[i].shape);
    const rt::Region region = state.region(state.program.outputs[i]);
    if (region.bytes > 0) std::memcpy(output.mutableBytes().data(), region.data, region.bytes);
    outcome.outputs.push_back(std::move(output));
  }
  return outcome;
}

}  // namespace carina::device
