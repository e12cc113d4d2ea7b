// SPDX-License-Identifier: Apache-2.0
#include "build_options.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <tuple>

#include "console.hpp"
#include "cpu/cost.hpp"
#include "option_values.hpp"

namespace carina::app {
namespace {

const std::vector<std::string> kStages{"read", "decompose", "quantize",  "tosa",
                                       "npu",  "schedule",  "operations"};

using pipeline::ProgramIo;

std::optional<ProgramIo> parseType(std::string_view text) {
  for (const ProgramIo type : {ProgramIo::Float, ProgramIo::Int8, ProgramIo::Int16, ProgramIo::UInt8}) {
    if (text == pipeline::programIoName(type)) return type;
  }
  return std::nullopt;
}

/// TYPE, or NAME=TYPE.
std::pair<std::string, std::optional<ProgramIo>> parsePortType(const std::string& text) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos) return {"", parseType(text)};
  return {text.substr(0, equals), parseType(std::string_view(text).substr(equals + 1))};
}

std::string checkPortType(const std::string& text, bool inputs) {
  const auto [name, type] = parsePortType(text);
  const bool named = text.find('=') == std::string::npos || !name.empty();
  if (named && type && (inputs || type != ProgramIo::UInt8)) return "";
  return fmt::format("'{}' is not TYPE or NAME=TYPE, where TYPE is float, int8{} int16{}", text,
                     inputs ? "," : " or", inputs ? " or uint8" : "");
}

/// The last type without a name applies to all others.
void takePortTypes(const std::vector<std::string>& texts, ProgramIo& all,
                   std::vector<std::pair<std::string, ProgramIo>>& named) {
  for (const std::string& text : texts) {
    auto [name, type] = parsePortType(text);
    if (name.empty()) {
      all = *type;
    } else {
      named.emplace_back(std::move(name), *type);
    }
  }
}

constexpr const char* kFinishForms = "expected softmax, argmax, or one of them with a dimension: softmax:1";

std::optional<std::pair<pipeline::Finish, std::optional<int64_t>>> parseFinish(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  std::optional<int64_t> dim;
  if (colon != std::string::npos) {
    int64_t number = 0;
    const char* end = text.data() + text.size();
    const auto [last, error] = std::from_chars(text.data() + colon + 1, end, number);
    if (error != std::errc() || last != end) return std::nullopt;
    dim = number;
  }
  if (name == "softmax") return std::pair(pipeline::Finish::Softmax, dim);
  if (name == "argmax") return std::pair(pipeline::Finish::Argmax, dim);
  return std::nullopt;
}

/// Two flags that exclude each other and set or clear `value`.
void addSwitch(Command& command, const std::string& on, const std::string& off, bool& value,
               const std::string& whatOn, const std::string& whatOff) {
  Option set = command.flag(
      on, [&value] { value = true; }, whatOn);
  command
      .flag(
          off, [&value] { value = false; }, whatOff)
      .excludes(set);
}

}  // namespace

