// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/character_map.hpp"

#include <cstring>

#include "base/damaged.hpp"

namespace carina::tokenizer {
namespace {

// A unit of the double array: a label in the low byte, offset of its children, whether one is a value.
bool hasValue(uint32_t unit) {
  return (unit >> 8 & 1) != 0;
}
uint32_t valueOf(uint32_t unit) {
  return unit & 0x7fffffffu;
}
/// Units of values have the highest bit set, so that they match no byte.
uint32_t labelOf(uint32_t unit) {
  return unit & 0x800000ffu;
}
uint32_t offsetOf(uint32_t unit) {
  return (unit >> 10) << ((unit & (1u << 9)) >> 6);
}

}  // namespace

Result<CharacterMap> CharacterMap::parse(std::string_view blob) {
  CharacterMap map;
  if (blob.empty()) return map;
  uint32_t bytes = 0;
  if (blob.size() > 4) std::memcpy(&bytes, blob.data(), 4);
  if (bytes == 0 || bytes % 4 != 0 || bytes > blob.size() - 4 || blob.back() != '\0') {
    return fail(Code::Damaged, "has inconsistent sizes")
        .at("normalizer_spec.precompiled_charsmap")
        .withRemedy(kDamagedRemedy);
  }
  map.units_.resize(bytes / 4);
  std::memcpy(map.units_.data(), blob.data() + 4, bytes);
  map.texts_ = blob.substr(4 + bytes);
  return map;
}

std::optional<CharacterMap::Replacement> CharacterMap::find(std::string_view text) const {
  std::optional<Replacement> longest;
  if (units_.empty()) return longest;
  uint32_t at = offsetOf(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    at ^= byte;
    if (at >= units_.size() || labelOf(units_[at]) != byte) break;
    const uint32_t unit = units_[at];
    at ^= offsetOf(unit);
    if (!hasValue(unit)) continue;
    const uint32_t value = at < units_.size() ? valueOf(units_[at]) : UINT32_MAX;
    if (value >= texts_.size()) break;  // the map is damaged
    longest = {i + 1, texts_.substr(value, texts_.find('\0', value) - value)};
  }
  return longest;
}

}  // namespace carina::tokenizer
