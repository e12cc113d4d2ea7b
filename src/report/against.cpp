// SPDX-License-Identifier: Apache-2.0
#include "report/against.hpp"

#include <fmt/ranges.h>

#include "report/text.hpp"

namespace carina::report {
namespace {

std::string firstText(const pipeline::FirstDifference& first) {
  std::string text;
  if (first.op.empty()) {
    text += "  every value of the graph appears: the results lie elsewhere than the program says\n";
  } else {
    text += fmt::format("  first operation whose value never appears: {} {}\n", first.op,
                        first.value.empty() ? "(unnamed)" : "%" + first.value);
    if (!first.behind.empty()) text += fmt::format("  and behind it: {}\n", fmt::join(first.behind, ", "));
  }
  if (!first.npu.empty()) text += fmt::format("  NPU operation at {:#x}: {}\n", first.offset, first.npu);
  const std::string writes = first.writtenAt == first.offset || first.npu.empty()
                                 ? "  it writes"
                                 : fmt::format("  its chain writes at {:#x}", first.writtenAt);
  if (!first.closest.empty()) {
    text += fmt::format("{}, beside {}: {} of {} elements differ, first at {}: {} instead of {}\n", writes,
                        first.closest, countText(first.mismatches), countText(first.elements),
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
    if (part.first) text += fmt::format("\n{} leaves {}\n{}", part.part, part.graph, firstText(*part.first));
    if (part.findings.empty()) continue;
    text += fmt::format("\nthe checker finds in {}\n", part.part);
    for (const std::string& finding : part.findings) text += fmt::format("  {}\n", finding);
  }
  return text;
}

}  // namespace carina::report