void BuildOptions::declare(Command& command, Takes takes) {
  using pipeline::ProgramIo;
  using pipeline::Quantization;
  const bool programs = takes == Takes::NetworksAndPrograms;
  command
      .option("MODEL", options.model,
              programs ? "Network (.pt2, quantized .tflite, .tosa) or program (.pte, compiled .tflite, blob)"
                       : "Network: .pt2 (torch.export.save), quantized .tflite, or .tosa")
      .transform(inputFile())
      .required();
  command.option("--program", options.program,
                 "Program to use from a .pt2 that holds several (see 'carina inspect')");
  declareSizes(command, takes);
  if (takes != Takes::NetworksForManyTargets) {
    command
        .option("--target", options.target,
                programs ? "NPU variant (see 'carina targets'); default for a program: its own"
                         : "NPU variant, or cpu (see 'carina targets')")
        .transform(targetName())
        .required(!programs);
    command.option("--system-config", options.systemConfig, "Memories and clocks; default: the target's");
    command.option("--memory-mode", options.memoryMode, "What lives in which memory; default: the target's");
  }
  command
      .option("--config", options.configFile, "vela.ini with further system configurations and memory modes")
      .transform(inputFile())
      .check(existingFile());
  addChoice<Quantization, Quantization>(
      command, "--quantize", options.quantization,
      {{"int8", Quantization::Int8}, {"int16x8", Quantization::Int16x8}, {"none", Quantization::None}},
      "int8 (default), int16x8, none (default for target cpu)");
  command
      .option("--quantize-config", options.quantizeConfig,
              "Mixed precision: rules by operator, node or module (JSON)")
      .transform(inputFile())
      .check(existingFile());
  if (takes == Takes::Methods) {
    declareMethods(command);
  } else {
    command.option("--calibrate", options.calibration, "Calibration samples (.npz): calib0, calib1, ...")
        .transform(inputFile());
  }
  addSwitch(command, "--per-channel", "--per-tensor", options.perChannel,
            "One weight scale per output channel (default)", "One weight scale per tensor");
  command
      .option("--weight-bits", options.weightBits,
              "Bits per weight, 2 to 8 (default 8); fewer bits make smaller weight streams")
      .check(range(int64_t{quantize::kMinWeightBits}, int64_t{quantize::kMaxWeightBits}));
  command
      .option("--observer", observer,
              "How ranges are derived from samples: histogram (default), minmax, moving-average[:C], "
              "percentile[:P]")
      .check([](const std::string& text) {
        const auto settings = quantize::parseObserver(text);
        return settings.ok() ? "" : settings.error().str();
      });
  command.flag("--equalize", options.equalize, "Equalize the channels of neighbouring layers first");
  addSwitch(command, "--fit-weights", "--no-fit-weights", options.fitWeights,
            "Round weights so that the results of layers are preserved (default)",
            "Round each weight to the nearest code");
  addSwitch(command, "--bias-correction", "--no-bias-correction", options.correctBiases,
            "Correct biases for the mean error of rounded weights (default)", "Leave biases unchanged");
  command
      .option("--unroll", options.unroll,
              "Unroll recurrent layers over up to N steps; longer ones become loops (default: from 100 steps "
              "on, whichever is cheaper)")
      .check(nonNegative());
  declareEnds(command);
  addCpuOption(command, cpu);
  command
      .option("--cpu-op", options.cpuOps,
              "Keep operators of this type on the CPU, for example relu or aten.add.Tensor")
      .delimiter(',');
  command
      .option("--cpu-name", options.cpuNames,
              "Keep operators with this name on the CPU (* and ? are wildcards)")
      .delimiter(',');
  command
      .option("--cpu-module", options.cpuModules,
              "Keep a module and its submodules on the CPU (* and ? are wildcards)")
      .delimiter(',');
  addChoice<compiler::Optimize, compiler::Optimize>(
      command, "--optimize", options.optimize,
      {{"performance", compiler::Optimize::Performance}, {"size", compiler::Optimize::Size}},
      "performance (default): fewest cycles; size: smallest arena, layers run in stripes or row tiles");
  command
      .option("--effort", options.effort,
              "Time spent on the search and on encoding weights: 1 (little), 2 (default) or 3 (much)")
      .check(range(int64_t{1}, int64_t{3}));
  command
      .option(
          "--arena-size", options.arenaLimit,
          "Maximum bytes of arena (256K, 1.5M, ...); layers run in stripes or row tiles if that makes it fit")
      .transform(byteCount());
  command
      .option("--cache-size", options.cacheLimit,
              "Maximum bytes of dedicated cache (256K, ...); default: all that the memory mode offers")
      .transform(byteCount());
  command
      .option("--dump-after", dumpStages,
              "Print the graph after these stages: read, decompose, quantize, tosa, npu, "
              "schedule, operations")
      .delimiter(',')
      .check(oneOf(kStages));
  addTrustedOption(command, options.trusted);
  command.flag("-v,--verbose", verbose,
               "Print the time of each stage, and how far the program is from a lower bound on its cycles");
}

