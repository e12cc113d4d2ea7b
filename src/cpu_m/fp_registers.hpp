// SPDX-License-Identifier: Apache-2.0
// Floating-point registers as scalar instructions see them: half precision is the lower half of a single
// register, whose upper half is cleared by writes.
#pragma once

#include <type_traits>

#include "cpu_m/core.hpp"

namespace carina::cpu_m::fp {

template <class T>
T read(const State& s, uint32_t number) {
  if constexpr (sizeof(T) == 8) {
    return s.element<uint64_t>(number);
  } else {
    return static_cast<T>(s.element<uint32_t>(number));
  }
}

template <class T>
void write(State& s, uint32_t number, T value) {
  if constexpr (sizeof(T) == 8) {
    s.setElement<uint64_t>(number, value);
  } else {
    s.setElement<uint32_t>(number, value);
  }
}

/// Patterns collect the extra bit of Sd and Sm before the other four (that of Sn after them, where it
/// belongs).
constexpr uint8_t single(uint8_t field) {
  return static_cast<uint8_t>((field & 15) << 1 | field >> 4);
}
inline Decoded singles(Op& op, DecodeContext&) {
  op.d = single(op.d);
  op.m = single(op.m);
  return Decoded::Ok;
}
/// Sd or Sm only: the other operand is double.
inline Decoded singleD(Op& op, DecodeContext&) {
  op.d = single(op.d);
  return Decoded::Ok;
}
inline Decoded singleM(Op& op, DecodeContext&) {
  op.m = single(op.m);
  return Decoded::Ok;
}

}  // namespace carina::cpu_m::fp
