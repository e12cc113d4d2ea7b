// SPDX-License-Identifier: Apache-2.0
// The source of a generator's decisions: a seeded sequence, or the bytes that a fuzzer varies.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>

namespace carina::fuzz {

class Choices {
 public:
  explicit Choices(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ull + 0x2545f4914f6cdd1dull) {}
  /// After the last byte every choice is the first one.
  explicit Choices(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  /// 0 to n - 1; n > 0.
  int64_t below(int64_t n) {
    if (bytes_) {
      uint64_t number = 0;
      for (int64_t range = 1; range < n; range *= 256) number = number << 8 | take();
      return static_cast<int64_t>(number % static_cast<uint64_t>(n));
    }
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<int64_t>((state_ >> 33) % static_cast<uint64_t>(n));
  }
  bool oneIn(int64_t n) { return below(n) == n - 1; }
  template <typename T>
  T of(std::initializer_list<T> items) {
    return items.begin()[below(static_cast<int64_t>(items.size()))];
  }
  bool exhausted() const { return bytes_ && bytes_->empty(); }

 private:
  uint8_t take() {
    if (bytes_->empty()) return 0;
    const uint8_t byte = bytes_->front();
    bytes_ = bytes_->subspan(1);
    return byte;
  }

  uint64_t state_ = 0;
  std::optional<std::span<const uint8_t>> bytes_;
};

}  // namespace carina::fuzz
