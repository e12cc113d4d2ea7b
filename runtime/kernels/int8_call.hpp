// SPDX-License-Identifier: Apache-2.0
// Arguments of the cortex_m:: kernels.
#pragma once

#include "call.hpp"
#include "int8_runs.hpp"

namespace carina::rt::kernels {

inline bool isInt8(const Tensor& tensor) {
  return tensor.type == ScalarType::Int8;
}

/// An integer argument in the range of int8: a zero point or a bound.
inline int32_t int8Zero(Call& call, uint32_t i) {
  const int64_t value = call.integer(i);
  call.require(value >= -128 && value <= 127, outOfRange(i));
  return static_cast<int32_t>(value);
}
/// An offset that is added to int8 elements: a negated zero point.
inline int32_t int8Offset(Call& call, uint32_t i) {
  const int64_t value = call.integer(i);
  call.require(value >= -128 && value <= 128, outOfRange(i));
  return static_cast<int32_t>(value);
}

inline Rescale checkedRescale(Call& call, int64_t multiplier, int64_t shift, uint32_t i) {
  const bool fits = multiplier >= 0 && multiplier <= INT32_MAX && shift >= -31 && shift <= 30;
  call.require(fits, outOfRange(i));
  return fits ? Rescale{static_cast<int32_t>(multiplier), static_cast<int32_t>(shift)} : Rescale{};
}
/// Arguments i (multiplier) and i + 1 (shift).
inline Rescale rescaleOf(Call& call, uint32_t i) {
  const int64_t multiplier = call.integer(i), shift = call.integer(i + 1);
  return checkedRescale(call, multiplier, shift, i);
}

}  // namespace carina::rt::kernels
