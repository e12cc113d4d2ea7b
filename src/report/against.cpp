// SPDX-License-Identifier: Apache-2.0
#include "report/against.hpp"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "report/document.hpp"
#include "report/text.hpp"

namespace carina::report {
namespace {

std::string firstText(const pipeline::FirstDifference& first) {
  std::string text;
  if (first.op.empty() && !first.value.empty()) {
    text += fmt::format("  tensor '{}'\n", first.value);
  } else if (first.op.empty()) {
    text += "  every value of the graph appears: the results are not where the program says\n";
  } else {
    text += fmt::format("  first operation whose value never appears: {} {}\n", first.op,
                        first.value.empty() ? "(unnamed)" : "%" + first.value);
    if (!first.behind.empty()) text += fmt::format("  and after it: {}\n", fmt::join(first.behind, ", "));
  }
  if (!first.npu.empty()) text += fmt::format("  NPU operation at {:#x}: {}\n", first.offset, first.npu);
  const std::string writes = first.writtenAt == first.offset || first.npu.empty()
                                 ? "  it writes"
                                 : fmt::format("  its chain writes at {:#x}", first.writtenAt);
  if (!first.closest.empty()) {
    text += fmt::format("{}, compared with {}: {} of {} elements differ, first at {}: {} instead of {}\n",
                        writes, first.closest, countText(first.mismatches), countText(first.elements),
                        first.firstIndex, first.actual, first.expected);
  } else if (first.writtenAt != first.offset) {
    text += writes + "\n";
  }
  return text;
}

}  // namespace

std::string againstText(const pipeline::Against& against) {
  TextTable table({"NPU part", "graph", "samples", "elements", "program = graph", "values seen"}, 2);
  for (const pipeline::PartAgainst& part : against.parts) {
    table.add({part.part, part.graph, countText(static_cast<int64_t>(part.samples)), countText(part.elements),
               part.mismatches == 0 ? "yes" : fmt::format("{} differ", countText(part.mismatches)),
               fmt::format("{} of {}", part.seen, part.values)});
  }
  std::string text = table.str();
  for (const pipeline::PartAgainst& part : against.parts) {
    if (part.first)
      text += fmt::format("\n{} differs from {}\n{}", part.part, part.graph, firstText(*part.first));
    if (part.findings.empty()) continue;
    text += fmt::format("\nthe checker's findings in {}\n", part.part);
    for (const std::string& finding : part.findings) text += fmt::format("  {}\n", finding);
  }
  return text;
}

std::string againstJson(const pipeline::Against& against) {
  using Json = nlohmann::ordered_json;
  Json json = document("against");
  json["ok"] = against.ok();
  json["parts"] = Json::array();
  for (const pipeline::PartAgainst& part : against.parts) {
    Json entry = {{"part", part.part},         {"graph", part.graph},       {"samples", part.samples},
                  {"elements", part.elements}, {"differ", part.mismatches}, {"values", part.values},
                  {"values_seen", part.seen},  {"findings", part.findings}};
    if (part.first) {
      const pipeline::FirstDifference& first = *part.first;
      entry["first_difference"] = {{"operator", first.op},       {"value", first.value},
                                   {"behind", first.behind},     {"npu_operation", first.npu},
                                   {"offset", first.offset},     {"written_at", first.writtenAt},
                                   {"closest", first.closest},   {"elements", first.elements},
                                   {"differ", first.mismatches}, {"first_index", first.firstIndex},
                                   {"expected", first.expected}, {"actual", first.actual}};
    }
    json["parts"].push_back(std::move(entry));
  }
  return documentText(json);
}

std::string againstCsv(const pipeline::Against& against) {
  CsvTable table({"part", "graph", "samples", "elements", "differ", "values", "values_seen"});
  for (const pipeline::PartAgainst& part : against.parts) {
    table.add({part.part, part.graph, std::to_string(part.samples), std::to_string(part.elements),
               std::to_string(part.mismatches), std::to_string(part.values), std::to_string(part.seen)});
  }
  return table.str();
}

}  // namespace carina::report
