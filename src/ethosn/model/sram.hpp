// SPDX-License-Identifier: Apache-2.0
// The SRAM banks. All banks use the same address for the same object; bytes with the same address are
// adjacent here, so that the channels of an element are contiguous.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/result.hpp"

namespace carina::ethosn::model {

/// The position of a feature map's elements in the banks; strides in bytes of a bank.
struct Tile {
  int64_t base = 0;
  int64_t groupStride = 0;  // between 8x8 groups along X
  int64_t rowStride = 0;    // between rows of groups

  /// Address of (y, x) in the first channels, one per bank; the next channels of the same banks follow every
  /// 64 bytes.
  int64_t at(int64_t y, int64_t x) const {
    return base + (y / 8) * rowStride + (x / 8) * groupStride + ((x % 8) / 4 * 2 + (y % 8) / 4) * 16 +
           (y % 4) * 4 + x % 4;
  }
};

class Sram {
 public:
  Sram(int32_t banks, int64_t bankBytes)
      : banks_(banks), bankBytes_(bankBytes), bytes_(static_cast<size_t>(banks * bankBytes)) {}

  int32_t banks() const { return banks_; }
  int64_t bankBytes() const { return bankBytes_; }
  /// A byte of every bank.
  uint8_t* row(int64_t address) { return bytes_.data() + address * banks_; }
  const uint8_t* row(int64_t address) const { return bytes_.data() + address * banks_; }

  /// The tile of an h x w x c feature map whose groups are contiguous.
  Tile packed(int64_t base, int64_t w, int64_t c) const {
    const int64_t groupStride = (c + banks_ - 1) / banks_ * 64;
    return {base, groupStride, (w + 7) / 8 * groupStride};
  }

  Status checkTile(const Tile& tile, int64_t h, int64_t w, int64_t c) const {
    if (h <= 0 || w <= 0 || c <= 0) return {};
    return checkRange(tile.base, (h - 1) / 8 * tile.rowStride + (w - 1) / 8 * tile.groupStride +
                                     (c - 1) / banks_ * 64 + 64);
  }
  Status checkRange(int64_t address, int64_t bytes) const {
    if (address >= 0 && bytes >= 0 && bytes <= bankBytes_ && address <= bankBytes_ - bytes) {
      highest_ = std::max(highest_, address + bytes);
      return {};
    }
    return fail(Code::NpuFault, "SRAM {:#x} to {:#x} lies outside of the banks of {:#x} bytes", address,
                address + bytes, bankBytes_);
  }

  /// End of all ranges checked so far, in bytes of a bank.
  int64_t highest() const { return highest_; }

  /// Copies the `c` channels of an element. The tile must have been checked.
  void read(const Tile& tile, int64_t y, int64_t x, int64_t c, uint8_t* out) const {
    const uint8_t* from = row(tile.at(y, x));
    for (int64_t left = c; left > 0; left -= banks_, from += 64 * banks_, out += banks_) {
      std::memcpy(out, from, static_cast<size_t>(left < banks_ ? left : banks_));
    }
  }
  void write(const Tile& tile, int64_t y, int64_t x, int64_t c, const uint8_t* in) {
    uint8_t* to = row(tile.at(y, x));
    for (int64_t left = c; left > 0; left -= banks_, to += 64 * banks_, in += banks_) {
      std::memcpy(to, in, static_cast<size_t>(left < banks_ ? left : banks_));
    }
  }

 private:
  int32_t banks_;
  int64_t bankBytes_;
  std::vector<uint8_t> bytes_;
  mutable int64_t highest_ = 0;
};

}  // namespace carina::ethosn::model
