// SPDX-License-Identifier: Apache-2.0
// The gate of a tightly coupled memory (TGU): which of its blocks Non-secure code may use. Its registers keep
// what is written, but nothing is rejected.
#pragma once

#include <array>
#include <cstdint>

namespace carina::platform {

class TcmGate {
 public:
  static constexpr uint32_t kSize = 0x50;

  uint32_t read(uint32_t offset) const {
    if (offset == kControl) return control_;
    if (offset == kConfiguration) return kPresent | kBlocks << 8 | kBlockSize;
    return offset >= kTable && offset < kSize ? table_[(offset - kTable) / 4] : 0;
  }
  void write(uint32_t offset, uint32_t value) {
    if (offset == kControl) control_ = value & 3;
    if (offset >= kTable && offset < kSize) table_[(offset - kTable) / 4] = value;
  }

 private:
  // Technical Reference Manual of Cortex-M55: ITGU_CTRL, ITGU_CFG, ITGU_LUT0 to 15. 2^6 blocks of 2^(8 + 5)
  // bytes make up the 512 KiB of each of the boards' memories.
  static constexpr uint32_t kControl = 0x00, kConfiguration = 0x04, kTable = 0x10;
  static constexpr uint32_t kPresent = 1u << 31, kBlocks = 6, kBlockSize = 8;
  uint32_t control_ = 0;
  std::array<uint32_t, 16> table_{};
};

}  // namespace carina::platform
