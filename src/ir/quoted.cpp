// SPDX-License-Identifier: Apache-2.0
#include "ir/quoted.hpp"

#include <charconv>

namespace carina::ir {

std::string quoted(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += "\\x";
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::optional<std::string> unquoted(std::string_view inner) {
  std::string out;
  for (size_t i = 0; i < inner.size(); ++i) {
    if (inner[i] != '\\') {
      out += inner[i];
      continue;
    }
    if (++i == inner.size()) return std::nullopt;
    if (inner[i] == '"' || inner[i] == '\\') {
      out += inner[i];
    } else if (inner[i] == 'n') {
      out += '\n';
    } else if (inner[i] == 'x' && inner.size() - i > 2) {
      unsigned byte = 0;
      const char* digits = inner.data() + i + 1;
      const auto [end, error] = std::from_chars(digits, digits + 2, byte, 16);
      if (error != std::errc() || end != digits + 2) return std::nullopt;
      out += static_cast<char>(byte);
      i += 2;
    } else {
      return std::nullopt;
    }
  }
  return out;
}

}  // namespace carina::ir
