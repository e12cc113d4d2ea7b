// SPDX-License-Identifier: Apache-2.0
#include "report/verification.hpp"

#include <algorithm>

#include "report/text.hpp"

namespace carina::report {
namespace {

constexpr size_t kWorstValues = 5;

std::string outputTable(const pipeline::Verification& verification) {
  TextTable table({"output", "elements", "NPU = TOSA", "beyond 1 LSB", "worst LSB", "SQNR simulated", "SQNR program"});
  for (const pipeline::OutputResult& output : verification.outputs) {
    table.add({output.name, countText(output.elements),
               output.npuMismatches == 0 ? "yes" : fmt::format("{} differ", output.npuMismatches),
               countText(output.beyondOneLsb), fmt::format("{:.1f}", output.worstLsb),
               decibelText(output.simulated.decibels()), decibelText(output.program.decibels())});
  }
  return table.str();
}

std::string layerTable(const pipeline::Verification& verification, bool allLayers) {
  TextTable table({"layer", "operator", "from", "elements", "NPU = TOSA"}, 3);
  size_t shown = 0;
  for (const pipeline::LayerResult& layer : verification.layers) {
    if (layer.mismatches == 0 && !allLayers) continue;
    ++shown;
    table.add({layer.value, layer.op, layer.where, countText(layer.elements),
               layer.mismatches == 0 ? "yes"
                                     : fmt::format("{} differ, first at {}: {} instead of {}", countText(layer.mismatches),
                                                   layer.firstMismatch, layer.actual, layer.expected)});
  }
  return shown > 0 ? table.str() : "";
}

std::string accuracyTable(const pipeline::Verification& verification) {
  std::vector<pipeline::AccuracyResult> worst = verification.accuracy;
  std::stable_sort(worst.begin(), worst.end(),
                   [](const auto& a, const auto& b) { return a.sqnr.decibels() < b.sqnr.decibels(); });
  if (worst.empty()) return "";
  TextTable table({"least accurate", "from", "SQNR"}, 2);
  for (size_t i = 0; i < std::min(worst.size(), kWorstValues); ++i) {
    table.add({worst[i].value, worst[i].where, decibelText(worst[i].sqnr.decibels())});
  }
  return table.str();
}

}  // namespace

std::string verificationText(const pipeline::Verification& verification, bool allLayers) {
  std::string text = outputTable(verification) + "\n";
  if (const std::string accuracy = accuracyTable(verification); !accuracy.empty()) text += accuracy + "\n";
  if (const std::string layers = layerTable(verification, allLayers); !layers.empty()) text += layers + "\n";
  const size_t exact = static_cast<size_t>(std::count_if(verification.layers.begin(), verification.layers.end(),
                                                         [](const auto& layer) { return layer.mismatches == 0; }));
  text += verification.wholly ? "wholly on the NPU\n" : "partly on the CPU\n";
  text += fmt::format("{}: {} of {} layers equal over {} sample{}; {} NPU cycles per inference\n",
                      verification.ok() ? "NPU and TOSA agree bit for bit" : "NPU and TOSA DIFFER", exact,
                      verification.layers.size(), verification.samples, verification.samples == 1 ? "" : "s",
                      countText(verification.cycles));
  return text;
}

}  // namespace carina::report
