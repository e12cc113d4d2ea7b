// SPDX-License-Identifier: Apache-2.0
// What a reader may still spend on one file: bytes that it inflates or copies, values that it makes.
// Compression and sharing (one vector that a million places refer to) let a small file ask for any amount of
// work; an allowance that grows with the file bounds it and leaves room for what real files do.
// docs/reliability.md lists the numbers.
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

  /// Whether `units` were left; they are spent then.
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
