// SPDX-License-Identifier: Apache-2.0
// carina verify: float, fake-quant simulation, TOSA interpreter and NPU model side by side. Exit status 1
// when NPU and TOSA differ anywhere.
#include "pipeline/verify.hpp"

#include <memory>

#include "base/npy.hpp"
#include "build_options.hpp"
#include "commands.hpp"
#include "console.hpp"
#include "option_values.hpp"
#include "report/summary.hpp"
#include "report/verification.hpp"

namespace carina::app {
namespace {

struct Flags {
  BuildOptions build;
  std::filesystem::path input;
  size_t samples = 8;
  bool layers = false;
};

Result<pipeline::Verification> runVerification(const Flags& flags) {
  CARINA_TRY(const pipeline::Build build, pipeline::build(flags.build.finish()));
  warn(build.warnings);
  if (flags.build.verbose) fmt::print(stderr, "{}", report::stageTimes(build.times));
  NamedTensors arrays;
  const std::filesystem::path& file = flags.input.empty() ? flags.build.options.calibration : flags.input;
  if (!file.empty()) {
    CARINA_TRY(arrays, readArrays(file));
  }
  auto samples = pipeline::verificationSamples(build, arrays);
  if (!samples) return std::move(samples).error().inFile(file.string());
  if (flags.samples > 0 && samples->size() > flags.samples) samples->resize(flags.samples);
  return pipeline::verify(build, *samples, progressBar("verifying"));
}

int verify(const Flags& flags) {
  auto result = runVerification(flags);
  if (!result) return report(result.error(), flags.build.options.model);
  fmt::print("{}", report::verificationText(*result, flags.layers));
  return result->ok() ? 0 : 1;
}

}  // namespace

void addVerify(CLI::App& app, Run& run) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("verify", "Run float, simulation, TOSA and NPU side by side");
  flags->build.declare(*command);
  command
      ->add_option("--input", flags->input,
                   "Samples (.npz): in0, ... or calib0, ...; default: the calibration data")
      ->transform(inputFile());
  command->add_option("--samples", flags->samples, "At most this many samples (default 8, 0: all)");
  command->add_flag("--layers", flags->layers, "One line per layer, also where nothing differs");
  command->callback([flags, &run] { run = [flags] { return verify(*flags); }; });
}

}  // namespace carina::app
