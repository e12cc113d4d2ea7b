// SPDX-License-Identifier: Apache-2.0
#include "pipeline/run.hpp"

#include <chrono>
#include <map>
#include <type_traits>

#include "base/damaged.hpp"
#include "base/file.hpp"
#include "base/npy.hpp"
#include "base/output_path.hpp"
#include "device/tflite_runner.hpp"
#include "lower_tfl/lower.hpp"
#include "pipeline/batch.hpp"
#include "pipeline/bundle_cases.hpp"
#include "pipeline/command_streams.hpp"
#include "pipeline/ethosn.hpp"
#include "pipeline/file_kind.hpp"
#include "pipeline/loaded_program.hpp"
#include "pipeline/pipeline.hpp"
#include "pipeline/port_codes.hpp"
#include "tflite/graph_builder.hpp"
#include "tflite/vela.hpp"
#include "tosa/interpreter.hpp"
#include "tosa_io/tosa_reader.hpp"

namespace carina::pipeline {
namespace {

using RunOne = std::function<Result<std::vector<Tensor>>(std::span<const Tensor>)>;

/// Compares the index of the largest element of each sample's first output, or that output if it is a single
/// integer, with the labels.
Result<size_t> countCorrect(const Tensor& output, const Tensor& labels, size_t samples) {
  if (labels.numElements() != static_cast<int64_t>(samples) || isFloat(labels.dtype()) || samples == 0) {
    return fail(Code::InputMismatch, "holds {} {} values for {} samples", labels.numElements(),
                dtypeName(labels.dtype()), samples)
        .at("labels")
        .withRemedy("give one integer per sample, or leave the array out");
  }
  const int64_t classes = output.numElements() / static_cast<int64_t>(samples);
  size_t correct = 0;
  if (classes == 1 && !isFloat(output.dtype())) {  // the class itself
    for (int64_t n = 0; n < static_cast<int64_t>(samples); ++n)
      correct += output.integerAt(n) == labels.integerAt(n);
    return correct;
  }
  for (int64_t n = 0; n < static_cast<int64_t>(samples); ++n) {
    int64_t best = 0;
    for (int64_t i = 1; i < classes; ++i) {
      if (output.realAt(n * classes + i) > output.realAt(n * classes + best)) best = i;
    }
    correct += best == labels.integerAt(n);
  }
  return correct;
}

/// `codes`: what the program's integers mean, if known.
Result<RunResult> runAll(const RunOptions& options, const NamedTensors& arrays, std::span<const Port> ports,
                         const RunOne& runOne, const ProgramCodes& codes = {}) {
  const std::filesystem::path& source = options.arraysFile.empty() ? options.file : options.arraysFile;
  auto taken = options.raw ? Result<NamedTensors>(arrays) : quantizeInputs(arrays, ports, codes);
  if (!taken) return std::move(taken).error().inFile(source.string());
  auto batch = makeBatch(*taken, ports);
  if (!batch) return std::move(batch).error().inFile(source.string());
  RunResult result;
  result.file = options.file;
  result.samples = batch->samples.size();
  const auto start = std::chrono::steady_clock::now();
  auto outputs = runBatch(*batch, runOne, options.progress);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!outputs) {
    return std::move(outputs)
        .error()
        .inFile(options.file.string())
        .withRemedy(
            fmt::format("'carina check {}' says what is wrong with a program", options.file.string()));
  }
  result.outputs = std::move(*outputs);
  if (const Tensor* labels = findTensor(arrays, "labels"); labels && !result.outputs.empty()) {
    auto correct = countCorrect(result.outputs.front().second, *labels, result.samples);
    if (!correct) return std::move(correct).error().inFile(source.string());
    result.correct = *correct;
  }
  if (options.dequantize) {
    CARINA_TRY(result.outputs, dequantizeOutputs(std::move(result.outputs), codes));
  }
  return result;
}

Result<device::RunOptions> deviceOptions(const RunOptions& options) {
  device::RunOptions result;
  result.method = options.method;
  result.target = options.target;
  result.systemConfig = options.systemConfig;
  result.memoryMode = options.memoryMode;
  result.configFile = options.configFile;
  result.model.check = options.check;
  result.keepEvents = options.profile;
  result.trusted = options.trusted;
  CARINA_TRY(result.tensorData, pte::readTensorDataFiles(options.tensorData));
  return result;
}

std::vector<Port> portsOf(const std::vector<device::Runner::Io>& inputs) {
  std::vector<Port> ports;
  ports.reserve(inputs.size());
  for (const device::Runner::Io& input : inputs)
    ports.push_back({fmt::format("input {}", ports.size()), {input.dtype, input.shape}});
  return ports;
}

/// `Runner` is one of device's: of ExecuTorch programs, or of TFLite models.
template <typename Runner>
Result<RunResult> runProgram(const RunOptions& options, ByteSpan bytes, const NamedTensors& arrays) {
  CARINA_TRY(const device::RunOptions runOptions, deviceOptions(options));
  auto runner = Runner::open(bytes, runOptions);
  if (!runner) return std::move(runner).error().inFile(options.file.string()).withRemedy(kDamagedRemedy);
  const std::vector<Port> ports = portsOf(runner->inputs());
  device::RunStats stats;
  std::vector<pte::ProfiledRun> profile;
  ProgramCodes codes;
  if constexpr (std::is_same_v<Runner, device::TfliteRunner>) {
    codes = codesOfTflite(bytes);
  } else if (const auto program = pte::readProgram(bytes); program && !program->methods.empty()) {
    codes = codesOf(*program, options.method);
  }
  auto result = runAll(
      options, arrays, ports,
      [&](std::span<const Tensor> inputs) -> Result<std::vector<Tensor>> {
        if (options.resetState == ResetState::Each) {
          if constexpr (std::is_same_v<Runner, device::Runner>) {
            CARINA_RETURN_IF_ERROR(runner->reset());
          } else {
            runner->reset();
          }
        }
        CARINA_TRY(device::RunOutcome outcome, runner->run(inputs));
        stats = std::move(outcome.stats);
        if (options.profile) profile.push_back({"Execute", -1, std::move(stats.events)});
        return std::move(outcome.outputs);
      },
      codes);
  if (!result) return result;
  result->findings = findingsOf(stats);
  result->profile = std::move(profile);
  result->program = std::move(stats);
  return result;
}

/// The methods of a sequence, each loaded once, all before the first runs.
Result<std::map<std::string, device::Runner>> openMethods(const RunOptions& options, ByteSpan bytes,
                                                          std::span<const MethodInputs> methods) {
  CARINA_TRY(device::RunOptions runOptions, deviceOptions(options));
  std::map<std::string, device::Runner> runners;
  for (const MethodInputs& entry : methods) {
    if (runners.count(entry.method) != 0) continue;
    runOptions.method = entry.method;
    auto runner = runners.empty() ? device::Runner::open(bytes, runOptions)
                                  : runners.begin()->second.openSharingNpu(entry.method);
    if (!runner) {
      return std::move(runner)
          .error()
          .at(fmt::format("method {}", entry.method))
          .withRemedy(fmt::format("'carina inspect {}' lists the methods", options.file.string()));
    }
    runners.emplace(entry.method, std::move(*runner));
  }
  return runners;
}

/// Appends the results of one entry of a sequence. `calls`: how often each method has occurred so far.
void addEntry(RunResult&& one, const std::string& method, int64_t cycles, std::map<std::string, int>& calls,
              RunResult& result) {
  const int call = ++calls[method];
  for (auto& [name, tensor] : one.outputs) {
    result.outputs.emplace_back(
        call == 1 ? fmt::format("{}.{}", method, name) : fmt::format("{}.{}.{}", method, call, name),
        std::move(tensor));
  }
  result.methods.push_back({method, one.samples, cycles});
  result.samples += one.samples;
  result.seconds += one.seconds;
}

Result<RunResult> runSequence(const RunOptions& options, ByteSpan bytes,
                              std::span<const MethodInputs> methods) {
  CARINA_TRY(auto runners, openMethods(options, bytes, methods));
  CARINA_TRY(const pte::Program program, pte::readProgram(bytes));
  RunResult result;
  result.file = options.file;
  std::map<std::string, int> calls;
  device::RunStats stats;
  for (const MethodInputs& entry : methods) {
    device::Runner& runner = runners.at(entry.method);
    RunOptions own = options;
    own.arraysFile = entry.file;
    int64_t cycles = 0;
    const auto runOne = [&](std::span<const Tensor> inputs) -> Result<std::vector<Tensor>> {
      CARINA_TRY(device::RunOutcome outcome, runner.run(inputs));
      stats = std::move(outcome.stats);
      cycles += stats.npuCycles;
      if (options.profile) result.profile.push_back({"Execute", -1, std::move(stats.events)});
      return std::move(outcome.outputs);
    };
    CARINA_TRY(RunResult one,
               runAll(own, entry.arrays, portsOf(runner.inputs()), runOne, codesOf(program, entry.method)));
    for (std::string& finding : findingsOf(stats))
      result.findings.push_back(fmt::format("method {}: {}", entry.method, finding));
    addEntry(std::move(one), entry.method, cycles, calls, result);
  }
  result.program = std::move(stats);
  return result;
}

Result<RunResult> runBundle(const RunOptions& options, ByteSpan bytes, const NamedTensors& arrays) {
  auto bundle = pte::readBundle(bytes);
  if (!bundle) return std::move(bundle).error().inFile(options.file.string()).withRemedy(kDamagedRemedy);
  if (!arrays.empty()) return runProgram<device::Runner>(options, bundle->program, arrays);
  RunResult result;
  result.file = options.file;
  const auto start = std::chrono::steady_clock::now();
  const Tolerance tolerance{options.absoluteTolerance, options.relativeTolerance};
  CARINA_TRY(const device::RunOptions runOptions, deviceOptions(options));
  auto ran = runCases(*bundle, runOptions, tolerance, options.progress);
  if (!ran) return std::move(ran).error().inFile(options.file.string());
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result.samples = ran->cases.size();
  result.cases = std::move(ran->cases);
  result.profile = std::move(ran->profile);
  result.findings = findingsOf(ran->stats);
  result.program = std::move(ran->stats);
  return result;
}

Result<LoadedProgram> loadProgram(const RunOptions& options, ByteSpan bytes) {
  return LoadedProgram::from(bytes, {options.target, options.systemConfig, options.memoryMode,
                                     options.configFile, options.cache, true});
}

/// How arrays match the inputs of a method: 2 as they are, 1 as stacks of samples, 0 not at all.
int fitOf(const pte::Method& method, const NamedTensors& arrays) {
  int fit = 2;
  for (size_t i = 0; i < method.inputs.size(); ++i) {
    const auto id = static_cast<size_t>(method.inputs[i]);
    const auto* input = id < method.values.size() ? std::get_if<pte::Tensor>(&method.values[id]) : nullptr;
    const Tensor* array = findTensor(arrays, fmt::format("in{}", i));
    if (!array && method.inputs.size() == 1 && arrays.size() == 1) array = findTensor(arrays, "");
    if (!input || !array) return 0;
    const auto stacking = stackingOf(array->shape(), Shape(input->sizes.begin(), input->sizes.end()));
    if (!stacking) return 0;
    if (*stacking != Stacking::None) fit = 1;
  }
  return fit;
}

/// The method that the arrays match; empty: the first, which reports the mismatch if none does.
std::string methodFor(ByteSpan bytes, const NamedTensors& arrays) {
  const auto program = pte::readProgram(bytes);
  if (!program || program->methods.size() < 2) return "";
  size_t best = 0;
  int bestFit = fitOf(program->methods[0], arrays);
  for (size_t m = 1; m < program->methods.size(); ++m) {
    const pte::Method& method = program->methods[m];
    const int fit = method.inputs.empty() || isCodeMethod(method) ? 0 : fitOf(method, arrays);
    if (fit <= bestFit) continue;
    best = m;
    bestFit = fit;
  }
  return best == 0 ? "" : program->methods[best].name;
}

Result<RunResult> runExecuTorchFile(const RunOptions& given, ByteSpan bytes, FileKind kind,
                                    const NamedTensors& arrays) {
  if (kind == FileKind::Bundle) return runBundle(given, bytes, arrays);
  auto program = loadProgram(given, bytes);
  if (!program) return std::move(program).error().inFile(given.file.string()).withRemedy(kDamagedRemedy);
  RunOptions options = given;
  if (options.method.empty() && !arrays.empty()) options.method = methodFor(program->bytes(), arrays);
  CARINA_TRY(RunResult result, runProgram<device::Runner>(options, program->bytes(), arrays));
  if (given.method.empty()) result.method = options.method;
  result.atLoad = program->atLoad();
  return result;
}

/// `network`: what `graph` was lowered from, which may have uint8 where TOSA has int8.
Result<RunResult> interpretGraph(const RunOptions& options, const NamedTensors& arrays,
                                 const ir::Graph& graph, const lower_tfl::Lowered* network = nullptr) {
  std::vector<Port> ports = inputPorts(graph);
  for (size_t i = 0; network != nullptr && i < ports.size(); ++i)
    ports[i].type.dtype = network->inputTypes[i];
  WorkBudget budget = WorkBudget::ofFiles({options.file}, options.trusted);
  return runAll(options, arrays, ports, [&](std::span<const Tensor> inputs) -> Result<std::vector<Tensor>> {
    budget.renew();
    CARINA_TRY(std::vector<Tensor> outputs, tosa::interpret(graph, inputs, nullptr, &budget));
    return network != nullptr ? network->networkOutputs(std::move(outputs)) : std::move(outputs);
  });
}

Result<RunResult> runTosaFile(const RunOptions& options, const NamedTensors& arrays) {
  CARINA_TRY(const ir::Graph graph, tosa_io::readTosa(options.file));
  return interpretGraph(options, arrays, graph);
}

/// An integer network runs in the interpreter of the TOSA graph that it lowers to; a compiled model on its
/// NPU, networks with other operators operator by operator.
Result<RunResult> runTfliteFile(const RunOptions& options, ByteSpan bytes, const NamedTensors& arrays) {
  auto model = tflite::readModel(bytes);
  if (!model) return std::move(model).error().inFile(options.file.string()).withRemedy(kDamagedRemedy);
  if (tflite::npuCalls(*model).empty()) {
    if (const auto network = tflite::readNetwork(options.file); network.ok()) {
      const auto graph = lower_tfl::lowerToTosa(*network);
      if (graph.ok() && !graph->floatEdges()) return interpretGraph(options, arrays, graph->tosa, &*graph);
    }
  }
  return runProgram<device::TfliteRunner>(options, bytes, arrays);
}

Result<RunResult> runEthosNFile(const RunOptions& options, ByteSpan bytes, const NamedTensors& arrays) {
  for (const auto& [given, option] : {std::pair(!options.systemConfig.empty(), "--system-config"),
                                      {!options.memoryMode.empty(), "--memory-mode"},
                                      {!options.configFile.empty(), "--config"}}) {
    if (given)
      return fail(Code::OptionDoesNotApply, "is for Ethos-U programs only")
          .at(option)
          .withRemedy("leave it out");
  }
  CARINA_TRY(const EthosNProgram program, readEthosN(bytes, options.target));
  CARINA_TRY(const std::vector<Port> ports, ethosNPorts(program, arrays));
  RunResult::EthosN last;
  std::vector<std::string> findings;
  WorkBudget budget = WorkBudget::ofFiles({options.file}, options.trusted);
  auto result =
      runAll(options, arrays, ports, [&](std::span<const Tensor> inputs) -> Result<std::vector<Tensor>> {
        budget.renew();
        CARINA_TRY(ethosn::RunResult one, runEthosN(program, inputs, options.check, budget));
        last = {program.variant, std::move(one.stats), std::move(one.assumptions)};
        findings.clear();
        for (const ethosn::Finding& finding : one.findings) findings.push_back(finding.str());
        return ethosNOutputs(one.outputs, ports);
      });
  if (!result) return result;
  result->findings = std::move(findings);
  result->ethosN = std::move(last);
  return result;
}

}  // namespace

