// SPDX-License-Identifier: Apache-2.0
#include "device/run.hpp"

#include <algorithm>

#include "carina/runtime.hpp"
#include "device/external_data.hpp"
#include "device/npu_host.hpp"
#include "device/npu_setup.hpp"
#include "device/recording_backend.hpp"
#include "pte/program.hpp"

namespace carina::device {
namespace {

/// What each instruction of a method's only chain returns: values by instruction, empty for other
/// instructions.
std::vector<std::vector<int32_t>> returnedValues(const pte::Method& method) {
  std::vector<std::vector<int32_t>> returned;
  if (method.chains.size() != 1) return returned;
  for (const pte::Instruction& instruction : method.chains[0].instructions) {
    std::vector<int32_t>& values = returned.emplace_back();
    const auto* call = std::get_if<pte::KernelCall>(&instruction);
    if (call == nullptr || call->arguments.empty()) continue;
    const int32_t last = call->arguments.back();
    if (const auto* list = std::get_if<pte::TensorList>(&method.values[static_cast<size_t>(last)])) {
      values = list->items;
    } else {
      values.push_back(last);
    }
  }
  return returned;
}

class Recorder final : public rt::Profiler {
 public:
  ~Recorder() = default;
  void event(rt::EventKind kind, uint32_t instruction, rt::Text name) override {
    if (kind == rt::EventKind::KernelBegin) kernels.emplace_back(name.data, name.size);
    if (kind == rt::EventKind::KernelEnd && instruction < returned.size()) keep(returned[instruction]);
    if (kind == rt::EventKind::DelegateBegin && backend != nullptr) backend->setInstruction(instruction);
  }
  void keep(const std::vector<int32_t>& values) {
    for (int32_t id : values) {
      const rt::Value& value = method->values()[static_cast<size_t>(id)];
      if (value.kind != rt::ValueKind::Tensor || value.tensor.data == nullptr) continue;
      if (auto copy = copyOut(value.tensor)) results.emplace_back(id, std::move(*copy));
    }
  }
  std::vector<std::string> kernels;
  std::vector<std::vector<int32_t>> returned;  // by instruction; empty: nothing is kept
  std::vector<std::pair<int32_t, Tensor>> results;
  rt::Method* method = nullptr;
  RecordingBackend* backend = nullptr;
};

}  // namespace

struct Runner::State {
  RunOptions options;
  AlignedBuffer file;
  ExternalData external;
  rt::Program program;
  uint32_t methodIndex = 0;
  std::optional<NpuHost> npu;  // with delegates only
  std::unique_ptr<rt::EthosUDelegate> delegate;
  std::unique_ptr<RecordingBackend> backend;
  Recorder recorder;
  std::vector<rt::Backend*> backends;
  rt::Environment environment;
  AlignedBuffer methodMemory, temporary;
  std::vector<AlignedBuffer> pools, inputMemory, outputMemory;
  rt::Method method;
  std::vector<Io> inputs, outputs;
  std::vector<uint32_t> tensorInputs;  // which inputs of the method `inputs` are

