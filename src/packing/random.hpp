// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace carina {

/// A small linear congruential generator, for the same results on every machine.
class Random {
 public:
  /// A number less than `n`, which is at least 1.
  size_t below(size_t n) {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<size_t>((state_ >> 33) % n);
  }

 private:
  uint64_t state_ = 0x9e3779b97f4a7c15ull;
};

}  // namespace carina
