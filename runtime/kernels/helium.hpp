// SPDX-License-Identifier: Apache-2.0
// Helium (MVE) variants of quantize and dequantize, if the build supports it (-mcpu=cortex-m55);
// bit-identical to the scalar loops. Vector instructions flush denormals and scalar ones do not, so scales
// near the limits of float32 are left to the loops.
#pragma once

#include <stddef.h>
#include <stdint.h>

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2) != 0
#define CARINA_RT_HELIUM 1
#include <arm_mve.h>
#else
#define CARINA_RT_HELIUM 0
#endif

namespace carina::rt::kernels {

#if CARINA_RT_HELIUM

namespace helium {

constexpr bool moderate(float factor) {
  return factor > 7.9e-31f && factor < 1.2e30f;
}

inline int32x4_t load(const int8_t* from, mve_pred16_t lanes) {
  return vldrbq_z_s32(from, lanes);
}
inline int32x4_t load(const uint8_t* from, mve_pred16_t lanes) {
  return vreinterpretq_s32_u32(vldrbq_z_u32(from, lanes));
}
inline int32x4_t load(const int16_t* from, mve_pred16_t lanes) {
  return vldrhq_z_s32(from, lanes);
}
inline int32x4_t load(const uint16_t* from, mve_pred16_t lanes) {
  return vreinterpretq_s32_u32(vldrhq_z_u32(from, lanes));
}
inline int32x4_t load(const int8_t* from) {
  return vldrbq_s32(from);
}
inline int32x4_t load(const uint8_t* from) {
  return vreinterpretq_s32_u32(vldrbq_u32(from));
}
inline int32x4_t load(const int16_t* from) {
  return vldrhq_s32(from);
}
inline int32x4_t load(const uint16_t* from) {
  return vreinterpretq_s32_u32(vldrhq_u32(from));
}
inline void store(int8_t* to, int32x4_t value, mve_pred16_t lanes) {
  vstrbq_p_s32(to, value, lanes);
}
inline void store(uint8_t* to, int32x4_t value, mve_pred16_t lanes) {
  vstrbq_p_u32(to, vreinterpretq_u32_s32(value), lanes);
}
inline void store(int16_t* to, int32x4_t value, mve_pred16_t lanes) {
  vstrhq_p_s32(to, value, lanes);
}
inline void store(uint16_t* to, int32x4_t value, mve_pred16_t lanes) {
  vstrhq_p_u32(to, vreinterpretq_u32_s32(value), lanes);
}

/// Stores sixteen codes in order, saturated to their type; each int32 vector holds every fourth of them.
inline void storeSixteen(int8_t* to, int32x4_t a, int32x4_t b, int32x4_t c, int32x4_t d, int32_t low,
                         int32_t high) {
  const int16x8_t even = vqmovntq_s32(vqmovnbq_s32(vdupq_n_s16(0), a), c);
  const int16x8_t odd = vqmovntq_s32(vqmovnbq_s32(vdupq_n_s16(0), b), d);
  const int8x16_t codes = vqmovntq_s16(vqmovnbq_s16(vdupq_n_s8(0), even), odd);
  vst1q_s8(to, vminq_s8(vmaxq_s8(codes, vdupq_n_s8(static_cast<int8_t>(low))),
                        vdupq_n_s8(static_cast<int8_t>(high))));
}
inline void storeSixteen(uint8_t* to, int32x4_t a, int32x4_t b, int32x4_t c, int32x4_t d, int32_t low,
                         int32_t high) {
  const uint16x8_t even = vqmovuntq_s32(vqmovunbq_s32(vdupq_n_u16(0), a), c);
  const uint16x8_t odd = vqmovuntq_s32(vqmovunbq_s32(vdupq_n_u16(0), b), d);
  const uint8x16_t codes = vqmovntq_u16(vqmovnbq_u16(vdupq_n_u8(0), even), odd);
  vst1q_u8(to, vminq_u8(vmaxq_u8(codes, vdupq_n_u8(static_cast<uint8_t>(low))),
                        vdupq_n_u8(static_cast<uint8_t>(high))));
}
inline void storeSixteen(int16_t* to, int32x4_t a, int32x4_t b, int32x4_t c, int32x4_t d, int32_t low,
                         int32_t high) {
  const int16x8_t floor = vdupq_n_s16(static_cast<int16_t>(low)),
                  ceiling = vdupq_n_s16(static_cast<int16_t>(high));
  const int16x8_t even = vqmovntq_s32(vqmovnbq_s32(vdupq_n_s16(0), a), c);
  const int16x8_t odd = vqmovntq_s32(vqmovnbq_s32(vdupq_n_s16(0), b), d);
  const int16x8x2_t codes{
      {vminq_s16(vmaxq_s16(even, floor), ceiling), vminq_s16(vmaxq_s16(odd, floor), ceiling)}};
  vst2q_s16(to, codes);
}
inline void storeSixteen(uint16_t* to, int32x4_t a, int32x4_t b, int32x4_t c, int32x4_t d, int32_t low,
                         int32_t high) {
  const uint16x8_t floor = vdupq_n_u16(static_cast<uint16_t>(low)),
                   ceiling = vdupq_n_u16(static_cast<uint16_t>(high));
  const uint16x8_t even = vqmovuntq_s32(vqmovunbq_s32(vdupq_n_u16(0), a), c);
  const uint16x8_t odd = vqmovuntq_s32(vqmovunbq_s32(vdupq_n_u16(0), b), d);
  const uint16x8x2_t codes{
      {vminq_u16(vmaxq_u16(even, floor), ceiling), vminq_u16(vmaxq_u16(odd, floor), ceiling)}};
  vst2q_u16(to, codes);
}

}  // namespace helium

/// Quantizes to 8 or 16 bits with vector instructions; returns the number of elements done: all or none.
template <typename T>
size_t quantizeVectors(const float* input, T* output, size_t count, float inverse, int32_t zero, int32_t low,
                       int32_t high) {
  if (!helium::moderate(inverse)) return 0;
  // Conversions round halves to even and saturate, like the sum; a NaN becomes 0.
  const auto code = [inverse, zero](float32x4_t reals) {
    return vqaddq_n_s32(vcvtnq_s32_f32(vmulq_n_f32(reals, inverse)), zero);
  };
  size_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const float32x4x4_t reals = vld4q_f32(input + i);
    helium::storeSixteen(output + i, code(reals.val[0]), code(reals.val[1]), code(reals.val[2]),
                         code(reals.val[3]), low, high);
  }
  for (; i < count; i += 4) {
    const mve_pred16_t lanes = vctp32q(static_cast<uint32_t>(count - i));
    int32x4_t value = code(vldrwq_z_f32(input + i, lanes));
    value = vminq_s32(vmaxq_s32(value, vdupq_n_s32(low)), vdupq_n_s32(high));
    helium::store(output + i, value, lanes);
  }
  return count;
}
template <typename T>
size_t dequantizeVectors(const T* input, float* output, size_t count, float factor, int32_t zero) {
  if (!helium::moderate(factor)) return 0;
  const auto real = [factor, zero](int32x4_t codes) {
    return vmulq_n_f32(vcvtq_f32_s32(vsubq_n_s32(codes, zero)), factor);
  };
  size_t i = 0;
  for (; i + 16 <= count; i += 16) {
    vst1q_f32(output + i, real(helium::load(input + i)));
    vst1q_f32(output + i + 4, real(helium::load(input + i + 4)));
    vst1q_f32(output + i + 8, real(helium::load(input + i + 8)));
    vst1q_f32(output + i + 12, real(helium::load(input + i + 12)));
  }
  for (; i < count; i += 4) {
    const mve_pred16_t lanes = vctp32q(static_cast<uint32_t>(count - i));
    vstrwq_p_f32(output + i, real(helium::load(input + i, lanes)), lanes);
  }
  return count;
}

#else

template <typename T>
constexpr size_t quantizeVectors(const float*, T*, size_t, float, int32_t, int32_t, int32_t) {
  return 0;
}
template <typename T>
constexpr size_t dequantizeVectors(const T*, float*, size_t, float, int32_t) {
  return 0;
}

#endif

}  // namespace carina::rt::kernels
