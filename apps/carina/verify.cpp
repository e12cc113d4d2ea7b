// SPDX-License-Identifier: Apache-2.0
// carina verify: float, fake-quant simulation, TOSA interpreter and NPU model side by side. Exit status 1
// when NPU and TOSA differ anywhere. With --against: a compiled program beside the graphs it came from.
#include "pipeline/verify.hpp"

#include <algorithm>
#include <memory>

#include "base/npy.hpp"
#include "build_options.hpp"
#include "commands.hpp"
#include "console.hpp"
#include "gate_options.hpp"
#include "option_values.hpp"
#include "pipeline/against.hpp"
#include "report/against.hpp"
#include "report/summary.hpp"
#include "report/verification.hpp"

namespace carina::app {
namespace {

struct Flags {
  BuildOptions build;
  std::filesystem::path input;
  std::optional<size_t> samples;
  std::vector<std::filesystem::path> against;
  bool layers = false;
  ResultPath json;
  GateOptions gates;
};

Result<pipeline::Verification> runVerification(Flags& flags) {
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
  const size_t most = flags.samples.value_or(8);
  if (most > 0 && samples->size() > most) samples->resize(most);
  CARINA_TRY(pipeline::Verification result, pipeline::verify(build, *samples, progressBar("verifying")));
  CARINA_TRY(const std::string program, pte::writeProgram(build.program));
  pipeline::Measured measured = pipeline::measuredOf(build, static_cast<int64_t>(program.size()));
  measured.sqnr = result.worstDecibels();
  CARINA_RETURN_IF_ERROR(flags.gates.check(measured));
  return result;
}

Result<int> compareProgram(const Flags& flags) {
  NamedTensors arrays;
  if (!flags.input.empty()) {
    CARINA_TRY(arrays, readArrays(flags.input));
  }
  const pipeline::AgainstOptions options{flags.build.options.model, flags.against, flags.samples.value_or(1)};
  CARINA_TRY(const pipeline::Against result, pipeline::verifyAgainst(options, arrays));
  fmt::print("{}", report::againstText(result));
  if (result.ok()) return 0;
  return fail(Code::ResultsDiffer, "the program does not compute what its graph says")
      .inFile(options.program.string());
}

/// Options of building do nothing for a program that exists.
void refuseBuildOptions(const Command& command) {
  constexpr std::string_view kAllowed[] = {"MODEL", "--against", "--input", "--samples"};
  for (const GivenOption& option : command.given()) {
    if (std::find(std::begin(kAllowed), std::end(kAllowed), option.name) != std::end(kAllowed)) continue;
    throwBadValue(option.name, "has no effect on a compiled program: leave it out with --against");
  }
}

int verify(Flags& flags) {
  if (!flags.against.empty()) {
    const auto status = compareProgram(flags);
    return status.ok() ? *status : report(status.error());
  }
  if (const auto status = checkResults({flags.json, flags.gates.junit}); !status.ok())
    return report(status.error());
  auto result = runVerification(flags);
  if (!result) return report(result.error(), flags.build.options.model);
  ResultFiles files;
  Status status = files.add(flags.json, report::verificationJson(*result));
  if (status.ok()) status = flags.gates.addJunit("carina verify", files);
  if (status.ok()) status = files.commit();
  if (!status.ok()) return report(status.error());
  files.print(report::verificationText(*result, flags.layers));
  return flags.gates.finish(result->ok() ? 0 : 1);
}

}  // namespace

void addVerify(CommandLine& line, Run& run) {
  auto flags = std::make_shared<Flags>();
  Command command = line.add("verify", "Run float, simulation, TOSA and NPU side by side");
  flags->build.declare(command);
  command.find("--target").required(false);
  command
      .option(
          "--against", flags->against,
          "MODEL is a compiled program (.pte, .bpte, blob): run it beside the TOSA graphs (.tosa) that its "
          "NPU parts were compiled from")
      .delimiter(',')
      .transform(inputFile());
  command
      .option("--input", flags->input,
              "Samples (.npz): in0, ... or calib0, ...; default: the calibration data")
      .transform(inputFile());
  command.option("--samples", flags->samples,
                 "At most this many samples (default 8, 0: all); with --against and without --input: so many "
                 "samples of noise (default 1)");
  command.flag("--layers", flags->layers, "One line per layer, also where nothing differs");
  addResultOption(command, "--json", flags->json, "The comparison as JSON");
  using Gate = GateOptions::Gate;
  flags->gates.declare(command,
                       {Gate::Cycles, Gate::InferenceMs, Gate::Sram, Gate::Flash, Gate::Sqnr, Gate::Npu});
  command.callback([flags, command, &run] {
    flags->gates.checkUsage();
    if (!flags->against.empty()) {
      refuseBuildOptions(command);
    } else if (flags->build.options.target.empty()) {
      throwMissing("--target");
    }
    run = [flags] { return verify(*flags); };
  });
}

}  // namespace carina::app
