// SPDX-License-Identifier: Apache-2.0
#include "report/text.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace carina::report {

std::string bytesText(int64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  if (bytes < 1024 * 1024) return fmt::format("{:.1f} KiB", static_cast<double>(bytes) / 1024.0);
  return fmt::format("{:.2f} MiB", static_cast<double>(bytes) / (1024.0 * 1024.0));
}

std::string countText(int64_t count) {
  std::string digits = std::to_string(count);
  const int64_t first = count < 0 ? 1 : 0;
  for (int64_t at = static_cast<int64_t>(digits.size()) - 3; at > first; at -= 3) {
    digits.insert(static_cast<size_t>(at), ",");
  }
  return digits;
}

std::string decibelText(double value) {
  if (std::isnan(value)) return "-";
  return std::isinf(value) ? "exact" : fmt::format("{:.1f} dB", value);
}

std::string percentText(double part, double whole) {
  return whole > 0 ? fmt::format("{:.1f} %", 100.0 * part / whole) : "-";
}

TextTable::TextTable(std::vector<std::string> header, size_t leftColumns) : leftColumns_(leftColumns) {
  rows_.push_back(std::move(header));
}

void TextTable::add(std::vector<std::string> row) {
  rows_.push_back(std::move(row));
}

std::string TextTable::str() const {
  std::vector<size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      if (i) line += "  ";
      line += i < leftColumns_ ? fmt::format("{:<{}}", row[i], widths[i])
                               : fmt::format("{:>{}}", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

void CsvTable::add(const std::vector<std::string>& row) {
  for (size_t i = 0; i < row.size(); ++i) {
    if (i > 0) text_ += ',';
    if (row[i].find_first_of(",\"\r\n") == std::string::npos) {
      text_ += row[i];
      continue;
    }
    text_ += '"';
    for (const char c : row[i]) text_ += c == '"' ? "\"\"" : std::string(1, c);
    text_ += '"';
  }
  text_ += '\n';
}

std::string listText(std::span<const std::string> names, size_t most) {
  std::string text = fmt::format("{}", fmt::join(names.first(std::min(most, names.size())), ", "));
  if (names.size() > most) text += fmt::format(" and {} more", names.size() - most);
  return text;
}

std::string markupEscaped(std::string_view text) {
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

}  // namespace carina::report
