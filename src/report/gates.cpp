// SPDX-License-Identifier: Apache-2.0
#include "report/gates.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "report/text.hpp"

namespace carina::report {

std::string gateText(const pipeline::GateResult& result) {
  return fmt::format("{}: {} {}: found {}", result.subject, result.gate, result.limit, result.found);
}

std::string junitText(std::string_view suite, std::span<const pipeline::GateResult> results) {
  const auto missed = std::count_if(results.begin(), results.end(), [](const auto& r) { return !r.passed; });
  const std::string counts = fmt::format(R"(tests="{}" failures="{}" errors="0")", results.size(), missed);
  std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  text +=
      fmt::format("<testsuites {}>\n  <testsuite name=\"{}\" {}>\n", counts, markupEscaped(suite), counts);
  for (const pipeline::GateResult& result : results) {
    text += fmt::format("    <testcase classname=\"{}\" name=\"{}\"", markupEscaped(result.subject),
                        markupEscaped(result.gate.substr(result.gate.find_first_not_of('-'))));
    if (result.passed) {
      text += fmt::format(">\n      <system-out>{}</system-out>\n    </testcase>\n",
                          markupEscaped(gateText(result)));
    } else {
      text += fmt::format(">\n      <failure message=\"{}\"/>\n    </testcase>\n",
                          markupEscaped(gateText(result)));
    }
  }
  return text + "  </testsuite>\n</testsuites>\n";
}

}  // namespace carina::report
