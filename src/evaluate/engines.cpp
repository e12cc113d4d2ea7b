// SPDX-License-Identifier: Apache-2.0
#include "evaluate/engines.hpp"

#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>

#include "aten/executor.hpp"
#include "base/damaged.hpp"
#include "base/file.hpp"
#include "delivery/compile_cache.hpp"
#include "device/run.hpp"
#include "device/tflite_runner.hpp"
#include "pipeline/file_kind.hpp"
#include "pipeline/loaded_program.hpp"
#include "pipeline/port_codes.hpp"
#include "pipeline/simulated_values.hpp"
#include "pipeline/timed_profile.hpp"
#include "pipeline/work_limits.hpp"
#include "quantize/sqnr.hpp"
#include "tflite/vela.hpp"
#include "tosa/interpreter.hpp"

namespace carina::evaluate {
namespace {

using RunProgram = std::function<Result<device::RunOutcome>(std::span<const Tensor>)>;
using OpenProgram = std::function<Result<RunProgram>()>;

template <typename Runner>
Result<RunProgram> openRunner(ByteSpan bytes, const device::RunOptions& options) {
  CARINA_TRY(Runner runner, Runner::open(bytes, options));
  auto shared = std::make_shared<Runner>(std::move(runner));
  return RunProgram([shared](std::span<const Tensor> inputs) -> Result<device::RunOutcome> {
    // Each sample is judged independently: reset the program's state.
    if constexpr (std::is_same_v<Runner, device::Runner>) CARINA_RETURN_IF_ERROR(shared->reset());
    return shared->run(inputs);
  });
}

template <typename Runner>
Result<std::vector<pipeline::Port>> portsOf(ByteSpan bytes, const device::RunOptions& options) {
  CARINA_TRY(Runner runner, Runner::open(bytes, options));
  std::vector<pipeline::Port> ports;
  for (const auto& input : runner.inputs())
    ports.push_back({fmt::format("input {}", ports.size()), {input.dtype, input.shape}});
  return ports;
}

bool isNetwork(ByteSpan bytes, pipeline::FileKind kind) {
  if (kind != pipeline::FileKind::Tflite)
    return kind == pipeline::FileKind::Archive || kind == pipeline::FileKind::Tosa;
  const auto model = tflite::readModel(bytes);
  return model.ok() && tflite::npuCalls(*model).empty();
}

}  // namespace

struct Engines::State {
  std::vector<pipeline::Port> inputs;
  InputForms forms;
  pipeline::ProgramCodes codes;  // for a finished program
  std::vector<Engine> available;
  pipeline::Measured measured;
  std::string program;
  std::optional<pipeline::Build> build;  // for a network
  std::optional<aten::Executor> reference, simulation;
  OpenProgram openProgram;
  std::mutex mutex;
  std::vector<RunProgram> idle;  // programs that no thread is running

  void takeForms(const pipeline::ProgramEnds& ends);
  Result<device::RunOutcome> runProgram(std::span<const Tensor> samples);
  Result<bool> equalsTosa(const device::RunOutcome& outcome) const;
  Status openNetwork(const pipeline::Options& options, std::vector<Diagnostic>& warnings);
  Status openFinished(const pipeline::Options& options, const MappedFile& file, pipeline::FileKind kind);
};

void Engines::State::takeForms(const pipeline::ProgramEnds& ends) {
  forms.inputs.resize(inputs.size());
  for (size_t i = 0; i < std::min(ends.inputs.size(), inputs.size()); ++i) {
    if (ends.inputs[i].changed()) forms.inputs[i].network = ends.inputs[i].network;
  }
}

/// One program per thread that runs one, at most as many as ever ran at the same time.
Result<device::RunOutcome> Engines::State::runProgram(std::span<const Tensor> samples) {
  RunProgram runner;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    if (!idle.empty()) {
      runner = std::move(idle.back());
      idle.pop_back();
    }
  }
  if (!runner) {
    CARINA_TRY(runner, openProgram());
  }
  // The model is itself parallel: while it waits, its thread must not start another sample.
  auto outcome = oneapi::tbb::this_task_arena::isolate([&] { return runner(samples); });
  const std::lock_guard<std::mutex> lock(mutex);
  idle.push_back(std::move(runner));
  return outcome;
}

namespace {

/// Whether a part's results equal those of its TOSA graph.
Result<bool> equalsTosa(const ir::Graph& tosa, std::span<const Tensor> inputs,
                        std::span<const Tensor> outputs, WorkBudget budget) {
  CARINA_TRY(const std::vector<Tensor> wanted, tosa::interpret(tosa, inputs, nullptr, &budget));
  if (wanted.size() != outputs.size())
    return fail(Code::WrongKind, "an NPU part has an unexpected number of results");
  for (size_t k = 0; k < wanted.size(); ++k) {
    if (wanted[k].numElements() != outputs[k].numElements()) return false;
    for (int64_t e = 0; e < wanted[k].numElements(); ++e) {
      if (wanted[k].integerAt(e) != outputs[k].integerAt(e)) return false;
    }
  }
  return true;
}

}  // namespace

