// SPDX-License-Identifier: Apache-2.0
// A pointer with a length, and the few helpers on sizes that a freestanding library needs.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace carina::rt {

template <typename T>
struct Span {
  T* data = nullptr;
  size_t size = 0;

  constexpr Span() = default;
  constexpr Span(T* pointer, size_t count) : data(pointer), size(count) {}
  template <size_t N>
  constexpr Span(T (&array)[N]) : data(array), size(N) {}            // NOLINT(google-explicit-constructor)
  constexpr operator Span<const T>() const { return {data, size}; }  // NOLINT(google-explicit-constructor)

  constexpr T& operator[](size_t i) const { return data[i]; }
  constexpr T* begin() const { return data; }
  constexpr T* end() const { return data + size; }
  constexpr bool empty() const { return size == 0; }
};

using Bytes = Span<const uint8_t>;
using MutableBytes = Span<uint8_t>;
using Text = Span<const char>;  // not zero-terminated

constexpr size_t textLength(const char* text) {
  size_t length = 0;
  while (text[length] != 0) ++length;
  return length;
}
/// Whether `text` equals the zero-terminated `literal`.
constexpr bool equals(Text text, const char* literal) {
  size_t i = 0;
  for (; i < text.size; ++i) {
    if (literal[i] == 0 || literal[i] != text.data[i]) return false;
  }
  return literal[i] == 0;
}

constexpr bool isAligned(uintptr_t value, uintptr_t to) {
  return (value & (to - 1)) == 0;
}
inline bool isAligned(const void* pointer, uintptr_t to) {
  return isAligned(reinterpret_cast<uintptr_t>(pointer), to);
}

/// Rounds up to a multiple of `to`, a power of two; false if the result does not fit.
constexpr bool alignUp(size_t value, size_t to, size_t* result) {
  const size_t sum = value + (to - 1);
  if (sum < value) return false;
  *result = sum & ~(to - 1);
  return true;
}

}  // namespace carina::rt
