// SPDX-License-Identifier: Apache-2.0
// Builds SentencePiece files field by field.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

namespace carina::tokenizer::file {

inline std::string number(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
inline std::string integer(uint32_t field, uint64_t value) {
  return number(field << 3) + number(value);
}
inline std::string text(uint32_t field, const std::string& value) {
  return number(field << 3 | 2) + number(value.size()) + value;
}
inline std::string piece(const std::string& name, float score, int kind = 1) {
  std::string real(4, '\0');
  std::memcpy(real.data(), &score, 4);
  return text(1, text(1, name) + number(2 << 3 | 5) + real + integer(3, static_cast<uint64_t>(kind)));
}
inline const std::string kUnknown = piece("<unk>", 0, 2);

/// No dummy prefix, whitespace unchanged.
inline const std::string kPlain = text(3, integer(3, 0) + integer(4, 0) + integer(5, 0));

}  // namespace carina::tokenizer::file