Result<bool> Engines::State::equalsTosa(const device::RunOutcome& outcome) const {
  const auto& delegates = build->partitioned.delegates;
  const device::RunStats& stats = outcome.stats;
  if (stats.delegates.size() + stats.ethosN.size() != delegates.size())
    return fail(Code::NpuFault, "the program ran an unexpected number of NPU parts");
  for (size_t i = 0; i < delegates.size(); ++i) {
    const bool ethosN = !stats.ethosN.empty();
    CARINA_TRY(
        const bool same,
        evaluate::equalsTosa(delegates[i].tosa, ethosN ? stats.ethosN[i].inputs : stats.delegates[i].inputs,
                             ethosN ? stats.ethosN[i].outputs : stats.delegates[i].outputs,
                             pipeline::budgetOf(build->options)));
    if (!same) return false;
  }
  return true;
}

Status Engines::State::openNetwork(const pipeline::Options& options, std::vector<Diagnostic>& warnings) {
  if (options.target.empty() || options.target == "cpu") {
    return fail(Code::BadOption, "{}",
                options.target.empty() ? "no NPU is named for the network to run on"
                                       : "target cpu has no NPU to evaluate")
        .at("--target")
        .withRemedy("name an NPU with --target (see 'carina targets')");
  }
  CARINA_TRY(build, pipeline::build(options));
  warnings = build->warnings;
  if (!build->state.empty()) {
    return fail(Code::UnsupportedForm,
                "the network keeps state between calls, but samples are evaluated independently")
        .withRemedy("compile it and evaluate the program: every sample then begins with the initial state");
  }
  if (build->source) {
    CARINA_TRY(reference, aten::Executor::create(*build->source));
    available.push_back(Engine::Float);
  }
  if (build->simulation) {
    CARINA_TRY(simulation, aten::Executor::create(*build->simulation));
    available.push_back(Engine::Simulation);
  }
  available.push_back(Engine::Tosa);
  available.push_back(Engine::Npu);
  inputs = pipeline::inputPorts(build->source ? *build->source : build->graph());
  takeForms(build->ends);
  forms.take = [this](NamedTensors arrays) { return build->ends.asProgram(std::move(arrays)); };
  CARINA_TRY(program, pte::writeProgram(build->program));
  measured = pipeline::measuredOf(*build, static_cast<int64_t>(program.size()));
  device::RunOptions run;
  run.configFile = options.configFile;
  run.trusted = options.trusted;
  run.keepDelegateIo = true;
  openProgram = [this, run] { return openRunner<device::Runner>(asBytes(program), run); };
  return {};
}

Status Engines::State::openFinished(const pipeline::Options& options, const MappedFile& file,
                                    pipeline::FileKind kind) {
  CARINA_TRY(const auto loaded,
             pipeline::LoadedProgram::from(
                 file.bytes(), {options.target, options.systemConfig, options.memoryMode, options.configFile,
                                delivery::defaultCacheFolder(), true}));
  program = std::string(asText(loaded.bytes()));
  device::RunOptions run;
  run.target = options.target;
  run.systemConfig = options.systemConfig;
  run.memoryMode = options.memoryMode;
  run.configFile = options.configFile;
  run.trusted = options.trusted;
  const bool isPte = kind == pipeline::FileKind::Program;
  auto ports = isPte ? portsOf<device::Runner>(asBytes(program), run)
                     : portsOf<device::TfliteRunner>(asBytes(program), run);
  if (!ports) return std::move(ports).error().withRemedy(kDamagedRemedy);
  inputs = std::move(*ports);
  if (isPte) {
    CARINA_TRY(const pte::Program read, pte::readProgram(asBytes(program)));
    codes = pipeline::codesOf(read);
  } else {
    codes = pipeline::codesOfTflite(asBytes(program));
  }
  takeForms(pipeline::endsOf(inputs, codes));
  for (size_t i = 0; i < std::min(codes.inputs.size(), inputs.size()); ++i)
    forms.inputs[i].codes = codes.inputs[i].scale && !codes.inputs[i].pixels();
  forms.take = [this](NamedTensors arrays) {
    return pipeline::quantizeInputs(std::move(arrays), inputs, codes);
  };
  available.push_back(Engine::Npu);
  openProgram = [this, run, isPte] {
    return isPte ? openRunner<device::Runner>(asBytes(program), run)
                 : openRunner<device::TfliteRunner>(asBytes(program), run);
  };
  pipeline::Options timing;
  timing.model = options.model;
  timing.systemConfig = options.systemConfig;
  timing.memoryMode = options.memoryMode;
  timing.configFile = options.configFile;
  const auto timed = pipeline::timedProfile(timing, "");
  if (timed) measured = pipeline::measuredOf(timed->profile);
  measured.flash = static_cast<int64_t>(program.size());
  measured.subject = options.model.filename().string();
  return {};
}

