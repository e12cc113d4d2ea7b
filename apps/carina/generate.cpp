// SPDX-License-Identifier: Apache-2.0
// carina generate: text from a compiled language model.
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
  // Where a result goes to standard output, the text does not.
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
    CARINA_RETURN_IF_ERROR(pipeline::takeSram(
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
  Command command = line.add("generate", "Text from a compiled language model on the NPU model");
  command
      .option("FILE", options.program,
              "Program (.pte) of a language model: a method that takes one token, maybe one that takes many")
      .transform(inputFile())
      .required();
  command
      .option("--tokenizer", options.tokenizer,
              "The model's tokenizer.json (byte-level BPE) or SentencePiece file")
      .transform(inputFile())
      .required();
  command.option("--prompt", options.prompt, "The text to go on from").required();
  command.flag("--no-bos", flags->noBos, "Without the tokens that the tokenizer puts in front of texts");
  command.option("--tokens", options.tokens, "Tokens to generate at most")
      .check(range(int64_t{1}, int64_t{1} << 20))
      .showDefault();
  command
      .option("--context", options.context,
              "Tokens that the model's state has room for; default: what the program says")
      .check(range(int64_t{1}, int64_t{1} << 20));
  command
      .option("--temperature", options.sampling.temperature,
              "0 (default): always the likeliest token; larger: more variety")
      .check(range(0.0, 100.0));
  command.option("--top-k", options.sampling.topK, "Choose among the K likeliest tokens; 0 (default): all")
      .check(nonNegative());
  command
      .option("--top-p", options.sampling.topP,
              "Choose among the likeliest tokens that make up this probability; default 1")
      .check(range(0.0, 1.0));
  command.option("--seed", options.sampling.seed, "Of the choice with a temperature").showDefault();
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
