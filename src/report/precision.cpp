// SPDX-License-Identifier: Apache-2.0
#include "report/precision.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "report/document.hpp"
#include "report/text.hpp"

namespace carina::report {
namespace {

using precision::AutoPrecision;
using precision::LayerChoice;
using precision::Row;

const Row& nearest(const AutoPrecision& found) {
  return *std::find_if(found.rows.begin(), found.rows.end(), [](const Row& row) { return row.chosen; });
}

std::string accuracyText(const Row& row) {
  return row.top1 ? fmt::format("{}, top-1 {:.1f} %", decibelText(row.decibels), *row.top1)
                  : decibelText(row.decibels);
}

std::string raisedText(const AutoPrecision& found) {
  constexpr size_t kMost = 12;
  std::vector<std::string> raised;
  for (const LayerChoice& layer : found.layers) {
    if (layer.raised) raised.push_back(fmt::format("{}", fmt::join(layer.nodes, "+")));
  }
  if (raised.empty() || raised.size() == found.layers.size()) return {};
  return fmt::format("16x8: {}\n", listText(raised, kMost));
}

}  // namespace

std::string precisionText(const AutoPrecision& found) {
  const bool labelled = found.labelled > 0;
  std::vector<std::string> header{"", "layers in 16x8", "SQNR", "cycles", "SRAM", "program"};
  if (labelled) header.insert(header.begin() + 3, "top-1");
  TextTable table(header, 2);
  for (const Row& row : found.rows) {
    std::vector<std::string> cells{row.chosen && found.build ? "*"
                                   : row.dominated           ? "-"
                                                             : "",
                                   row.name,
                                   decibelText(row.decibels),
                                   countText(row.cycles),
                                   bytesText(row.sram),
                                   bytesText(row.flash)};
    if (labelled) cells.insert(cells.begin() + 3, fmt::format("{:.1f} %", row.top1.value_or(0)));
    table.add(std::move(cells));
  }
  std::string text = table.str();
  text += fmt::format("*: chosen; -: another one is better; SQNR: simulated, {} calibration sample{}\n",
                      found.judged, found.judged == 1 ? "" : "s");
  if (const Row& row = nearest(found); row.program)
    text += fmt::format("{} as a program on the NPU: {}, {} sample{}\n", row.name, decibelText(*row.program),
                        found.proving, found.proving == 1 ? "" : "s");
  if (found.gap)
    text += fmt::format(
        "at most {:.1f} % more cycles than the best choice, according to the model of the search\n",
        100 * *found.gap);
  return text + raisedText(found);
}

std::string precisionCsv(const AutoPrecision& found) {
  CsvTable table({"program", "layers_in_16x8", "sqnr_db", "sqnr_db_npu", "top1_percent", "cycles",
                  "sram_bytes", "flash_bytes", "chosen", "beaten"});
  const auto number = [](const std::optional<double>& value) {
    return value ? fmt::format("{}", *value) : std::string();
  };
  for (const Row& row : found.rows) {
    table.add({row.name, fmt::format("{}", row.raised), fmt::format("{}", row.decibels), number(row.program),
               number(row.top1), fmt::format("{}", row.cycles), fmt::format("{}", row.sram),
               fmt::format("{}", row.flash), row.chosen ? "yes" : "no", row.dominated ? "yes" : "no"});
  }
  return table.str();
}

std::string precisionJson(const AutoPrecision& found, const precision::Goal& goal,
                          const pipeline::Options& options) {
  using Json = nlohmann::ordered_json;
  const auto orNull = [](const auto& value) { return value ? Json(*value) : Json(nullptr); };
  Json json = document("precision");
  json["model"] = options.model.filename().string();
  json["target"] = options.target;
  json["goal"] = Json::object();
  json["goal"]["min_sqnr_db"] = orNull(goal.minSqnr);
  json["goal"]["min_top1_percent"] = orNull(goal.minTop1);
  json["goal"]["max_cycles"] = orNull(goal.maxCycles);
  json["reached"] = found.build != nullptr;
  json["judged_samples"] = found.judged;
  json["labelled_samples"] = found.labelled;
  json["settings"] = found.settings;
  json["gap"] = orNull(found.gap);
  json["programs"] = Json::array();
  for (const Row& row : found.rows) {
    Json entry = Json::object();
    entry["name"] = row.name;
    entry["raised_layers"] = row.raised;
    entry["sqnr_db"] = finiteNumber(row.decibels);
    if (row.program) entry["program_sqnr_db"] = finiteNumber(*row.program);
    entry["top1_percent"] = orNull(row.top1);
    entry["cycles"] = row.cycles;
    entry["sram_bytes"] = row.sram;
    entry["program_bytes"] = row.flash;
    entry["chosen"] = row.chosen && found.build != nullptr;
    entry["dominated"] = row.dominated;
    json["programs"].push_back(std::move(entry));
  }
  json["layers"] = Json::array();
  for (const LayerChoice& layer : found.layers) {
    Json entry = Json::object();
    entry["nodes"] = layer.nodes;
    entry["module"] = layer.modulePath;
    entry["precision"] = layer.raised ? "int16x8" : "int8";
    entry["sqnr_db_alone"] = finiteNumber(layer.alone);
    entry["noise_share"] = finiteNumber(layer.gained);
    entry["cycles"] = layer.cycles;
    json["layers"].push_back(std::move(entry));
  }
  return documentText(json);
}

std::string precisionComment(const AutoPrecision& found, const pipeline::Options& options) {
  const Row& row = nearest(found);
  return fmt::format("{} for {}, chosen by --auto-precision: {}, {} cycles",
                     options.model.filename().string(), options.target, accuracyText(row),
                     countText(row.cycles));
}

Diagnostic precisionMiss(const AutoPrecision& found, const precision::Goal& goal) {
  const auto says = [](const Row& row) {
    return fmt::format("{} ({}) for {} cycles", accuracyText(row), row.name, countText(row.cycles));
  };
  const auto isMore = [&](const Row& a, const Row& b) {
    return goal.minTop1 ? a.top1.value_or(0) < b.top1.value_or(0) : a.decibels < b.decibels;
  };
  std::string text = "no choice of precision reaches the goal; the most accurate has " +
                     says(*std::max_element(found.rows.begin(), found.rows.end(), isMore));
  if (goal.maxCycles) {
    const auto isCheap = [&](const Row& row) { return row.cycles <= *goal.maxCycles; };
    text += std::any_of(found.rows.begin(), found.rows.end(), isCheap)
                ? ", within --max-cycles " + says(nearest(found))
                : ", the cheapest " + says(found.rows.front());
  }
  return {text, "lower the goal, or choose another target or memory mode", "", "--auto-precision",
          Code::None};
}

}  // namespace carina::report
