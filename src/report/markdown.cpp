// SPDX-License-Identifier: Apache-2.0
#include "report/markdown.hpp"

namespace carina::report {

std::string inMarkdown(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '|' || c == '\\' || c == '`' || c == '*' || c == '_' || c == '<') result += '\\';
    result += c == '\n' || c == '\r' ? ' ' : c;
  }
  return result;
}

std::string markdownRow(const std::vector<std::string>& cells) {
  std::string text = "|";
  for (const std::string& cell : cells) text += " " + inMarkdown(cell) + " |";
  return text + "\n";
}

std::string markdownRule(size_t columns, size_t left) {
  std::string text = "|";
  for (size_t i = 0; i < columns; ++i) text += i < left ? "---|" : "---:|";
  return text + "\n";
}

}  // namespace carina::report
