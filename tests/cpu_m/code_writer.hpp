// SPDX-License-Identifier: Apache-2.0
// Writes random instructions, and the code around them, into an image.
#pragma once

#include <algorithm>
#include <cstring>
#include <iterator>

#include "random_code.hpp"

namespace carina::cpu_m {

class CodeWriter {
 public:
  explicit CodeWriter(uint32_t seed) : random(seed) {}

  std::mt19937 random;
  RandomImage image;

  uint32_t pick(uint32_t count) { return static_cast<uint32_t>(random() % count); }
  uint32_t word() { return static_cast<uint32_t>(random()); }
  uint32_t here() const { return RandomImage::kBase + static_cast<uint32_t>(image.code.size()); }
  void half(uint32_t value) {
    image.code.push_back(static_cast<uint8_t>(value));
    image.code.push_back(static_cast<uint8_t>(value >> 8));
  }
  void wide(uint32_t code) {
    half(code >> 16);
    half(code);
  }
  void put(uint32_t code, bool isWide) { isWide ? wide(code) : half(code); }
  /// Overwrites the code at an address.
  void patch(uint32_t address, uint32_t code, bool isWide) {
    overwrite(address, [&] { put(code, isWide); });
  }
  void patchConstant(uint32_t address, uint32_t reg, uint32_t value) {
    overwrite(address, [&] { constant(reg, value); });
  }
  void movHalf(uint32_t opcode, uint32_t reg, uint32_t value) {
    wide(opcode | (value >> 12 & 15) << 16 | (value >> 11 & 1) << 26 | (value >> 8 & 7) << 12 | reg << 8 |
         (value & 0xff));
  }
  /// MOVW and MOVT.
  void constant(uint32_t reg, uint32_t value) {
    movHalf(0xf2400000, reg, value & 0xffff);
    movHalf(0xf2c00000, reg, value >> 16);
  }
  /// vmov d, rt, rt2
  void moveToDouble(uint32_t number, uint32_t low, uint32_t high) {
    wide(0xec400b10 | high << 16 | low << 12 | number);
  }

 private:
  template <typename Write>
  void overwrite(uint32_t address, Write&& write) {
    std::vector<uint8_t> all = std::move(image.code);
    image.code.clear();
    write();
    std::copy(image.code.begin(), image.code.end(), all.begin() + (address - RandomImage::kBase));
    image.code = std::move(all);
  }
};

}  // namespace carina::cpu_m
