// SPDX-License-Identifier: Apache-2.0
// carina run: a program on the NPU model, or a TOSA graph in the interpreter.
#include <memory>

#include "base/file.hpp"
#include "base/npy.hpp"
#include "commands.hpp"
#include "console.hpp"
#include "pipeline/run.hpp"
#include "report/run_stats.hpp"

namespace carina::app {
namespace {

struct Flags {
  pipeline::RunOptions run;
  std::filesystem::path input, output, json;
  std::string platform = "host";
};

Status execute(Flags flags) {
  flags.run.progress = progressBar("running");
  NamedTensors arrays;
  if (!flags.input.empty()) {
    CARINA_TRY(arrays, readArrays(flags.input));
  }
  CARINA_TRY(const pipeline::RunResult result, pipeline::runFile(flags.run, arrays));
  OutputFiles files;
  if (!flags.output.empty()) CARINA_RETURN_IF_ERROR(files.add(flags.output, formatNpz(result.outputs)));
  if (!flags.json.empty()) CARINA_RETURN_IF_ERROR(files.add(flags.json, report::runStatsJson(result)));
  CARINA_RETURN_IF_ERROR(files.commit());
  fmt::print("{}", report::runStatsText(result));
  return {};
}

}  // namespace

void addRun(CLI::App& app, Run& run) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("run", "Run a program on the NPU model, or a .tosa graph in the interpreter");
  command->add_option("FILE", flags->run.file, "Program: .pte or .tosa")->required();
  command->add_option("--input", flags->input, "Inputs (.npz or .npy): in0, in1, ...; one leading axis more = many samples");
  command->add_option("--output", flags->output, "Where outputs go (.npz): out0, out1, ...");
  command->add_option("--json", flags->json, "Where statistics go");
  command->add_option("--target", flags->run.target, "NPU to run on; default: the one the program was compiled for");
  command->add_option("--platform", flags->platform, "host (default): runtime and NPU model in this process")
      ->check(CLI::IsMember({"host"}));
  command->callback([flags, &run] {
    run = [flags] {
      auto status = execute(*flags);
      return status.ok() ? 0 : report(status.error());
    };
  });
}

}  // namespace carina::app