Status checkArraysOutput(const std::filesystem::path& output) {
  CARINA_RETURN_IF_ERROR(checkOutputPath(output));
  const std::string extension = output.extension().string();
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(output, ignored);
  const bool special = std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
  if (special || extension == ".npz" || extension == ".npy") return {};
  return fail(Code::NotRepresentable, "outputs are written as .npz or .npy")
      .inFile(output.string())
      .withRemedy("use one of these extensions (--json writes the statistics)");
}

Result<std::string> arraysFile(const std::filesystem::path& output, const NamedTensors& arrays) {
  if (output.extension() != ".npy") return formatNpz(arrays);
  if (arrays.size() != 1) {
    return fail(Code::NotRepresentable, "a .npy file holds one array, the program has {} outputs",
                arrays.size())
        .inFile(output.string())
        .withRemedy("name it .npz");
  }
  return formatNpy(arrays.front().second);
}

std::vector<std::string> findingsOf(const device::RunStats& stats) {
  std::vector<std::string> texts;
  for (size_t call = 0; call < stats.delegates.size(); ++call) {
    for (const npu::Finding& finding : stats.delegates[call].findings) {
      texts.push_back(findingText(fmt::format("NPU call {}", call), finding));
    }
  }
  for (size_t call = 0; call < stats.ethosN.size(); ++call) {
    for (const ethosn::Finding& finding : stats.ethosN[call].result.findings)
      texts.push_back(fmt::format("NPU call {}: {}", call, finding.str()));
  }
  return texts;
}