void BuildOptions::declareSizes(Command& command, Takes takes) {
  const auto form = [](const std::string& text) {
    const auto choice = pipeline::parseSizeChoice(text);
    return choice.ok() ? "" : choice.error().str();
  };
  if (takes == Takes::Methods) {
    command
        .option("--specialize", sizes,
                "SYMBOL=SIZE,...: sizes for inputs that were exported with a range of sizes; each becomes a "
                "method")
        .check(form);
    return;
  }
  const auto store = [this](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      const auto choice = pipeline::parseSizeChoice(text);
      if (!choice.ok()) throwBadValue("--specialize", choice.error().str());
      if (choice->values.size() > 1) throwBadValue("--specialize", "accepts only one size per symbol here");
      if (!options.sizes.emplace(choice->symbol, choice->values[0]).second)
        throwBadValue("--specialize", fmt::format("{} is given twice", choice->symbol));
    }
  };
  command.option("--specialize", store,
                 "SYMBOL=SIZE: the size for inputs that were exported with a range of sizes");
}

void BuildOptions::declareMethods(Command& command) {
  addNamedFiles(command, "--calibrate", calibrations,
                "Calibration samples (.npz): calib0, calib1, ...; METHOD=FILE for one method");
  addNamedFiles(command, "--method", methodFiles,
                "METHOD=FILE: a method of the program, built from this .pt2; repeat for each method. MODEL, "
                "if given, is the first, 'forward'. Buffers of the same name are shared");
  command.find("MODEL").required(false);
}

void BuildOptions::resolveMethods() {
  if (methodFiles.empty() && options.model.empty()) throwMissing("MODEL");
  if (!methodFiles.empty()) {
    if (!options.model.empty()) methods.push_back({"forward", options.model, {}});
    for (const NamedFile& file : methodFiles) {
      if (file.name.empty())
        throwBadValue("--method", fmt::format("'{}' is not METHOD=FILE", file.file.string()));
      methods.push_back({file.name, file.file, {}});
    }
    if (options.model.empty()) options.model = methods.front().model;
  }
  if (!sizes.empty()) return;  // chooseSizes() resolves the methods
  for (const NamedFile& file : calibrations) {
    std::filesystem::path* to = file.name.empty() ? &options.calibration : nullptr;
    for (pipeline::MethodSource& method : methods) {
      if (method.name == (file.name.empty() ? "forward" : file.name)) to = &method.calibration;
    }
    if (to == nullptr) {
      throwBadValue("--calibrate",
                    fmt::format("there is no method '{}'\n  name the methods with --method", file.name));
    }
    if (!to->empty()) throwBadValue("--calibrate", "is given twice for one method");
    *to = file.file;
  }
  if (!methods.empty() && !options.calibration.empty()) {
    throwBadValue("--calibrate", "the samples are not assigned to a method\n  give them as METHOD=FILE");
  }
}

/// One file per method: its own, or that of the method that it was derived from.
Status BuildOptions::nameFiles(std::string_view option, std::vector<NamedFile>& files) const {
  std::vector<NamedFile> named;
  std::vector<bool> used(files.size());
  for (const pipeline::MethodSource& method : methods) {
    for (const std::string& name : {method.name, method.asked}) {
      const size_t before = named.size();
      for (size_t i = 0; i < files.size(); ++i) {
        if ((files[i].name.empty() ? "forward" : files[i].name) != name) continue;
        used[i] = true;
        named.push_back({method.name, files[i].file});
      }
      if (named.size() > before + 1) {
        return fail(Code::BadOption, "is given twice for the method '{}'", name)
            .at(std::string(option))
            .withRemedy("give it once");
      }
      if (named.size() > before) break;
    }
  }
  for (size_t i = 0; i < files.size(); ++i) {
    if (used[i]) continue;
    std::string known;
    for (const pipeline::MethodSource& method : methods) known += (known.empty() ? "" : ", ") + method.name;
    const bool own = std::any_of(methods.begin(), methods.end(), [&](const pipeline::MethodSource& method) {
      return method.asked == (files[i].name.empty() ? "forward" : files[i].name);
    });
    if (own) continue;  // each of its methods has its own file
    return fail(Code::UnknownName, "there is no method '{}'",
                files[i].name.empty() ? "forward" : files[i].name)
        .at(std::string(option))
        .withRemedy(fmt::format("the methods are {}", known));
  }
  files = std::move(named);
  return {};
}