Engines::Engines(std::unique_ptr<State> state) : state_(std::move(state)) {}
Engines::~Engines() = default;
Engines::Engines(Engines&&) noexcept = default;
Engines& Engines::operator=(Engines&&) noexcept = default;

const std::vector<pipeline::Port>& Engines::inputs() const {
  return state_->inputs;
}
const InputForms& Engines::forms() const {
  return state_->forms;
}
const std::vector<Engine>& Engines::available() const {
  return state_->available;
}
const pipeline::Measured& Engines::measured() const {
  return state_->measured;
}
const std::string& Engines::program() const {
  return state_->program;
}

Result<Engines> Engines::open(const pipeline::Options& options, std::vector<Diagnostic>& warnings) {
  CARINA_TRY(const auto file, MappedFile::open(options.model));
  const pipeline::FileKind kind = pipeline::fileKind(file->bytes(), options.model);
  auto state = std::make_unique<State>();
  Status status;
  if (isNetwork(file->bytes(), kind)) {
    status = state->openNetwork(options, warnings);
  } else if (kind == pipeline::FileKind::Program || kind == pipeline::FileKind::Tflite) {
    status = state->openFinished(options, *file, kind);
  } else {
    status = fail(Code::WrongKind, "a {} cannot be evaluated", pipeline::fileKindName(kind))
                 .withRemedy("give a network (.pt2, .tflite, .tosa) or a program (.pte, compiled .tflite)");
  }
  if (!status.ok()) return std::move(status).error().inFile(options.model.string());
  return Engines(std::move(state));
}

Result<EngineOutputs> Engines::run(std::span<const Tensor> inputs, const std::vector<Engine>& wanted) const {
  const auto wants = [&](Engine engine) {
    return std::find(wanted.begin(), wanted.end(), engine) != wanted.end();
  };
  const auto of = [](EngineOutputs& result, Engine engine) -> std::optional<std::vector<Tensor>>& {
    return result.outputs[static_cast<size_t>(engine)];
  };
  EngineOutputs result;
  if (wants(Engine::Float) && state_->reference) {
    CARINA_TRY(of(result, Engine::Float), state_->reference->run(inputs));
  }
  quantize::Sample integers(inputs.begin(), inputs.end());
  if (state_->build) integers = pipeline::programSample(state_->build->graph(), integers);
  if (wants(Engine::Simulation) && state_->simulation) {
    CARINA_TRY(of(result, Engine::Simulation), state_->simulation->run(integers));
  }
  if (!wants(Engine::Npu) && !wants(Engine::Tosa)) return result;
  CARINA_TRY(device::RunOutcome outcome, state_->runProgram(integers));
  if (wants(Engine::Tosa) && state_->build) {
    CARINA_TRY(const bool equal, state_->equalsTosa(outcome));
    result.npuDiffersFromTosa = !equal;
    if (equal) of(result, Engine::Tosa) = outcome.outputs;
  }
  if (wants(Engine::Npu)) of(result, Engine::Npu) = std::move(outcome.outputs);
  return result;
}

Result<std::string> Engines::firstBelow(std::span<const Tensor> inputs, double decibels) const {
  if (!state_->reference || !state_->simulation) return std::string();
  std::map<std::string, Tensor, std::less<>> values;
  CARINA_TRY(const auto ignored,
             state_->reference->run(inputs, [&](const ir::Value& value, const Tensor& tensor) {
               if (!value.name.empty() && isFloat(value.dtype())) values.insert_or_assign(value.name, tensor);
             }));
  const quantize::Sample integers =
      pipeline::programSample(state_->build->graph(), quantize::Sample(inputs.begin(), inputs.end()));
  std::string first;
  CARINA_TRY(const auto simulated,
             state_->simulation->run(integers, [&](const ir::Value& value, const Tensor& tensor) {
               if (!first.empty()) return;
               const ir::Value* source = pipeline::quantizedSource(value);
               if (source == nullptr || source->producer() == nullptr) return;
               const auto it = values.find(source->name);
               if (it == values.end() || it->second.shape() != tensor.shape()) return;
               quantize::Sqnr sqnr;
               sqnr.add(it->second, tensor);
               if (sqnr.decibels() < decibels) first = source->name;
             }));
  return first;
}

}  // namespace carina::evaluate
