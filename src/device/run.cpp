// SPDX-License-Identifier: Apache-2.0
#include "device/run.hpp"

#include <algorithm>
#include <limits>

#include "carina/runtime.hpp"
#include "device/ethosn_backend.hpp"
#include "device/external_data.hpp"
#include "device/npu_host.hpp"
#include "device/npu_setup.hpp"
#include "device/recorder.hpp"
#include "device/tosa_backend.hpp"
#include "pte/program.hpp"

namespace carina::device {
namespace {

/// A scalar output as a tensor; nothing for lists, text and absent values.
std::optional<Tensor> numberOf(const rt::Value& value) {
  switch (value.kind) {
    case rt::ValueKind::Int:
      return Tensor::scalar(value.integer);
    case rt::ValueKind::Double:
      return Tensor::scalar(value.real);
    case rt::ValueKind::Bool: {
      Tensor truth = Tensor::zeros(DType::Bool, {});
      truth.setIntegerAt(0, value.boolean ? 1 : 0);
      return truth;
    }
    default:
      return std::nullopt;
  }
}

}  // namespace

/// Index of the pool with the state of methods, counted from 0.
constexpr size_t kStatePool = 1;

struct Runner::State {
  RunOptions options;
  std::shared_ptr<AlignedBuffer> file;
  ExternalData external;
  rt::Program program;
  uint32_t methodIndex = 0;
  std::optional<NpuHost> npu;  // with delegates only
  std::unique_ptr<rt::EthosUDelegate> delegate;
  std::unique_ptr<RecordingBackend> backend;
  std::unique_ptr<EthosNBackend> ethosN;  // with delegates for an Ethos-N only
  std::unique_ptr<TosaBackend> tosa;      // with delegates that are TOSA graphs only
  std::optional<WorkBudget> budget;
  std::optional<BudgetedKernels> kernels;
  Recorder recorder;
  std::vector<rt::Backend*> backends;
  rt::Environment environment;
  AlignedBuffer methodMemory, temporary;
  std::vector<std::shared_ptr<AlignedBuffer>> pools;
  std::shared_ptr<AlignedBuffer> statePool;  // of the runner from which this one was opened; may be null
  size_t statePoolBytes = 0;                 // the largest that a method of the program needs
  std::vector<std::pair<uint32_t, AlignedBuffer>> inputMemory,
      outputMemory;  // of those without planned memory
  std::vector<rt::MutableBytes> poolSpans;
  rt::Method method;
  std::vector<Io> inputs, outputs;
  std::vector<uint32_t> tensorInputs;  // indices of `inputs` among the inputs of the method
  size_t taken = 0;                    // bytes of memory in addition to the file

