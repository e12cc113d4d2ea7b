// SPDX-License-Identifier: Apache-2.0
#include "report/gates.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace carina::report {
namespace {

/// In attributes and text of XML 1.0, which has no control characters.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return result;
}

}  // namespace

std::string gateText(const pipeline::GateResult& result) {
  return fmt::format("{}: {} {}: found {}", result.subject, result.gate, result.limit, result.found);
}

std::string junitText(std::string_view suite, std::span<const pipeline::GateResult> results) {
  const auto missed = std::count_if(results.begin(), results.end(), [](const auto& r) { return !r.passed; });
  const std::string counts = fmt::format(R"(tests="{}" failures="{}" errors="0")", results.size(), missed);
  std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  text += fmt::format("<testsuites {}>\n  <testsuite name=\"{}\" {}>\n", counts, escaped(suite), counts);
  for (const pipeline::GateResult& result : results) {
    text += fmt::format("    <testcase classname=\"{}\" name=\"{}\"", escaped(result.subject),
                        escaped(result.gate.substr(result.gate.find_first_not_of('-'))));
    if (result.passed) {
      text +=
          fmt::format(">\n      <system-out>{}</system-out>\n    </testcase>\n", escaped(gateText(result)));
    } else {
      text += fmt::format(">\n      <failure message=\"{}\"/>\n    </testcase>\n", escaped(gateText(result)));
    }
  }
  return text + "  </testsuite>\n</testsuites>\n";
}

}  // namespace carina::report
