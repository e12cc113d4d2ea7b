// SPDX-License-Identifier: Apache-2.0
#include "gate_options.hpp"

#include <algorithm>
#include <iterator>

#include "console.hpp"
#include "option_values.hpp"
#include "report/gates.hpp"

namespace carina::app {
void GateOptions::declare(Command& command, std::initializer_list<Gate> which) {
  OptionGroup group = command.group("Gates", "A missed gate results in exit status 3:");
  for (const Gate gate : which) {
    switch (gate) {
      case Gate::Cycles:
        group.option("--max-cycles", gates.maxCycles, "Maximum NPU cycles of one inference")
            .check(nonNegative());
        break;
      case Gate::InferenceMs:
        group
            .option("--max-inference-ms", gates.maxInferenceMs,
                    "Maximum milliseconds of one inference, NPU and CPU, estimated")
            .check(nonNegative());
        break;
      case Gate::Sram:
        group
            .option("--max-sram", gates.maxSram,
                    "Maximum bytes of static RAM (256K, 2M, ...): arena, and whatever else the memory mode "
                    "places there")
            .transform(byteCount());
        break;
      case Gate::Flash:
        group.option("--max-flash", gates.maxFlash, "Maximum bytes of the program (256K, 2M, ...)")
            .transform(byteCount());
        break;
      case Gate::Sqnr:
        group.option("--min-sqnr", gates.minSqnr, "Minimum SQNR of the worst output against float, in dB");
        break;
      case Gate::Top1:
        group
            .option("--min-top1", gates.minTop1,
                    "Minimum percentage of samples whose largest output is that of the label")
            .check(range(0.0, 100.0));
        break;
      case Gate::Npu:
        group.flag("--require-npu", gates.requireNpu, "The whole network must run on the NPU");
        break;
    }
  }
  addResultOption(group, "--junit", junit, "The gates as JUnit XML");
}

void GateOptions::checkUsage() const {
  if (!junit.empty() && !gates.any()) throwMissing("with --junit, a gate (--max-cycles, ...)");
}

void GateOptions::fail(const std::string& subject, const std::string& why) {
  if (gates.any()) results_.push_back({subject, "gates", "that were requested", why, false});
}

Status GateOptions::check(const pipeline::Measured& measured) {
  CARINA_TRY(std::vector<pipeline::GateResult> results, pipeline::checkGates(gates, measured));
  std::move(results.begin(), results.end(), std::back_inserter(results_));
  return {};
}

Status GateOptions::addJunit(std::string_view suite, ResultFiles& files) const {
  return files.add(junit, junit.empty() ? "" : report::junitText(suite, results_));
}

bool GateOptions::missed() const {
  return std::any_of(results_.begin(), results_.end(), [](const auto& result) { return !result.passed; });
}

int GateOptions::finish(int status) const {
  if (!missed()) return status;
  std::fflush(stdout);
  for (const pipeline::GateResult& result : results_) {
    if (!result.passed)
      fmt::print(stderr, "{}", diagnosticText("gate missed", {report::gateText(result), "", "", ""}));
  }
  return status == 0 ? kGateMissed : status;
}

}  // namespace carina::app
