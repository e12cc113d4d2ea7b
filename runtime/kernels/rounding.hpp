// SPDX-License-Identifier: Apache-2.0
// Conversion of float32 to integers: single instructions on cores with an Armv8 floating-point unit,
// bit-identical C++ elsewhere.
#pragma once

#include <stdint.h>

#if defined(__thumb__) && defined(__ARM_FP) && (__ARM_FP & 4) != 0 && __ARM_ARCH >= 8
#define CARINA_RT_VCVTN 1
#else
#define CARINA_RT_VCVTN 0
#endif
#if defined(__ARM_FEATURE_DSP) && defined(__ARM_FEATURE_SAT)
#define CARINA_RT_SATURATES 1
#include <arm_acle.h>
#else
#define CARINA_RT_SATURATES 0
#endif

namespace carina::rt::kernels {

/// The nearest integer, halves to even; saturates, and a NaN gives 0.
inline int32_t roundToInteger(float value) {
#if CARINA_RT_VCVTN
  float bits;
  int32_t result;
  __asm__("vcvtn.s32.f32 %0, %1" : "=t"(bits) : "t"(value));
  __builtin_memcpy(&result, &bits, sizeof(result));
  return result;
#else
  const float rounded = __builtin_rintf(value);
  if (rounded >= 2147483648.0f) return INT32_MAX;
  if (rounded <= -2147483648.0f) return INT32_MIN;
  return rounded == rounded ? static_cast<int32_t>(rounded) : 0;
#endif
}

/// The limits of an integer type of 8 or 16 bits.
template <typename T>
struct Saturated {
  static constexpr bool kSigned = static_cast<T>(-1) < static_cast<T>(0);
  static constexpr int kBits = 8 * static_cast<int>(sizeof(T));
  static constexpr int32_t kLow = kSigned ? -(1 << (kBits - 1)) : 0;
  static constexpr int32_t kHigh = kSigned ? (1 << (kBits - 1)) - 1 : (1 << kBits) - 1;
};

/// value + offset in the range of T; the sum may exceed 32 bits.
template <typename T>
inline T saturatedSum(int32_t value, int32_t offset) {
#if CARINA_RT_SATURATES
  const int32_t sum = __qadd(value, offset);
  if constexpr (Saturated<T>::kSigned) return static_cast<T>(__ssat(sum, Saturated<T>::kBits));
  if constexpr (!Saturated<T>::kSigned) return static_cast<T>(__usat(sum, Saturated<T>::kBits));
#else
  const int64_t sum = int64_t{value} + offset;
  return static_cast<T>(sum < Saturated<T>::kLow    ? Saturated<T>::kLow
                        : sum > Saturated<T>::kHigh ? Saturated<T>::kHigh
                                                    : sum);
#endif
}

}  // namespace carina::rt::kernels
