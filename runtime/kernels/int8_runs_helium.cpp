// SPDX-License-Identifier: Apache-2.0
// int8 loops with Helium: sixteen products, or four 32-bit sums, at a time. The same bits as int8_runs.cpp.
#include "helium.hpp"
#include "int8_runs.hpp"

#if CARINA_RT_HELIUM

namespace carina::rt::kernels {
namespace {

/// Rescale on four lanes. Vector shifts round halves up; taking one from negative numbers first takes them
/// away from zero.
struct Rescaling {
  int32x4_t up, down;
  int32_t multiplier;

  explicit Rescaling(const Rescale& rescale)
      : up(vdupq_n_s32(rescale.shift > 0 ? rescale.shift : 0)),
        down(vdupq_n_s32(rescale.shift > 0 ? 0 : rescale.shift)),
        multiplier(rescale.multiplier) {}
  int32x4_t operator()(int32x4_t value) const {
    const int32x4_t high = vqrdmulhq_n_s32(vshlq_s32(value, up), multiplier);
    const int32x4_t negative = vshrq_n_s32(vandq_s32(high, down), 31);
    return vrshlq_s32(vqaddq_s32(high, negative), down);
  }
};

struct Requantizing {
  Rescaling rescaling;
  const Requantize& plain;

  explicit Requantizing(const Requantize& requantize) : rescaling(requantize.rescale), plain(requantize) {}
  int32x4_t operator()(int32x4_t value) const {
    const int32x4_t moved = vaddq_n_s32(rescaling(value), plain.zero);
    return vminq_s32(vmaxq_s32(moved, vdupq_n_s32(plain.min)), vdupq_n_s32(plain.max));
  }
};

}  // namespace

int32_t dotInt8(const int8_t* a, const int8_t* b, size_t count, int32_t offset, int32_t sum) {
  int32_t products = sum, total = 0;  // of a * b, and of b
  for (size_t i = 0; i < count; i += 16) {
    const mve_pred16_t lanes = vctp8q(static_cast<uint32_t>(count - i));
    const int8x16_t y = vldrbq_z_s8(b + i, lanes);
    products = vmladavaq_p_s8(products, vldrbq_z_s8(a + i, lanes), y, lanes);
    total = vaddvaq_p_s8(total, y, lanes);
  }
  return static_cast<int32_t>(static_cast<uint32_t>(products) +
                              static_cast<uint32_t>(offset) * static_cast<uint32_t>(total));
}

void addInt8(const int8_t* a, const int8_t* b, int8_t* out, size_t count, const SumOperand& first,
             const SumOperand& second, const Requantize& requantize) {
  const Rescaling one(first.rescale), two(second.rescale);
  const Requantizing narrow(requantize);
  for (size_t i = 0; i < count; i += 4) {
    const mve_pred16_t lanes = vctp32q(static_cast<uint32_t>(count - i));
    const int32x4_t x = vshlq_n_s32(vsubq_n_s32(vldrbq_z_s32(a + i, lanes), first.zero), 20);
    const int32x4_t y = vshlq_n_s32(vsubq_n_s32(vldrbq_z_s32(b + i, lanes), second.zero), 20);
    vstrbq_p_s32(out + i, narrow(vaddq_s32(one(x), two(y))), lanes);
  }
}

void mulInt8(const int8_t* a, const int8_t* b, int8_t* out, size_t count, int32_t firstZero,
             int32_t secondZero, const Requantize& requantize) {
  const Requantizing narrow(requantize);
  for (size_t i = 0; i < count; i += 4) {
    const mve_pred16_t lanes = vctp32q(static_cast<uint32_t>(count - i));
    const int32x4_t x = vsubq_n_s32(vldrbq_z_s32(a + i, lanes), firstZero);
    const int32x4_t y = vsubq_n_s32(vldrbq_z_s32(b + i, lanes), secondZero);
    vstrbq_p_s32(out + i, narrow(vmulq_s32(x, y)), lanes);
  }
}

void macInt8(const int8_t* in, const int8_t* weights, int32_t* sums, size_t count, int32_t offset) {
  for (size_t i = 0; i < count; i += 4) {
    const mve_pred16_t lanes = vctp32q(static_cast<uint32_t>(count - i));
    const int32x4_t x = vaddq_n_s32(vldrbq_z_s32(in + i, lanes), offset);
    const int32x4_t product = vmulq_s32(x, vldrbq_z_s32(weights + i, lanes));
    vstrwq_p_s32(sums + i, vaddq_s32(vldrwq_z_s32(sums + i, lanes), product), lanes);
  }
}

void addToInt8(const int8_t* in, int32_t* sums, size_t count) {
  for (size_t i = 0; i < count; i += 4) {
    const mve_pred16_t lanes = vctp32q(static_cast<uint32_t>(count - i));
    vstrwq_p_s32(sums + i, vaddq_s32(vldrwq_z_s32(sums + i, lanes), vldrbq_z_s32(in + i, lanes)), lanes);
  }
}

void maxInt8(const int8_t* in, int8_t* largest, size_t count) {
  for (size_t i = 0; i < count; i += 16) {
    const mve_pred16_t lanes = vctp8q(static_cast<uint32_t>(count - i));
    vstrbq_p_s8(largest + i, vmaxq_s8(vldrbq_z_s8(largest + i, lanes), vldrbq_z_s8(in + i, lanes)), lanes);
  }
}

void lookUpInt8(const int8_t* in, const int8_t* table, int8_t* out, size_t count) {
  for (size_t i = 0; i < count; i += 16) {
    const mve_pred16_t lanes = vctp8q(static_cast<uint32_t>(count - i));
    const uint8x16_t index = veorq_u8(vreinterpretq_u8_s8(vldrbq_z_s8(in + i, lanes)), vdupq_n_u8(128));
    vstrbq_p_s8(out + i, vldrbq_gather_offset_z_s8(table, index, lanes), lanes);
  }
}

}  // namespace carina::rt::kernels

#endif
