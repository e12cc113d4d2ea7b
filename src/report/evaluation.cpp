// SPDX-License-Identifier: Apache-2.0
#include "report/evaluation.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "report/document.hpp"
#include "report/text.hpp"

namespace carina::report {
namespace {

using evaluate::EngineSummary;
using evaluate::Evaluation;
using evaluate::Figure;

constexpr size_t kMaxFlipsShown = 10;

std::string figureText(const Figure& figure) {
  if (figure.unit == "dB") return decibelText(figure.value);
  if (std::isnan(figure.value)) return "-";
  if (figure.unit == "%") return fmt::format("{:.2f} %", figure.value);
  return fmt::format("{:.6f}", figure.value);
}

/// All figures that any engine has, in order of first appearance.
std::vector<std::string> figureNames(const std::vector<EngineSummary>& engines) {
  std::vector<std::string> names;
  for (const EngineSummary& engine : engines) {
    for (const Figure& figure : engine.figures) {
      if (std::find(names.begin(), names.end(), figure.name) == names.end()) names.push_back(figure.name);
    }
  }
  return names;
}

const Figure* find(const EngineSummary& engine, const std::string& name) {
  const auto it = std::find_if(engine.figures.begin(), engine.figures.end(),
                               [&](const Figure& figure) { return figure.name == name; });
  return it == engine.figures.end() ? nullptr : &*it;
}

std::string layerText(const std::string& layer, double limit) {
  return layer.empty() ? fmt::format("no layer below {:g} dB", limit) : layer;
}

}  // namespace

std::string evaluationText(const Evaluation& evaluation) {
  const evaluate::Summary& summary = evaluation.summary;
  const std::vector<EngineSummary> engines = summary.engines();
  const evaluate::RecordsHeader& header = evaluation.header;
  std::string text = fmt::format("{} on {}: {} samples", header.subject, header.data, summary.samples());
  if (header.shards > 1)
    text += fmt::format(" of {} (shard {}/{})", header.samples, header.shard + 1, header.shards);
  text += fmt::format(", {}\n\n", evaluate::taskName(header.task));
  std::vector<std::string> columns{""};
  for (const EngineSummary& engine : engines) columns.emplace_back(evaluate::engineName(engine.engine));
  TextTable table(columns);
  std::string intervals;
  for (const std::string& name : figureNames(engines)) {
    std::vector<std::string> row{name};
    std::vector<std::string> ends{"  95 %"};
    bool any = false;
    for (const EngineSummary& engine : engines) {
      const Figure* figure = find(engine, name);
      row.push_back(figure == nullptr ? "-" : figureText(*figure));
      const bool has = figure != nullptr && figure->interval;
      any = any || has;
      ends.push_back(has ? fmt::format("{:.2f}..{:.2f}", figure->interval->low, figure->interval->high) : "");
    }
    table.add(std::move(row));
    if (any) table.add(std::move(ends));
  }
  text += table.str();
  const auto ran = [&](evaluate::Engine wanted) {
    return std::any_of(engines.begin(), engines.end(), [&](const auto& one) { return one.engine == wanted; });
  };
  if (ran(evaluate::Engine::Tosa) && ran(evaluate::Engine::Npu)) {
    text += summary.npuDiffersFromTosa() == 0
                ? "NPU and TOSA agree bit for bit on all samples\n"
                : fmt::format("NPU and TOSA DIFFER on {} samples\n", summary.npuDiffersFromTosa());
  }
  if (header.npuCycles > 0) text += fmt::format("{} NPU cycles per inference\n", countText(header.npuCycles));
  if (header.task == evaluate::Task::Classify && ran(evaluate::Engine::Float)) {
    text += fmt::format("{} sample{} flipped: predicted class differs from float\n", summary.flips(),
                        summary.flips() == 1 ? "" : "s");
  }
  if (summary.flips() == 0) return text;
  TextTable flips(
      [&] {
        std::vector<std::string> names{"flipped", "first bad layer"};
        names.insert(names.end(), columns.begin() + 1, columns.end());
        return names;
      }(),
      2);
  for (size_t i = 0; i < std::min(summary.firstFlips().size(), kMaxFlipsShown); ++i) {
    const evaluate::Flip& flip = summary.firstFlips()[i];
    std::vector<std::string> row{flip.name, layerText(flip.firstBadLayer, header.badLayer)};
    for (const int64_t prediction : flip.predictions)
      row.push_back(prediction < 0 ? "-" : fmt::format("{}", prediction));
    flips.add(std::move(row));
  }
  text += "\n" + flips.str();
  if (summary.flips() > kMaxFlipsShown)
    text += fmt::format("and {} more\n", summary.flips() - kMaxFlipsShown);
  for (const auto& [layer, count] : summary.badLayers())
    text += fmt::format("first bad in {}: {}\n", count, layerText(layer, header.badLayer));
  return text;
}

std::string evaluationJson(const Evaluation& evaluation) {
  using Json = nlohmann::ordered_json;
  const evaluate::RecordsHeader& header = evaluation.header;
  Json json = document("evaluate");
  json["file"] = header.subject;
  json["data"] = header.data;
  json["task"] = evaluate::taskName(header.task);
  json["samples"] = evaluation.summary.samples();
  json["data_samples"] = header.samples;
  json["npu_cycles"] = header.npuCycles;
  json["npu_differs_from_tosa"] = evaluation.summary.npuDiffersFromTosa();
  json["flipped"] = evaluation.summary.flips();
  json["bad_layer_db"] = header.badLayer;
  json["engines"] = Json::array();
  for (const EngineSummary& engine : evaluation.summary.engines()) {
    Json figures = Json::array();
    for (const Figure& figure : engine.figures) {
      Json interval;
      if (figure.interval) interval = {figure.interval->low, figure.interval->high};
      figures.push_back({{"name", figure.name},
                         {"value", finiteNumber(figure.value)},
                         {"unit", figure.unit},
                         {"interval_95", std::move(interval)}});
    }
    json["engines"].push_back(
        {{"engine", evaluate::engineName(engine.engine)}, {"figures", std::move(figures)}});
  }
  json["flips"] = Json::array();
  for (const evaluate::Flip& flip : evaluation.summary.firstFlips()) {
    json["flips"].push_back({{"index", flip.index},
                             {"name", flip.name},
                             {"predictions", flip.predictions},
                             {"first_bad_layer", flip.firstBadLayer}});
  }
  json["bad_layers"] = Json::array();
  for (const auto& [layer, count] : evaluation.summary.badLayers())
    json["bad_layers"].push_back({{"layer", layer}, {"flips", count}});
  return documentText(json);
}

std::string evaluationCsv(const Evaluation& evaluation) {
  CsvTable table({"engine", "figure", "value", "unit", "low_95", "high_95"});
  for (const EngineSummary& engine : evaluation.summary.engines()) {
    for (const Figure& figure : engine.figures) {
      const auto number = [](double value) { return std::isnan(value) ? "" : fmt::format("{}", value); };
      table.add({evaluate::engineName(engine.engine), figure.name, number(figure.value), figure.unit,
                 figure.interval ? number(figure.interval->low) : "",
                 figure.interval ? number(figure.interval->high) : ""});
    }
  }
  return table.str();
}

}  // namespace carina::report