  Status openNpu(const pte::EthosUSettings& settings);
  /// `compiled`: the variant that the program is for.
  Status openEthosN(const std::string& compiled);
  Status load();
  /// Loads the method into the allocated memory, with the initial contents of its state.
  Status loadMethod();
  /// Counts memory that the program requests, up to a limit.
  Status take(size_t bytes);
  Status describeIo();
  /// Binds the memory of inputs and outputs that have no planned memory.
  Status bindMemory();
  Error explain(const rt::Status& status) const;
};

Status Runner::State::openNpu(const pte::EthosUSettings& settings) {
  CARINA_TRY(npu, NpuHost::open(settings, options));
  npu->device->share(*budget);
  delegate = std::make_unique<rt::EthosUDelegate>(npu->driver.get(), npu->fastScratch.span());
  backend = std::make_unique<RecordingBackend>(*delegate, *npu->driver, *npu->device, options.keepDelegateIo);
  recorder.backend = backend.get();
  backends.push_back(backend.get());
  return {};
}

Status Runner::State::openEthosN(const std::string& compiled) {
  if (compiled.empty()) return {};
  const bool memories =
      !options.systemConfig.empty() || !options.memoryMode.empty() || !options.configFile.empty();
  if (memories) {
    return fail(Code::OptionDoesNotApply,
                "the program is for {}, which has no system configurations or memory modes", compiled)
        .withRemedy("leave out --system-config, --memory-mode and --config");
  }
  if (!options.target.empty() && options.target != compiled) {
    return fail(Code::OtherNpu, "the program was compiled for {}, not for {}", compiled, options.target)
        .withRemedy(
            fmt::format("compile the network with --target {}, or leave out --target", options.target));
  }
  ethosN = std::make_unique<EthosNBackend>(options.model.check, options.keepDelegateIo, *budget);
  recorder.ethosN = ethosN.get();
  backends.push_back(ethosN.get());
  return {};
}

Error Runner::State::explain(const rt::Status& status) const {
  if (ethosN && ethosN->why()) return *ethosN->why();
  if (tosa && tosa->why()) return *tosa->why();
  if (budget && !budget->refused().empty())
    return fail(Code::Excessive, "{}", budget->refused()).withRemedy(kLongRunRemedy);
  if (status.code == rt::Code::InstructionLimit)
    return asError(status).withRemedy("check the conditions of its loops: these inputs may keep one true");
  if (status.code == rt::Code::MissingKernel)
    return asError(status).withRemedy("this runtime has no kernel for that operator");
  if (status.code == rt::Code::MissingBackend) {
    return asError(status).withRemedy(
        "only parts for an Ethos-U or Ethos-N run here; compile TOSA graphs first: carina compile "
        "PROGRAM.pte --target TARGET -o COMPILED.pte");
  }
  if (status.code == rt::Code::NotFound && status.nameLength != 0)
    return asError(status).withRemedy("give the .ptd file that came with the program as --tensor-data");
  return npu ? npu->explain(status) : asError(status);
}

Status Runner::State::load() {
  environment.kernels = BudgetedKernels::table();
  environment.backends = rt::Span<rt::Backend* const>(backends.data(), backends.size());
  environment.profiler = &recorder;
  environment.external = &external;
  recorder.method = &method;
  recorder.budgeted = &*kernels;
  rt::Requirements needs;
  if (const rt::Status status = rt::Method::require(program, methodIndex, environment, &needs); !status.ok())
    return explain(status);
  CARINA_RETURN_IF_ERROR(take(needs.methodBytes));
  CARINA_RETURN_IF_ERROR(take(needs.temporaryBytes));
  methodMemory = AlignedBuffer(needs.methodBytes);
  temporary = AlignedBuffer(needs.temporaryBytes);
  for (uint32_t i = 0; i < needs.poolCount; ++i) {
    size_t bytes = 0;
    if (const rt::Status status = rt::Method::poolBytes(program, methodIndex, i, &bytes); !status.ok())
      return asError(status);
    if (i == kStatePool) bytes = std::max(bytes, statePoolBytes);
    CARINA_RETURN_IF_ERROR(take(bytes));
    pools.push_back(i == kStatePool && statePool ? statePool : std::make_shared<AlignedBuffer>(bytes));
    poolSpans.push_back(pools.back()->span());
  }
  CARINA_RETURN_IF_ERROR(loadMethod());
  return describeIo();
}

Status Runner::State::loadMethod() {
  const rt::Memory memory{methodMemory.span(), rt::Span<rt::MutableBytes>(poolSpans.data(), poolSpans.size()),
                          temporary.span()};
  if (const rt::Status status = method.load(program, methodIndex, environment, memory); !status.ok())
    return explain(status);
  return {};
}

Status Runner::State::take(size_t bytes) {
  const auto most = static_cast<size_t>(budget->bytes());
  if (bytes <= most - taken) {
    taken += bytes;
    return {};
  }
  return fail(Code::Excessive,
              "the program asks for more than {} bytes of memory, the limit for a program of {} bytes", most,
              file->size())
      .withRemedy(kTrustRemedy);
}

Status Runner::State::describeIo() {
  for (uint32_t i = 0; i < method.inputCount(); ++i) {
    const rt::Value& value = method.input(i);
    if (value.kind != rt::ValueKind::Tensor) continue;  // scalars were fixed by the export
    CARINA_TRY(Io io, describe(value.tensor));
    inputs.push_back(std::move(io));
    tensorInputs.push_back(i);
    if (value.tensor.planned) continue;
    CARINA_RETURN_IF_ERROR(take(value.tensor.bytes));
    inputMemory.emplace_back(i, AlignedBuffer(value.tensor.bytes));
  }
  for (uint32_t i = 0; i < method.outputCount(); ++i) {
    const rt::Value& value = method.output(i);
    if (value.kind != rt::ValueKind::Tensor) {
      const auto number = numberOf(value);
      if (!number)
        return fail(Code::UnsupportedProgram, "output {} is neither a tensor nor a number", i)
            .withRemedy("export the network without it: text, lists and None cannot be returned as arrays");
      outputs.push_back({number->dtype(), number->shape()});
      continue;
    }
    CARINA_TRY(Io io, describe(value.tensor));
    outputs.push_back(std::move(io));
    if (value.tensor.data != nullptr || value.tensor.bytes == 0) continue;
    CARINA_RETURN_IF_ERROR(take(value.tensor.bytes));
    outputMemory.emplace_back(i, AlignedBuffer(value.tensor.bytes));
  }
  return bindMemory();
}

Status Runner::State::bindMemory() {
  for (auto& [index, memory] : inputMemory) {
    if (const rt::Status status = method.setInput(index, memory.span()); !status.ok()) return asError(status);
  }
  for (auto& [index, memory] : outputMemory) {
    if (const rt::Status status = method.bindOutput(index, memory.span()); !status.ok())
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
  state->file = std::make_shared<AlignedBuffer>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::byte*>(state->file->data()));
  return open(std::move(state));
}

Result<Runner> Runner::openSharingNpu(const std::string& method) const {
  auto state = std::make_unique<State>();
  state->options = state_->options;
  state->options.method = method;
  state->file = state_->file;
  if (state_->pools.size() > kStatePool) state->statePool = state_->pools[kStatePool];
  return open(std::move(state));
}

Result<Runner> Runner::open(std::unique_ptr<State> state) {
  const RunOptions& options = state->options;
  const ByteSpan bytes(reinterpret_cast<const std::byte*>(state->file->data()), state->file->size());
  if (const rt::Status status = rt::Program::load(state->file->span(), &state->program); !status.ok())
    return asError(status);
  if (!options.method.empty()) {
    if (const rt::Status status = state->program.findMethod(options.method.c_str(), &state->methodIndex);
        !status.ok())
      return asError(status).withRemedy("'carina inspect PROGRAM' lists the methods");
  }
  CARINA_TRY(const pte::Program program, pte::readProgram(bytes));
  for (const pte::TensorData& data : options.tensorData) CARINA_RETURN_IF_ERROR(state->external.add(data));
  CARINA_RETURN_IF_ERROR(checkLayouts(program, options.tensorData));
  for (const pte::Method& method : program.methods) {
    const auto& pools = method.pools;
    if (pools.size() > kStatePool + 1)
      state->statePoolBytes =
          std::max(state->statePoolBytes, static_cast<size_t>(std::max<int64_t>(0, pools[kStatePool + 1])));
  }
  state->budget.emplace(bytes.size(), options.trusted);
  state->kernels.emplace(*state->budget);
  CARINA_TRY(const Compiled compiled, compiledFor(program));
  if (compiled.delegated) CARINA_RETURN_IF_ERROR(state->openNpu(compiled.settings));
  CARINA_RETURN_IF_ERROR(state->openEthosN(ethosNTarget(program)));
  if (hasTosaDelegate(program)) {
    state->tosa = std::make_unique<TosaBackend>(*state->budget);
    state->backends.push_back(state->tosa.get());
  }
  CARINA_RETURN_IF_ERROR(state->load());
  const pte::Method& method = program.methods[state->methodIndex];  // load() has verified it
  state->kernels->list(method);
  if (options.keepKernelResults) state->recorder.keepResults(method);
  if (options.keepEvents)
    state->recorder.keepEvents(method, state->npu ? state->npu->machine.system.clockHz : 1e9);
  return Runner(std::move(state));
}

const std::vector<Runner::Io>& Runner::inputs() const {
  return state_->inputs;
}
const std::vector<Runner::Io>& Runner::outputs() const {
  return state_->outputs;
}

Status Runner::reset() {
  State& state = *state_;
  for (size_t i = 0; i < state.poolSpans.size(); ++i) {
    // Loading writes the state of this method; what only other methods keep stays.
    const rt::MutableBytes pool = state.poolSpans[i];
    if (state.pools[i].use_count() == 1) std::fill_n(pool.data, pool.size, uint8_t{0});
  }
  CARINA_RETURN_IF_ERROR(state.loadMethod());
  return state.bindMemory();
}

Result<Tensor> Runner::contents(int32_t id) {
  const auto values = state_->method.values();
  if (id < 0 || static_cast<size_t>(id) >= values.size ||
      values[static_cast<size_t>(id)].kind != rt::ValueKind::Tensor ||
      values[static_cast<size_t>(id)].tensor.data == nullptr) {
    return fail(Code::InvalidProgram, "value {} of the method is not a tensor with memory", id);
  }
  return copyOut(values[static_cast<size_t>(id)].tensor);
}

Result<RunOutcome> Runner::run(std::span<const Tensor> inputs) {
  State& state = *state_;
  CARINA_RETURN_IF_ERROR(checkInputs(inputs, state.inputs));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const uint32_t index = state.tensorInputs[i];
    rt::MutableBytes memory;
    if (const rt::Status status = state.method.inputMemory(index, &memory); !status.ok())
      return asError(status);
    copyIn(inputs[i], state.method.input(index).tensor);
  }
  state.recorder.clear();
  state.budget->renew();
  if (state.backend) state.backend->runs().clear();
  if (state.ethosN) state.ethosN->runs().clear();
  if (const rt::Status status = state.method.execute(); !status.ok()) return state.explain(status);
  RunOutcome outcome;
  for (uint32_t i = 0; i < state.method.outputCount(); ++i) {
    const rt::Value& value = state.method.output(i);
    if (value.kind != rt::ValueKind::Tensor) {
      auto number = numberOf(value);
      if (!number)
        return fail(Code::UnsupportedProgram, "output {} is neither a tensor nor a number any more", i);
      outcome.outputs.push_back(std::move(*number));
      continue;
    }
    CARINA_TRY(Tensor output, copyOut(value.tensor));
    outcome.outputs.push_back(std::move(output));
  }
  RunStats& stats = outcome.stats;
  if (state.backend) {
    stats.target = std::string(state.npu->machine.target->name);
    stats.systemConfig = state.npu->machine.system.name;
    stats.memoryMode = state.npu->machine.memory.name;
    stats.warnings = state.npu->warnings;
    stats.delegates = std::move(state.backend->runs());
    for (const DelegateRun& run : stats.delegates) stats.npuCycles += static_cast<int64_t>(run.pmuCycles);
  }
  if (state.ethosN) {
    stats.target = state.ethosN->runs().empty() ? "" : state.ethosN->runs().front().target;
    stats.ethosN = std::move(state.ethosN->runs());
  }
  stats.methodBytes = static_cast<int64_t>(state.methodMemory.size());
  stats.temporaryBytes = static_cast<int64_t>(state.temporary.size());
  stats.fastScratchBytes = static_cast<int64_t>(state.npu ? state.npu->fastScratch.size() : 0);
  for (const auto& pool : state.pools) stats.poolBytes.push_back(static_cast<int64_t>(pool->size()));
  stats.kernels = state.recorder.kernels;
  stats.kernelResults = std::move(state.recorder.results);
  stats.events = std::move(state.recorder.events);
  return outcome;
}

Status checkInputs(std::span<const Tensor> inputs, std::span<const Runner::Io> wanted) {
  if (inputs.size() != wanted.size())
    return fail(Code::InputMismatch, "got {} inputs, expected {}", inputs.size(), wanted.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].dtype() != wanted[i].dtype || inputs[i].shape() != wanted[i].shape) {
      return fail(Code::InputMismatch, "input {} is {}{}, the program takes {}{}", i,
                  dtypeName(inputs[i].dtype()), shapeText(inputs[i].shape()), dtypeName(wanted[i].dtype),
                  shapeText(wanted[i].shape));
    }
  }
  return {};
}

Result<RunOutcome> runProgram(ByteSpan program, std::span<const Tensor> inputs, const RunOptions& options) {
  CARINA_TRY(Runner runner, Runner::open(program, options));
  return runner.run(inputs);
}

}  // namespace carina::device
