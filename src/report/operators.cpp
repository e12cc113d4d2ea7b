// SPDX-License-Identifier: Apache-2.0
#include "report/operators.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "report/document.hpp"
#include "report/text.hpp"

namespace carina::report {
namespace {

using pipeline::OperatorPlace;
using pipeline::Place;

std::string_view placeName(Place place) {
  switch (place) {
    case Place::Npu:
      return "NPU";
    case Place::Cpu:
      return "CPU";
    case Place::Both:
      return "NPU+CPU";
    case Place::Refused:
      return "refused";
    case Place::Unknown:
      return "?";
    case Place::Nowhere:
      break;
  }
  return "-";
}

std::string_view quantizationName(pipeline::Quantization quantization) {
  switch (quantization) {
    case pipeline::Quantization::Int8:
      return "int8";
    case pipeline::Quantization::Int16x8:
      return "int16x8";
    default:
      return "none";
  }
}

std::string_view placeKey(Place place) {
  switch (place) {
    case Place::Npu:
      return "npu";
    case Place::Cpu:
      return "cpu";
    case Place::Both:
      return "both";
    case Place::Refused:
      return "refused";
    case Place::Unknown:
      return "unknown";
    case Place::Nowhere:
      break;
  }
  return "nowhere";
}

/// The distinct reasons. If an operator was decomposed and only some of the resulting operators were refused
/// for a reason, with their names.
std::vector<std::string> reasonsOf(const OperatorPlace& op) {
  std::vector<std::pair<std::string, std::vector<std::string>>> refused;  // reason with remedy, operators
  for (const partition::Refusal& refusal : op.refusals) {
    const std::string text =
        refusal.remedy.empty() ? refusal.reason : fmt::format("{} -> {}", refusal.reason, refusal.remedy);
    auto known =
        std::find_if(refused.begin(), refused.end(), [&](const auto& one) { return one.first == text; });
    if (known == refused.end()) known = refused.insert(refused.end(), {text, {}});
    if (std::find(known->second.begin(), known->second.end(), refusal.op) == known->second.end())
      known->second.push_back(refusal.op);
  }
  std::vector<std::string> reasons;
  for (const std::string& missing : op.missing) {
    const std::string text = "no CPU kernel: " + missing;
    if (std::find(reasons.begin(), reasons.end(), text) == reasons.end()) reasons.push_back(text);
  }
  for (const auto& [text, operators] : refused) {
    const bool whole = operators == std::vector<std::string>{op.op} ||
                       (refused.size() == 1 && op.place == Place::Cpu && operators.size() > 1);
    reasons.push_back(whole ? text : fmt::format("{}: {}", fmt::join(operators, ", "), text));
  }
  return reasons;
}

}  // namespace

std::string operatorsText(const pipeline::OperatorList& list) {
  TextTable table({"operator", "name", "module", "runs on", "CPU cycles"}, 4);
  std::string reasons;
  for (const OperatorPlace& op : list.operators) {
    table.add({op.op, op.node, op.modulePath, std::string(placeName(op.place)),
               op.cpuCycles > 0 ? countText(op.cpuCycles) : ""});
    for (const std::string& reason : reasonsOf(op)) {
      reasons +=
          fmt::format("  {}{}: {}\n", op.node, op.source.empty() ? "" : " (" + op.source + ")", reason);
    }
  }
  std::string text = table.str();
  const bool refused = !list.problems.empty();
  if (!reasons.empty())
    text += (refused ? "\nwhy the network is refused, and what would change it\n"
                     : "\nwhy not on the NPU, and what would change it\n") +
            reasons;
  if (refused) {
    return text + fmt::format("\n{}, {}: {} operators, {} of them refused: the network does not compile\n",
                              list.target, quantizationName(list.quantization), list.operators.size(),
                              list.count(Place::Refused));
  }
  text += fmt::format(
      "\n{}, {}: {} operators, {} on the NPU in {} part{}, {} on the CPU, {} on both, {} with nothing left "
      "to compute\n",
      list.target, quantizationName(list.quantization), list.operators.size(), list.count(Place::Npu),
      list.parts, list.parts == 1 ? "" : "s", list.count(Place::Cpu), list.count(Place::Both),
      list.count(Place::Nowhere));
  text +=
      fmt::format("CPU: about {} cycles, {} of them for {} conversion{} (quantize, dequantize, integers)\n",
                  countText(list.cpuCycles()), countText(list.conversionCycles), list.conversions,
                  list.conversions == 1 ? "" : "s");
  if (list.parts > 0)
    text += fmt::format("layout changes at the borders of NPU parts: {}\n", list.layoutChanges);
  const auto missing = std::count_if(list.operators.begin(), list.operators.end(),
                                     [](const auto& op) { return !op.missing.empty(); });
  if (missing > 0)
    text += fmt::format("{} operators have no kernel: the network does not compile\n", missing);
  return text;
}

std::string operatorsJson(const pipeline::OperatorList& list) {
  nlohmann::ordered_json json = document("ops");
  json["target"] = list.target;
  json["quantize"] = quantizationName(list.quantization);
  json["wholly_on_npu"] = list.wholly;
  json["npu_parts"] = list.parts;
  json["layout_changes"] = list.layoutChanges;
  json["cpu_cycles"] = list.cpuCycles();
  json["conversions"] = {{"count", list.conversions}, {"cpu_cycles", list.conversionCycles}};
  json["problems"] = nlohmann::ordered_json::array();
  for (const Diagnostic& problem : list.problems)
    json["problems"].push_back(
        {{"place", problem.place}, {"message", problem.message}, {"remedy", problem.remedy}});
  json["operators"] = nlohmann::ordered_json::array();
  for (const OperatorPlace& op : list.operators) {
    nlohmann::ordered_json entry = nlohmann::ordered_json::object();
    entry["op"] = op.op;
    entry["name"] = op.node;
    entry["module"] = op.modulePath;
    entry["source"] = op.source;
    entry["runs_on"] = placeKey(op.place);
    entry["refusals"] = nlohmann::ordered_json::array();
    for (const partition::Refusal& refusal : op.refusals) {
      entry["refusals"].push_back({{"op", refusal.op},
                                   {"code", codeId(refusal.code)},
                                   {"reason", refusal.reason},
                                   {"remedy", refusal.remedy}});
    }
    entry["kernels"] = op.kernels;
    entry["missing_kernels"] = op.missing;
    entry["cpu_cycles"] = op.cpuCycles;
    json["operators"].push_back(std::move(entry));
  }
  return documentText(json);
}

std::string operatorsCsv(const pipeline::OperatorList& list) {
  CsvTable table({"operator", "name", "module", "source", "runs_on", "cpu_cycles", "reasons"});
  for (const OperatorPlace& op : list.operators) {
    table.add({op.op, op.node, op.modulePath, op.source, std::string(placeKey(op.place)),
               fmt::format("{}", op.cpuCycles), fmt::format("{}", fmt::join(reasonsOf(op), "; "))});
  }
  return table.str();
}

std::string operatorTableMarkdown(const pipeline::OperatorTable& table) {
  const auto cell = [](const pipeline::TableCell& one) {
    return one.place == Place::Nowhere ? "folded" : std::string(placeName(one.place));
  };
  const auto familyOf = [](const std::string& target) { return target.substr(0, target.rfind('-')); };
  std::string text =
      "# Operators\n\n"
      "Where each operator runs, determined by placing a small network with it; `make operators` writes this "
      "page. NPU: entirely in a\n"
      "delegate. CPU: by the runtime's kernels in the same program, in float between dequantize and "
      "quantize. NPU+CPU: partly on\n"
      "each. folded: nothing is left to compute. The last column: whether "
      "`--target cpu` runs it in\n"
      "float. Limits by shape are in the second table; `carina ops` reports them for your network.\n\n";
  text += "| operator |";
  std::string rule = "|---|";
  for (const auto& configuration : table.configurations) {
    text +=
        fmt::format(" {} {} |", familyOf(configuration.target), quantizationName(configuration.quantization));
    rule += "---|";
  }
  text += " cpu float |\n" + rule + "---|\n";
  for (const pipeline::TableRow& row : table.rows) {
    text += fmt::format("| {}{} |", row.op, row.note.empty() ? "" : " (" + row.note + ")");
    for (const pipeline::TableCell& one : row.cells) text += " " + cell(one) + " |";
    text += row.cpu ? " yes |\n" : " no |\n";
  }
  text += "\n## Why not on the NPU\n\n| operator | where | reason |\n|---|---|---|\n";
  for (const pipeline::TableRow& row : table.rows) {
    std::vector<std::pair<std::string, std::string>> reasons;  // reason, where
    for (size_t i = 0; i < row.cells.size(); ++i) {
      if (row.cells[i].reason.empty()) continue;
      const auto& configuration = table.configurations[i];
      const std::string where =
          fmt::format("{} {}", familyOf(configuration.target), quantizationName(configuration.quantization));
      const auto known = std::find_if(reasons.begin(), reasons.end(),
                                      [&](const auto& one) { return one.first == row.cells[i].reason; });
      if (known == reasons.end()) {
        reasons.emplace_back(row.cells[i].reason, where);
      } else {
        known->second += ", " + where;
      }
    }
    const bool everywhere =
        reasons.size() == 1 &&
        std::none_of(row.cells.begin(), row.cells.end(), [](const auto& one) { return one.reason.empty(); });
    if (everywhere) reasons.front().second = "everywhere";
    for (const auto& [reason, where] : reasons)
      text += fmt::format("| {}{} | {} | {} |\n", row.op, row.note.empty() ? "" : " (" + row.note + ")",
                          where, reason);
  }
  return text;
}

}  // namespace carina::report
