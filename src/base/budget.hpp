// SPDX-License-Identifier: Apache-2.0
// The allowance of a reader for one file: bytes that it may still inflate or copy, values that it may still
// create. Compression and sharing (one vector referenced from a million places) let a small file request any
// amount of work; an allowance that grows with the file bounds it and suffices for real files.
// docs/reliability.md lists the limits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace carina {

class Budget {
 public:
  constexpr explicit Budget(uint64_t units) : left_(units) {}
  /// `base` units and `factor` more for each byte of the file.
  static constexpr Budget ofFile(uint64_t fileBytes, uint64_t base, uint64_t factor) {
    constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
    return Budget(fileBytes > (kMax - base) / std::max<uint64_t>(factor, 1) ? kMax
                                                                            : base + factor * fileBytes);
  }

  /// Spends `units` if that many are left; returns whether they were.
  [[nodiscard]] constexpr bool take(uint64_t units) {
    if (units > left_) return false;
    left_ -= units;
    return true;
  }
  constexpr uint64_t left() const { return left_; }

 private:
  uint64_t left_;
};

}  // namespace carina
