// SPDX-License-Identifier: Apache-2.0
#include "report/verification.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "report/document.hpp"
#include "report/text.hpp"

namespace carina::report {
namespace {

constexpr size_t kWorstValues = 5;

std::string outputTable(const pipeline::Verification& verification) {
  TextTable table({"output", "elements", "NPU = TOSA", "beyond 1 LSB", "worst LSB", "SQNR ends",
                   "SQNR simulated", "SQNR program"});
  for (const pipeline::OutputResult& output : verification.outputs) {
    table.add({output.name, countText(output.elements),
               output.npuMismatches == 0 ? "yes" : fmt::format("{} differ", output.npuMismatches),
               countText(output.beyondOneLsb), fmt::format("{:.1f}", output.worstLsb),
               decibelText(output.ends.decibels()), decibelText(output.simulated.decibels()),
               decibelText(output.program.decibels())});
  }
  return table.str();
}

std::string layerTable(const pipeline::Verification& verification, bool allLayers) {
  TextTable table({"layer", "operator", "from", "elements", "NPU = TOSA"}, 3);
  size_t shown = 0;
  for (const pipeline::LayerResult& layer : verification.layers) {
    if (layer.equal() && !allLayers) continue;
    ++shown;
    table.add({layer.value, layer.op, layer.where, countText(layer.elements),
               layer.equal() ? "yes"
               : layer.mismatches == 0
                   ? fmt::format("computed {} times instead of {}",
                                 countText(static_cast<int64_t>(layer.npuIterations)),
                                 countText(static_cast<int64_t>(layer.turns)))
                   : fmt::format("{} differ, first at {}: {} instead of {}", countText(layer.mismatches),
                                 layer.firstMismatch, layer.actual, layer.expected)});
  }
  return shown > 0 ? table.str() : "";
}

/// CPU nodes that differ from the executor, or all nodes except quantize and dequantize.
std::string cpuTable(const pipeline::Verification& verification, bool allLayers) {
  TextTable table({"CPU node", "operator", "elements", "CPU = executor", "worst error"}, 2);
  size_t shown = 0;
  for (const pipeline::CpuResult& node : verification.cpu) {
    if (node.mismatches == 0 && !allLayers) continue;
    ++shown;
    table.add({node.where, node.op, countText(node.elements),
               node.mismatches == 0 ? "yes" : fmt::format("{} differ", countText(node.mismatches)),
               percentText(node.worst, 1.0) + " of allowed"});
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

/// Values that differ from the simulation by more than rounding, worst first.
std::string driftTable(const pipeline::Verification& verification) {
  std::vector<pipeline::DriftResult> worst;
  for (const pipeline::DriftResult& drift : verification.drift) {
    if (drift.beyondOneLsb > 0) worst.push_back(drift);
  }
  if (worst.empty()) return "";
  const pipeline::DriftResult first = worst.front();
  std::stable_sort(worst.begin(), worst.end(),
                   [](const auto& a, const auto& b) { return a.worstLsb > b.worstLsb; });
  TextTable table({"off the simulation", "from", "elements", "beyond 1 LSB", "worst LSB"}, 2);
  for (size_t i = 0; i < std::min(worst.size(), kWorstValues); ++i) {
    table.add({worst[i].value, worst[i].where, countText(worst[i].elements), countText(worst[i].beyondOneLsb),
               countText(worst[i].worstLsb)});
  }
  std::string text = table.str();
  if (worst.size() > kWorstValues) text += fmt::format("and {} more\n", worst.size() - kWorstValues);
  return text + fmt::format("first to diverge: {}\n", first.value);
}

}  // namespace

std::string verificationText(const pipeline::Verification& verification, bool allLayers) {
  std::string text = outputTable(verification) + "\n";
  if (const std::string accuracy = accuracyTable(verification); !accuracy.empty()) text += accuracy + "\n";
  if (const std::string drift = driftTable(verification); !drift.empty()) text += drift + "\n";
  if (const std::string layers = layerTable(verification, allLayers); !layers.empty()) text += layers + "\n";
  if (const std::string cpu = cpuTable(verification, allLayers); !cpu.empty()) text += cpu + "\n";
  const size_t exact =
      static_cast<size_t>(std::count_if(verification.layers.begin(), verification.layers.end(),
                                        [](const auto& layer) { return layer.equal(); }));
  const bool npu = verification.delegates > 0;
  text += verification.wholly ? "entirely on the NPU\n"
          : npu               ? "partly on the CPU\n"
                              : "entirely on the CPU\n";
  if (verification.quantized > 0) {
    text += fmt::format("simulated in integers, operator by operator: {} of {} quantized values\n",
                        countText(static_cast<int64_t>(verification.inIntegers)),
                        countText(static_cast<int64_t>(verification.quantized)));
  }
  const std::string over =
      fmt::format("over {} sample{}", verification.samples, verification.samples == 1 ? "" : "s");
  if (npu) {
    const bool same = verification.delegateMismatches == 0 && exact == verification.layers.size();
    // Results that are stored in several pieces are not compared as layers.
    const std::string layers = verification.layers.empty() ? "results equal " + over
                                                           : fmt::format("{} of {} layers equal {}", exact,
                                                                         verification.layers.size(), over);
    const pipeline::OffTosa& off = verification.offTosa;
    const char* agree = off.elements > 0 ? "NPU and TOSA agree within the arithmetic of an Ethos-N"
                                         : "NPU and TOSA agree bit for bit";
    text += fmt::format("{}: {}; {} NPU cycles per inference\n", same ? agree : "NPU and TOSA DIFFER", layers,
                        countText(verification.cycles));
    if (off.elements > 0) {
      text += fmt::format("results of NPU parts: {} of {} codes differ from TOSA's, by at most {}\n",
                          countText(off.different), countText(off.elements), off.worst);
    }
  }
  for (const pipeline::OutputResult& output : verification.outputs) {
    if (output.wrongIntegers == 0) continue;
    text += fmt::format(
        "output {} is WRONG: {} of {} integers differ from the network's, the first is {} instead of {}\n",
        output.name, countText(output.wrongIntegers), countText(output.elements), output.actual,
        output.expected);
  }
  if (!verification.findings.empty()) {
    text += "the checker of command streams finds what would go WRONG in hardware:\n";
    for (const std::string& finding : verification.findings) text += fmt::format("  {}\n", finding);
  }
  if (!verification.cpu.empty()) {
    const auto good =
        static_cast<size_t>(std::count_if(verification.cpu.begin(), verification.cpu.end(),
                                          [](const auto& node) { return node.mismatches == 0; }));
    text += fmt::format("{}: {} of {} kernel nodes within tolerance {}\n",
                        good == verification.cpu.size() ? "CPU kernels and float executor agree"
                                                        : "CPU kernels and float executor DIFFER",
                        good, verification.cpu.size(), over);
  }
  return text;
}

namespace {

using Json = nlohmann::ordered_json;

void fill(Json& json, const pipeline::Verification& verification) {
  json["ok"] = verification.ok();
  json["samples"] = verification.samples;
  json["npu_cycles"] = verification.cycles;
  json["wholly_on_npu"] = verification.wholly;
  json["npu_parts"] = verification.delegates;
  json["npu_differs_from_tosa"] = verification.delegateMismatches;
  if (verification.quantized > 0)
    json["simulated_in_integers"] = {{"values", verification.quantized},
                                     {"in_integers", verification.inIntegers}};
  if (const pipeline::OffTosa& off = verification.offTosa; off.elements > 0) {
    json["ethos_n_off_tosa"] = {
        {"elements", off.elements}, {"different", off.different}, {"worst", off.worst}};
  }
  json["outputs"] = Json::array();
  for (const pipeline::OutputResult& output : verification.outputs) {
    json["outputs"].push_back({{"name", output.name},
                               {"elements", output.elements},
                               {"npu_differs_from_tosa", output.npuMismatches},
                               {"wrong_integers", output.wrongIntegers},
                               {"beyond_one_lsb", output.beyondOneLsb},
                               {"worst_lsb", finiteNumber(output.worstLsb)},
                               {"sqnr_db_ends", finiteNumber(output.ends.decibels())},
                               {"sqnr_db_simulated", finiteNumber(output.simulated.decibels())},
                               {"sqnr_db", finiteNumber(output.program.decibels())}});
  }
  json["layers"] = Json::array();
  for (const pipeline::LayerResult& layer : verification.layers) {
    json["layers"].push_back({{"value", layer.value},
                              {"op", layer.op},
                              {"from", layer.where},
                              {"elements", layer.elements},
                              {"npu_differs_from_tosa", layer.mismatches},
                              {"turns", layer.turns},
                              {"npu_turns", layer.npuIterations}});
  }
  json["accuracy"] = Json::array();
  for (const pipeline::AccuracyResult& value : verification.accuracy) {
    json["accuracy"].push_back(
        {{"value", value.value}, {"from", value.where}, {"sqnr_db", finiteNumber(value.sqnr.decibels())}});
  }
  json["cpu"] = Json::array();
  for (const pipeline::CpuResult& node : verification.cpu) {
    json["cpu"].push_back({{"op", node.op},
                           {"from", node.where},
                           {"elements", node.elements},
                           {"differs_from_executor", node.mismatches}});
  }
  json["findings"] = verification.findings;
}

}  // namespace

std::string verificationJson(const pipeline::Verification& verification) {
  Json json = document("verify");
  fill(json, verification);
  return documentText(json);
}

std::string verificationJson(std::span<const std::string> names,
                             std::span<const pipeline::Verification> verifications) {
  Json json = document("verify");
  json["ok"] = std::all_of(verifications.begin(), verifications.end(),
                           [](const pipeline::Verification& one) { return one.ok(); });
  json["methods"] = Json::array();
  for (size_t m = 0; m < names.size(); ++m) {
    Json method = {{"method", names[m]}};
    fill(method, verifications[m]);
    json["methods"].push_back(std::move(method));
  }
  return documentText(json);
}

namespace {

/// "" if infinite or NaN.
std::string figureText(double value) {
  return std::isfinite(value) ? fmt::format("{:.6g}", value) : "";
}

}  // namespace

std::string verificationCsv(std::span<const std::string> names,
                            std::span<const pipeline::Verification> verifications) {
  CsvTable table({"method", "output", "elements", "npu_differs_from_tosa", "beyond_one_lsb", "worst_lsb",
                  "sqnr_db_ends", "sqnr_db_simulated", "sqnr_db"});
  for (size_t m = 0; m < verifications.size(); ++m) {
    for (const pipeline::OutputResult& output : verifications[m].outputs) {
      table.add({m < names.size() ? names[m] : "", output.name, std::to_string(output.elements),
                 std::to_string(output.npuMismatches), std::to_string(output.beyondOneLsb),
                 figureText(output.worstLsb), figureText(output.ends.decibels()),
                 figureText(output.simulated.decibels()), figureText(output.program.decibels())});
    }
  }
  return table.str();
}

}  // namespace carina::report
