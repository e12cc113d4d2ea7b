// SPDX-License-Identifier: Apache-2.0
// Human-readable numbers, and plain-text tables.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace carina::report {

std::string bytesText(int64_t bytes);                // "12.3 KiB"
std::string countText(int64_t count);                // "4,738,932"
std::string decibelText(double value);               // "41.3 dB", "exact", "-"
std::string percentText(double part, double whole);  // "45.2 %"; "-" if whole is 0
/// "add, cat and 4 more": at most `most` names.
std::string listText(std::span<const std::string> names, size_t most);
/// Escaped for attributes and text of HTML and of XML 1.0, which has no control characters.
std::string markupEscaped(std::string_view text);

/// Columns as wide as their widest cell; the first `leftColumns` are left-aligned, the others right-aligned.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header, size_t leftColumns = 1);
  void add(std::vector<std::string> row);
  std::string str() const;

 private:
  std::vector<std::vector<std::string>> rows_;
  size_t leftColumns_;
};

/// Comma-separated values (RFC 4180, but with lines ended by a newline alone).
class CsvTable {
 public:
  explicit CsvTable(const std::vector<std::string>& header) { add(header); }
  void add(const std::vector<std::string>& row);
  const std::string& str() const { return text_; }

 private:
  std::string text_;
};

}  // namespace carina::report