  Status openNpu(const pte::EthosUSettings& settings);
  Status load();
  Status describeIo();
  Error explain(const rt::Status& status) const;
};

Status Runner::State::openNpu(const pte::EthosUSettings& settings) {
  CARINA_TRY(npu, NpuHost::open(settings, options));
  delegate = std::make_unique<rt::EthosUDelegate>(npu->driver.get(), npu->fastScratch.span());
  backend = std::make_unique<RecordingBackend>(*delegate, *npu->driver, *npu->device, options.keepDelegateIo);
  recorder.backend = backend.get();
  backends.push_back(backend.get());
  return {};
}

Error Runner::State::explain(const rt::Status& status) const {
  if (status.code == rt::Code::MissingKernel)
    return asError(status).withRemedy("this runtime has no kernel for that operator");
  if (status.code == rt::Code::NotFound && status.nameLength != 0)
    return asError(status).withRemedy("give the .ptd file that came with the program as --tensor-data");
  return npu ? npu->explain(status) : asError(status);
}

Status Runner::State::load() {
  environment.kernels = rt::allKernels();
  environment.backends = rt::Span<rt::Backend* const>(backends.data(), backends.size());
  environment.profiler = &recorder;
  environment.external = &external;
  recorder.method = &method;
  rt::Requirements needs;
  if (const rt::Status status = rt::Method::require(program, methodIndex, environment, &needs); !status.ok())
    return explain(status);
  methodMemory = AlignedBuffer(needs.methodBytes);
  temporary = AlignedBuffer(needs.temporaryBytes);
  std::vector<rt::MutableBytes> spans;
  for (uint32_t i = 0; i < needs.poolCount; ++i) {
    size_t bytes = 0;
    if (const rt::Status status = rt::Method::poolBytes(program, methodIndex, i, &bytes); !status.ok())
      return asError(status);
    pools.emplace_back(bytes);
    spans.push_back(pools.back().span());
  }
  const rt::Memory memory{methodMemory.span(), rt::Span<rt::MutableBytes>(spans.data(), spans.size()),
                          temporary.span()};
  if (const rt::Status status = method.load(program, methodIndex, environment, memory); !status.ok())
    return explain(status);
  return describeIo();
}

Status Runner::State::describeIo() {
  for (uint32_t i = 0; i < method.inputCount(); ++i) {
    rt::Value& value = method.mutableInput(i);
    if (value.kind != rt::ValueKind::Tensor) continue;  // numbers were fixed by the export
    CARINA_TRY(Io io, describe(value.tensor));
    inputs.push_back(std::move(io));
    tensorInputs.push_back(i);
    if (value.tensor.planned) continue;
    inputMemory.emplace_back(value.tensor.bytes);
    if (const rt::Status status = method.setInput(i, inputMemory.back().span()); !status.ok())
      return asError(status);
  }
  for (uint32_t i = 0; i < method.outputCount(); ++i) {
    const rt::Value& value = method.output(i);
    if (value.kind != rt::ValueKind::Tensor)
      return fail("output {} is no tensor", i)
          .withRemedy("programs with scalar outputs are not supported here");
    CARINA_TRY(Io io, describe(value.tensor));
    outputs.push_back(std::move(io));
    if (value.tensor.data != nullptr || value.tensor.bytes == 0) continue;
    outputMemory.emplace_back(value.tensor.bytes);
    if (const rt::Status status = method.bindOutput(i, outputMemory.back().span()); !status.ok())
      return asError(status);
  }
  return {};
}

Runner::Runner(std::unique_ptr<State> state) : state_(std::move(state)) {}
Runner::~Runner() = default;
Runner::Runner(Runner&&) noexcept = default;
Runner& Runner::operator=(Runner&&) noexcept = default;

Result<Runner> Runner::open(ByteSpan bytes, const RunOptions& options) {
  auto state = std::make_unique<State>();
  state->options = options;
  state->file = AlignedBuffer(bytes.size());
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::byte*>(state->file.data()));
  if (const rt::Status status = rt::Program::load(state->file.span(), &state->program); !status.ok())
    return asError(status);
  if (!options.method.empty()) {
    if (const rt::Status status = state->program.findMethod(options.method.c_str(), &state->methodIndex);
        !status.ok())
      return asError(status);
  }
  CARINA_TRY(const pte::Program program, pte::readProgram(bytes));
  for (const pte::TensorData& data : options.tensorData) CARINA_RETURN_IF_ERROR(state->external.add(data));
  CARINA_RETURN_IF_ERROR(checkLayouts(program, options.tensorData));
  CARINA_TRY(const Compiled compiled, compiledFor(program));
  if (compiled.delegated) CARINA_RETURN_IF_ERROR(state->openNpu(compiled.settings));
  if (options.keepKernelResults && state->methodIndex < program.methods.size()) {
    state->recorder.returned = returnedValues(program.methods[state->methodIndex]);
  }
  CARINA_RETURN_IF_ERROR(state->load());
  return Runner(std::move(state));
}

const std::vector<Runner::Io>& Runner::inputs() const {
  return state_->inputs;
}
const std::vector<Runner::Io>& Runner::outputs() const {
  return state_->outputs;
}

Result<RunOutcome> Runner::run(std::span<const Tensor> inputs) {
  State& state = *state_;
  CARINA_RETURN_IF_ERROR(checkInputs(inputs, state.inputs));
  for (size_t i = 0; i < inputs.size(); ++i) {
    copyIn(inputs[i], state.method.mutableInput(state.tensorInputs[i]).tensor);
  }
  state.recorder.kernels.clear();
  state.recorder.results.clear();
  if (state.backend) state.backend->runs().clear();
  if (const rt::Status status = state.method.execute(); !status.ok()) return state.explain(status);
  RunOutcome outcome;
  for (uint32_t i = 0; i < state.method.outputCount(); ++i) {
    CARINA_TRY(Tensor output, copyOut(state.method.output(i).tensor));
    outcome.outputs.push_back(std::move(output));
  }
  RunStats& stats = outcome.stats;
  if (state.backend) {
    stats.target = std::string(state.npu->machine.target->name);
    stats.systemConfig = state.npu->machine.system.name;
    stats.memoryMode = state.npu->machine.memory.name;
    stats.delegates = std::move(state.backend->runs());
    for (const DelegateRun& run : stats.delegates) stats.npuCycles += static_cast<int64_t>(run.pmuCycles);
  }
  stats.methodBytes = static_cast<int64_t>(state.methodMemory.size());
  stats.temporaryBytes = static_cast<int64_t>(state.temporary.size());
  stats.fastScratchBytes = static_cast<int64_t>(state.npu ? state.npu->fastScratch.size() : 0);
  for (const AlignedBuffer& pool : state.pools) stats.poolBytes.push_back(static_cast<int64_t>(pool.size()));
  stats.kernels = state.recorder.kernels;
  stats.kernelResults = std::move(state.recorder.results);
  return outcome;
}

Status checkInputs(std::span<const Tensor> inputs, std::span<const Runner::Io> wanted) {
  if (inputs.size() != wanted.size())
    return fail("{} inputs given, the program has {}", inputs.size(), wanted.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].dtype() != wanted[i].dtype || inputs[i].shape() != wanted[i].shape) {
      return fail("input {} is {}{}, the program takes {}{}", i, dtypeName(inputs[i].dtype()),
                  shapeText(inputs[i].shape()), dtypeName(wanted[i].dtype), shapeText(wanted[i].shape));
    }
  }
  return {};
}

Result<RunOutcome> runProgram(ByteSpan program, std::span<const Tensor> inputs, const RunOptions& options) {
  CARINA_TRY(Runner runner, Runner::open(program, options));
  return runner.run(inputs);
}

}  // namespace carina::device