Result<RunResult> runMethods(const RunOptions& options, std::span<const MethodInputs> methods) {
  CARINA_TRY(const auto file, MappedFile::open(options.file));
  if (fileKind(file->bytes(), options.file) != FileKind::Program || methods.empty()) {
    return fail(Code::OptionDoesNotApply, "METHOD=FILE is for .pte programs only")
        .at("--input")
        .withRemedy("give the inputs as --input FILE");
  }
  if (options.resetState != ResetState::Never) {
    return fail(Code::OptionDoesNotApply, "state is passed from method to method when several run")
        .at("--reset-state")
        .withRemedy("leave it out, or run one method with --method");
  }
  auto program = loadProgram(options, file->bytes());
  if (!program) return std::move(program).error().inFile(options.file.string()).withRemedy(kDamagedRemedy);
  auto result = runSequence(options, program->bytes(), methods);
  if (!result) return std::move(result).error().inFile(options.file.string());
  result->atLoad = program->atLoad();
  return result;
}

Result<RunResult> runFile(const RunOptions& options, const NamedTensors& arrays) {
  CARINA_TRY(const auto file, MappedFile::open(options.file));
  const ByteSpan bytes = file->bytes();
  const FileKind kind = fileKind(bytes, options.file);
  if (kind != FileKind::Program && kind != FileKind::Bundle) {
    const char* given = !options.tensorData.empty() ? "--tensor-data"
                        : !options.method.empty()   ? "--method"
                        : options.profile           ? "--etdump"
                        : options.resetState != ResetState::Never && kind != FileKind::Tflite
                            ? "--reset-state"
                            : nullptr;
    if (given != nullptr)
      return fail(Code::OptionDoesNotApply, "is for .pte and .bpte programs only")
          .at(given)
          .withRemedy("leave it out");
  }
  switch (kind) {
    case FileKind::Program:
    case FileKind::Bundle:
      return runExecuTorchFile(options, bytes, kind, arrays);
    case FileKind::Tflite:
      return runTfliteFile(options, bytes, arrays);
    case FileKind::Tosa:
      return runTosaFile(options, arrays);
    case FileKind::EthosNNetwork:
      return runEthosNFile(options, bytes, arrays);
    default:
      break;
  }
  const std::string name = options.file.string();
  if (kind == FileKind::Archive) {
    std::filesystem::path program = std::filesystem::path(options.file).replace_extension(".pte");
    if (program == options.file)
      program = std::filesystem::path(options.file).replace_extension(".compiled.pte");
    return fail(Code::WrongKind, "is a network, not a program")
        .inFile(name)
        .withRemedy(fmt::format("compile it first: carina compile {} -o {} --target {} --calibrate DATA.npz",
                                name, program.string(), options.target.empty() ? "TARGET" : options.target));
  }
  return fail(Code::WrongKind, "a {} cannot be run", fileKindName(kind))
      .inFile(name)
      .withRemedy(
          "give a .pte or .bpte program, a quantized or compiled .tflite, a .tosa graph, .elf firmware or a "
          ".encn network for Ethos-N78");
}

}  // namespace carina::pipeline