Status BuildOptions::chooseSizes(std::vector<NamedFile>* inputs) {
  if (sizes.empty()) return {};
  std::vector<pipeline::SizeChoice> choices;
  for (const std::string& text : sizes) {
    CARINA_TRY(pipeline::SizeChoice choice, pipeline::parseSizeChoice(text));
    choices.push_back(std::move(choice));
  }
  const bool alone = methods.empty();
  if (alone) methods.push_back({"forward", options.model, {}});
  const std::vector<pipeline::MethodSource> given = std::exchange(methods, {});
  CARINA_TRY(methods, pipeline::methodsOfSizes(given, options.program, choices));
  CARINA_RETURN_IF_ERROR(nameFiles("--calibrate", calibrations));
  for (const NamedFile& file : calibrations) {
    const auto method =
        std::find_if(methods.begin(), methods.end(),
                     [&](const pipeline::MethodSource& source) { return source.name == file.name; });
    method->calibration = file.file;
  }
  if (inputs) CARINA_RETURN_IF_ERROR(nameFiles("--input", *inputs));
  if (!alone || methods.size() > 1) return {};
  options.sizes = methods.front().sizes;
  options.calibration = methods.front().calibration;
  methods.clear();
  if (!inputs) return {};
  for (NamedFile& input : *inputs) input.name.clear();
  return {};
}

void BuildOptions::declareEnds(Command& command) {
  using pipeline::Finish;
  using pipeline::ProgramIo;
  addChoice<std::optional<ProgramIo>, ProgramIo>(
      command, "--io", io,
      {{"float", ProgramIo::Float}, {"int8", ProgramIo::Int8}, {"int16", ProgramIo::Int16}},
      "Type of the program's inputs and outputs: float (default), int8 or int16");
  command
      .option("--io-inputs", inputs,
              "The same for inputs only, also uint8; NAME=TYPE for one input (in0, in1, ... are names, too)")
      .delimiter(',')
      .check([](const std::string& text) { return checkPortType(text, true); });
  command.option("--io-outputs", outputs, "The same for outputs only, except uint8")
      .delimiter(',')
      .check([](const std::string& text) { return checkPortType(text, false); });
  command.flag("--io-symmetric", options.symmetricIo, "Quantized inputs and outputs have zero point 0");
  using pipeline::Layout;
  addChoice<Layout, Layout>(command, "--io-layout", options.ends.layout,
                            {{"nchw", Layout::ChannelsFirst}, {"nhwc", Layout::ChannelsLast}},
                            "Layout of inputs and outputs with four dimensions: nchw (default), as in "
                            "networks, or nhwc, as for cameras and displays");
  command
      .option("--mean", options.ends.mean,
              "The network receives (pixel / 255 - mean) / std of uint8 inputs (evaluate: also of images for "
              "float inputs); one value, or one per channel (default 0)")
      .delimiter(',');
  command.option("--std", options.ends.deviation, "See --mean (default 1)").delimiter(',');
  command
      .option("--finish", finishing,
              "Apply softmax or argmax to the network's float outputs, over dimension 1, or over DIM with "
              "softmax:DIM")
      .check([](const std::string& text) { return parseFinish(text) ? "" : kFinishForms; });
}

pipeline::Options BuildOptions::finish() const {
  pipeline::Options result = options;
  result.observer = *quantize::parseObserver(observer);
  result.inputs = result.outputs = io.value_or(ProgramIo::Float);
  result.ends.typesAsked = io || !inputs.empty() || !outputs.empty();
  takePortTypes(inputs, result.inputs, result.ends.inputTypes);
  takePortTypes(outputs, result.outputs, result.ends.outputTypes);
  if (!finishing.empty()) std::tie(result.ends.finish, result.ends.finishDim) = *parseFinish(finishing);
  result.progress = progressBar("calibrating");
  if (!dumpStages.empty()) {
    result.dump = [stages = dumpStages](std::string_view stage, const std::function<std::string()>& text) {
      if (std::find(stages.begin(), stages.end(), stage) == stages.end()) return;
      fmt::print("// after {}\n{}\n", stage, text());
    };
  }
  return result;
}

void addCpuOption(Command& command, std::string& core) {
  std::vector<std::string> names;
  for (const cpu::CoreInfo& info : cpu::coreInfos()) names.emplace_back(info.name);
  const std::string listed = fmt::format("{}", fmt::join(names, ", "));
  command
      .option("--cpu", core,
              "Core that the inference time is estimated for: " + listed +
                  "; default: the board's, without vector code")
      .check(oneOf(std::move(names)));
}

}  // namespace carina::app
