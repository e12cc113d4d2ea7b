// SPDX-License-Identifier: Apache-2.0
#include "precision_options.hpp"

#include "option_values.hpp"
#include "quantize/rules_file.hpp"
#include "report/precision.hpp"

namespace carina::app {

void PrecisionOptions::declare(Command& command) {
  OptionGroup group = command.group(
      "Automatic precision", "Which layers compute in 16x8 to reach --min-sqnr, --min-top1 or --max-cycles:");
  group.flag("--auto-precision", automatic,
             "Measure every layer and choose the fewest cycles that are accurate enough, or the highest "
             "accuracy within --max-cycles");
  group
      .option("--data", data,
              "Labelled samples for --min-top1: .npz (in0, ..., labels), or a folder of images by class")
      .transform(inputFile());
  group.option(
      "--write-rules", rules,
      "Write the choice to a file for --quantize-config, which yields the same program without the search");
  addResultOption(group, "--csv", csv, "The programs that were built, as comma-separated values");
}

void PrecisionOptions::checkUsage(const GateOptions& gates, const BuildOptions& build) const {
  const pipeline::Gates& asked = gates.gates;
  if (!automatic) {
    const auto alone = [](bool given, const char* option) {
      if (given) throwMissing(std::string("with ") + option + ", --auto-precision");
    };
    alone(!data.empty(), "--data");
    alone(!rules.empty(), "--write-rules");
    alone(!csv.empty(), "--csv");
    alone(asked.minTop1.has_value(), "--min-top1");
    return;
  }
  if (!asked.minSqnr && !asked.minTop1 && !asked.maxCycles)
    throwMissing("with --auto-precision, a goal (--min-sqnr, --min-top1 or --max-cycles)");
  if (asked.minTop1 && data.empty()) throwMissing("with --min-top1, --data");
  if (!asked.minTop1 && !data.empty()) throwMissing("with --data, --min-top1");
  const pipeline::Quantization quantization = build.options.quantization;
  if (quantization != pipeline::Quantization::Default && quantization != pipeline::Quantization::Int8)
    throwExcluded("--auto-precision", "--quantize");
}

precision::Goal PrecisionOptions::goal(const pipeline::Gates& gates) const {
  return {gates.minSqnr, gates.minTop1, gates.maxCycles, data};
}

Status PrecisionOptions::add(const precision::AutoPrecision& found, const precision::Goal& goal,
                             const pipeline::Options& options, bool reached, const ResultPath& json,
                             ResultFiles& results) const {
  if (!rules.empty() && reached) {
    CARINA_RETURN_IF_ERROR(results.files().add(
        rules, quantize::rulesText(found.rules, report::precisionComment(found, options))));
  }
  CARINA_RETURN_IF_ERROR(results.add(csv, report::precisionCsv(found)));
  return results.add(json, json.empty() ? "" : report::precisionJson(found, goal, options));
}

}  // namespace carina::app
