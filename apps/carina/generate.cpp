// SPDX-License-Identifier: Apache-2.0
// carina generate: generates text with a compiled language model.
#include "pipeline/generate.hpp"

#include <cstdio>
#include <memory>

#include "build_options.hpp"
#include "commands.hpp"
#include "console.hpp"
#include "gate_options.hpp"
#include "option_values.hpp"
#include "report/generated.hpp"

namespace carina::app {
namespace {

struct GenerateFlags {
  pipeline::GenerateOptions generate;
  bool noBos = false;
  ResultPath json;
  GateOptions gates;
};

Result<int> execute(GenerateFlags flags) {
  CARINA_RETURN_IF_ERROR(checkResults({flags.json, flags.gates.junit}));
  flags.generate.beginning = !flags.noBos;
  // If a result goes to standard output, the text does not.
  const bool writesText = flags.json != kStandardOutput && flags.gates.junit != kStandardOutput;
  if (writesText) {
    flags.generate.write = [](const std::string& piece) {
      std::fwrite(piece.data(), 1, piece.size(), stdout);
      std::fflush(stdout);
    };
  }
  CARINA_TRY(const pipeline::Generated result, pipeline::generate(flags.generate));
  if (writesText) fmt::print("\n");
  warn(result.warnings);
  pipeline::Measured measured = pipeline::measuredOf(result);
  if (flags.gates.gates.maxSram) {
    CARINA_RETURN_IF_ERROR(pipeline::recordSram(
        flags.generate.program,
        {flags.generate.systemConfig, flags.generate.memoryMode, flags.generate.configFile}, measured));
  }
  CARINA_RETURN_IF_ERROR(flags.gates.check(measured));
  ResultFiles files;
  CARINA_RETURN_IF_ERROR(files.add(flags.json, report::generatedJson(result)));
  CARINA_RETURN_IF_ERROR(flags.gates.addJunit("carina generate", files));
  CARINA_RETURN_IF_ERROR(files.commit());
  files.print("");
  fmt::print(stderr, "{}", report::generatedText(result));
  return flags.gates.finish(0);
}

}  // namespace

void addGenerate(CommandLine& line, Run& run) {
  auto flags = std::make_shared<GenerateFlags>();
  pipeline::GenerateOptions& options = flags->generate;
  Command command = line.add("generate", "Generate text with a compiled language model, on the NPU model");
  command
      .option("FILE", options.program,
              "Program (.pte) of a language model: a method that accepts one token, and optionally one that "
              "accepts several")
      .transform(inputFile())
      .required();
  command
      .option("--tokenizer", options.tokenizer,
              "The model's tokenizer.json (byte-level BPE) or SentencePiece file")
      .transform(inputFile())
      .required();
  command.option("--prompt", options.prompt, "Text to continue").required();
  command.flag("--no-bos", flags->noBos, "Omit the tokens that the tokenizer puts at the start of a text");
  command.option("--tokens", options.tokens, "Maximum number of tokens to generate")
      .check(range(int64_t{1}, int64_t{1} << 20))
      .showDefault();
  command
      .option("--context", options.context,
              "Number of tokens that fit in the model's state; default: the program's")
      .check(range(int64_t{1}, int64_t{1} << 20));
  command
      .option("--temperature", options.sampling.temperature,
              "0 (default): always the most likely token; larger: more variety")
      .check(range(0.0, 100.0));
  command.option("--top-k", options.sampling.topK, "Choose among the K most likely tokens; 0 (default): all")
      .check(nonNegative());
  command
      .option("--top-p", options.sampling.topP,
              "Choose among the most likely tokens that make up this probability; default 1")
      .check(range(0.0, 1.0));
  command.option("--seed", options.sampling.seed, "Seed for sampling with a temperature").showDefault();
  command.option("--target", options.target, "NPU to run on; default: the one the program was compiled for")
      .transform(targetName());
  command.option("--system-config", options.systemConfig, "Memories and clock; default: the program's");
  command.option("--memory-mode", options.memoryMode, "What lives in which memory; default: the program's");
  command
      .option("--config", options.configFile, "vela.ini with further system configurations and memory modes")
      .transform(inputFile())
      .check(existingFile());
  addTrustedOption(command, options.trusted);
  addCpuOption(command, options.cpu);
  addResultOption(command, "--json", flags->json, "Text, tokens and cycles as JSON");
  using Gate = GateOptions::Gate;
  flags->gates.declare(command, {Gate::Cycles, Gate::InferenceMs, Gate::Sram, Gate::Flash, Gate::Npu});
  command.callback([flags, &run] {
    flags->gates.checkUsage();
    run = [flags] { return exitStatus(execute(*flags), flags->generate.program); };
  });
}

}  // namespace carina::app
