// SPDX-License-Identifier: Apache-2.0
#include "report/diff.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "report/document.hpp"
#include "report/markdown.hpp"
#include "report/text.hpp"

namespace carina::report {
namespace {

using Json = nlohmann::ordered_json;
using pipeline::Ledger;
using pipeline::LedgerDiff;
using pipeline::LedgerLayer;

std::string signedCount(int64_t value) {
  return value > 0 ? "+" + countText(value) : value < 0 ? "-" + countText(-value) : "0";
}

template <typename T>
std::string valueText(const std::optional<T>& value) {
  if (!value) return "-";
  if constexpr (std::is_same_v<T, bool>) {
    return *value ? "yes" : "no";
  } else if constexpr (std::is_same_v<T, double>) {
    return decibelText(*value);
  } else {
    return countText(*value);
  }
}

/// "+1,024 (+12.5 %)", "-3.1 dB", "" if one side is unknown or both are equal.
template <typename T>
std::string changeText(const std::optional<T>& a, const std::optional<T>& b) {
  if (!a || !b || *a == *b) return "";
  if constexpr (std::is_same_v<T, bool>) {
    return "changed";
  } else if constexpr (std::is_same_v<T, double>) {
    return fmt::format("{:+.1f} dB", *b - *a);
  } else {
    std::string change = signedCount(*b - *a);
    if (*a == 0) return change;
    const double percent = 100.0 * static_cast<double>(*b - *a) / static_cast<double>(*a);
    return change + fmt::format(" ({:+.1f} %)", percent);
  }
}

std::string millisecondsText(const std::optional<double>& value) {
  return value ? fmt::format("{:.3f}", *value) : "-";
}

std::string millisecondsChange(const std::optional<double>& a, const std::optional<double>& b) {
  if (!a || !b || *a == *b) return "";
  const std::string change = fmt::format("{:+.3f}", *b - *a);
  return *a > 0 ? change + fmt::format(" ({:+.1f} %)", 100 * (*b - *a) / *a) : change;
}

struct Total {
  std::string what, a, b, change;
};

std::vector<Total> totalsOf(const LedgerDiff& diff) {
  std::vector<Total> rows;
  const auto text = [&](const char* what, const std::string& a, const std::string& b) {
    if (a != b) rows.push_back({what, a.empty() ? "-" : a, b.empty() ? "-" : b, "changed"});
  };
  const auto number = [&](const char* what, const auto& a, const auto& b) {
    if (a || b) rows.push_back({what, valueText(a), valueText(b), changeText(a, b)});
  };
  const Ledger &a = diff.a, &b = diff.b;
  text("target", a.target, b.target);
  text("system config", a.systemConfig, b.systemConfig);
  text("memory mode", a.memoryMode, b.memoryMode);
  number("NPU cycles", a.cycles, b.cycles);
  if (a.inferenceMs || b.inferenceMs) {
    rows.push_back({"inference ms", millisecondsText(a.inferenceMs), millisecondsText(b.inferenceMs),
                    millisecondsChange(a.inferenceMs, b.inferenceMs)});
  }
  number("MACs", a.macs, b.macs);
  number("arena bytes", a.arenaBytes, b.arenaBytes);
  number("cache bytes", a.cacheBytes, b.cacheBytes);
  number("constant bytes", a.constantBytes, b.constantBytes);
  number("command bytes", a.commandBytes, b.commandBytes);
  number("program bytes", a.fileBytes, b.fileBytes);
  number("SQNR", a.sqnr, b.sqnr);
  number("entirely on the NPU", a.wholly, b.wholly);
  return rows;
}

/// The layer to show: that of b, if there is one.
const LedgerLayer& shown(const LedgerDiff::Pair& pair) {
  return pair.b != nullptr ? *pair.b : *pair.a;
}

std::string nameOf(const LedgerDiff::Pair& pair) {
  const LedgerLayer& layer = shown(pair);
  if (!layer.named()) return layer.what.empty() ? layer.kind : layer.what;
  if (pair.a != nullptr && pair.b != nullptr && pair.a->named() && pair.a->name != layer.name)
    return pair.a->name + " -> " + layer.name;
  return layer.name;
}

std::string placeOf(const LedgerDiff::Pair& pair) {
  const auto place = [](const LedgerLayer& layer) { return layer.onNpu ? "NPU" : "CPU"; };
  if (pair.a == nullptr) return fmt::format("new, {}", place(*pair.b));
  if (pair.b == nullptr) return fmt::format("gone, {}", place(*pair.a));
  if (pair.a->onNpu == pair.b->onNpu) return place(*pair.b);
  return fmt::format("{} -> {}", place(*pair.a), place(*pair.b));
}

std::string kindOf(const LedgerDiff::Pair& pair) {
  const std::string& kind = shown(pair).kind;
  if (pair.a == nullptr || pair.b == nullptr || pair.a->kind == kind) return kind;
  return pair.a->kind + " -> " + kind;
}

template <typename T>
std::optional<T> of(const LedgerLayer* layer, std::optional<T> LedgerLayer::*member) {
  return layer == nullptr ? std::nullopt : layer->*member;
}

/// Cells of a layer, for text and Markdown.
std::vector<std::string> cellsOf(const LedgerDiff::Pair& pair) {
  const auto cycles = std::pair(of(pair.a, &LedgerLayer::cycles), of(pair.b, &LedgerLayer::cycles));
  const auto bytes = std::pair(of(pair.a, &LedgerLayer::bytes), of(pair.b, &LedgerLayer::bytes));
  const auto sqnr = std::pair(of(pair.a, &LedgerLayer::sqnr), of(pair.b, &LedgerLayer::sqnr));
  return {nameOf(pair),
          shown(pair).modulePath,
          kindOf(pair),
          placeOf(pair),
          valueText(cycles.first),
          valueText(cycles.second),
          changeText(cycles.first, cycles.second),
          changeText(bytes.first, bytes.second),
          valueText(sqnr.second),
          changeText(sqnr.first, sqnr.second)};
}

const std::vector<std::string> kLayerHeader{"layer",    "module", "kind",    "place",  "cycles A",
                                            "cycles B", "change", "traffic", "SQNR B", "SQNR change"};
constexpr size_t kLeftColumns = 4;

std::string noteOf(const LedgerDiff& diff) {
  return diff.byName ? ""
                     : "operations are matched by kind and shape: a finished program has no layer names "
                       "(compare reports or profiles of the networks for these)\n";
}

template <typename T>
Json jsonOf(const std::optional<T>& value) {
  if (!value) return {};
  if constexpr (std::is_same_v<T, double>) {
    return finiteNumber(*value);
  } else {
    return *value;
  }
}

Json sideJson(const Ledger& ledger) {
  return {{"file", ledger.file},
          {"target", ledger.target},
          {"system_config", ledger.systemConfig},
          {"memory_mode", ledger.memoryMode},
          {"wholly_on_npu", jsonOf(ledger.wholly)},
          {"cycles", jsonOf(ledger.cycles)},
          {"inference_ms", jsonOf(ledger.inferenceMs)},
          {"macs", jsonOf(ledger.macs)},
          {"arena_bytes", jsonOf(ledger.arenaBytes)},
          {"cache_bytes", jsonOf(ledger.cacheBytes)},
          {"constant_bytes", jsonOf(ledger.constantBytes)},
          {"command_bytes", jsonOf(ledger.commandBytes)},
          {"program_bytes", jsonOf(ledger.fileBytes)},
          {"sqnr_db", jsonOf(ledger.sqnr)}};
}

Json layerSide(const LedgerLayer* layer) {
  if (layer == nullptr) return {};
  return {{"name", layer->name},
          {"kind", layer->kind},
          {"place", layer->onNpu ? "npu" : "cpu"},
          {"cycles", jsonOf(layer->cycles)},
          {"bytes", jsonOf(layer->bytes)},
          {"sqnr_db", jsonOf(layer->sqnr)}};
}

size_t changedLayers(const LedgerDiff& diff) {
  size_t count = 0;
  for (const LedgerDiff::Pair& pair : diff.layers) count += pair.changed();
  return count;
}

/// "3 of 12 layers differ"
std::string verdict(const LedgerDiff& diff) {
  const size_t changed = changedLayers(diff);
  return changed == 0 ? fmt::format("all {} layers are equal\n", diff.layers.size())
                      : fmt::format("{} of {} layers differ\n", changed, diff.layers.size());
}

}  // namespace

std::string diffText(const LedgerDiff& diff, bool allLayers) {
  std::string text = fmt::format("A  {}\nB  {}\n\n", diff.a.file, diff.b.file);
  TextTable totals({"", "A", "B", "change"});
  for (const Total& row : totalsOf(diff)) totals.add({row.what, row.a, row.b, row.change});
  text += totals.str() + "\n" + verdict(diff) + noteOf(diff);
  TextTable layers(kLayerHeader, kLeftColumns);
  bool any = false;
  for (const LedgerDiff::Pair& pair : diff.layers) {
    if (!allLayers && !pair.changed()) continue;
    layers.add(cellsOf(pair));
    any = true;
  }
  return any ? text + layers.str() : text;
}

std::string diffMarkdown(const LedgerDiff& diff, bool allLayers) {
  std::string text = markdownRow({"", diff.a.file, diff.b.file, "change"}) + markdownRule(4, 1);
  for (const Total& row : totalsOf(diff)) text += markdownRow({row.what, row.a, row.b, row.change});
  text += "\n" + verdict(diff) + noteOf(diff);
  std::string rows;
  for (const LedgerDiff::Pair& pair : diff.layers) {
    if (allLayers || pair.changed()) rows += markdownRow(cellsOf(pair));
  }
  if (rows.empty()) return text;
  return text + "\n" + markdownRow(kLayerHeader) + markdownRule(kLayerHeader.size(), kLeftColumns) + rows;
}

std::string diffJson(const LedgerDiff& diff) {
  Json json = document("diff");
  json["a"] = sideJson(diff.a);
  json["b"] = sideJson(diff.b);
  json["matched_by_name"] = diff.byName;
  json["changed_layers"] = changedLayers(diff);
  json["layers"] = Json::array();
  for (const LedgerDiff::Pair& pair : diff.layers) {
    json["layers"].push_back({{"module", shown(pair).modulePath},
                              {"source", shown(pair).source},
                              {"changed", pair.changed()},
                              {"a", layerSide(pair.a)},
                              {"b", layerSide(pair.b)}});
  }
  return documentText(json);
}

std::string diffCsv(const LedgerDiff& diff) {
  CsvTable table({"layer", "module", "source", "kind", "place_a", "place_b", "cycles_a", "cycles_b",
                  "bytes_a", "bytes_b", "sqnr_db_a", "sqnr_db_b"});
  const auto place = [](const LedgerLayer* layer) {
    return layer == nullptr ? "" : layer->onNpu ? "npu" : "cpu";
  };
  const auto number = [](const auto& value) { return value ? fmt::format("{}", *value) : std::string(); };
  for (const LedgerDiff::Pair& pair : diff.layers) {
    const LedgerLayer& layer = shown(pair);
    table.add({layer.named() ? layer.name : layer.what, layer.modulePath, layer.source, layer.kind,
               place(pair.a), place(pair.b), number(of(pair.a, &LedgerLayer::cycles)),
               number(of(pair.b, &LedgerLayer::cycles)), number(of(pair.a, &LedgerLayer::bytes)),
               number(of(pair.b, &LedgerLayer::bytes)), number(of(pair.a, &LedgerLayer::sqnr)),
               number(of(pair.b, &LedgerLayer::sqnr))});
  }
  return table.str();
}

}  // namespace carina::report
