// SPDX-License-Identifier: Apache-2.0
// Helium (MVE) variants of quantize and dequantize, where the build has them (-mcpu=cortex-m55): the same
// bits as the plain loops. Vector instructions flush denormals and plain ones do not, so scales near the ends
// of float32 stay with the loops.
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

}  // namespace helium

/// Elements quantized by vectors: all, or none. Integers of 8 and 16 bits.
template <typename T>
size_t quantizeVectors(const float* input, T* output, size_t count, float inverse, int32_t zero, int32_t low,
                       int32_t high) {
  if (!helium::moderate(inverse)) return 0;
  constexpr int32_t kFar = 1 << 30;
  for (size_t i = 0; i < count; i += 4) {
    const mve_pred16_t lanes = vctp32q(static_cast<uint32_t>(count - i));
    const float32x4_t rounded = vrndnq_f32(vmulq_n_f32(vldrwq_z_f32(input + i, lanes), inverse));
    int32x4_t value = vcvtq_s32_f32(rounded);  // saturates; a NaN becomes 0
    value = vmaxq_s32(vminq_s32(value, vdupq_n_s32(kFar)), vdupq_n_s32(-kFar));
    value = vaddq_n_s32(value, zero);
    value = vminq_s32(vmaxq_s32(value, vdupq_n_s32(low)), vdupq_n_s32(high));
    helium::store(output + i, value, lanes);
  }
  return count;
}
template <typename T>
size_t dequantizeVectors(const T* input, float* output, size_t count, float factor, int32_t zero) {
  if (!helium::moderate(factor)) return 0;
  for (size_t i = 0; i < count; i += 4) {
    const mve_pred16_t lanes = vctp32q(static_cast<uint32_t>(count - i));
    const int32x4_t difference = vsubq_n_s32(helium::load(input + i, lanes), zero);
    vstrwq_p_f32(output + i, vmulq_n_f32(vcvtq_f32_s32(difference), factor), lanes);
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
