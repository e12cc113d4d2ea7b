// SPDX-License-Identifier: Apache-2.0
// int8 loops with Helium: sixteen products, or four 32-bit sums, at a time. Bit-identical to int8_runs.cpp.
#include "helium.hpp"
#include "int8_runs.hpp"

#if CARINA_RT_HELIUM

namespace carina::rt::kernels {
namespace {

/// value / 2^-down on four lanes, halves away from zero. Vector shifts round halves up; subtracting one from
/// negative values first rounds these away from zero.
int32x4_t dividedByPower(int32x4_t value, int32x4_t down) {
  const int32x4_t negative = vshrq_n_s32(vandq_s32(value, down), 31);
  return vrshlq_s32(vqaddq_s32(value, negative), down);
}

/// Rescale on four lanes.
struct Rescaling {
  int32x4_t up, down;
  int32_t multiplier;

  explicit Rescaling(const Rescale& rescale)
      : up(vdupq_n_s32(rescale.shift > 0 ? rescale.shift : 0)),
        down(vdupq_n_s32(rescale.shift > 0 ? 0 : rescale.shift)),
        multiplier(rescale.multiplier) {}
  int32x4_t operator()(int32x4_t value) const {
    return dividedByPower(vqrdmulhq_n_s32(vshlq_s32(value, up), multiplier), down);
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

int32_t largestInt8(const int8_t* in, size_t count) {
  int8_t largest = INT8_MIN;
  for (size_t i = 0; i < count; i += 16) {
    const mve_pred16_t lanes = vctp8q(static_cast<uint32_t>(count - i));
    largest = vmaxvq_p_s8(largest, vldrbq_z_s8(in + i, lanes), lanes);
  }
  return largest;
}

namespace {

/// e^x of four lanes, see ExpTerms.
int32x4_t expOfNegative(int32x4_t value) {
  constexpr int32_t kQuarter = 1 << ExpTerms::kFirstBit;
  const int32x4_t part = vsubq_n_s32(vandq_s32(value, vdupq_n_s32(kQuarter - 1)), kQuarter);
  const int32x4_t rest = vsubq_s32(part, value);
  const int32x4_t x = vaddq_n_s32(vshlq_n_s32(part, 5), 1 << 28), x2 = vqrdmulhq_s32(x, x);
  const int32x4_t cubic =
      vaddq_s32(dividedByPower(vqrdmulhq_s32(x2, x2), vdupq_n_s32(-2)), vqrdmulhq_s32(x2, x));
  const int32x4_t sum = vaddq_s32(vqrdmulhq_n_s32(cubic, ExpTerms::kThird), x2);
  const int32x4_t series = vaddq_s32(x, dividedByPower(sum, vdupq_n_s32(-1)));
  int32x4_t result = vaddq_n_s32(vqrdmulhq_n_s32(series, ExpTerms::kMiddle), ExpTerms::kMiddle);
  for (int k = 0; k < 7; ++k) {
    const int32x4_t bit = vandq_s32(rest, vdupq_n_s32(1 << (ExpTerms::kFirstBit + k)));
    result = vpselq_s32(vqrdmulhq_n_s32(result, ExpTerms::kFactors[k]), result, vcmpneq_n_s32(bit, 0));
  }
  return vpselq_s32(vdupq_n_s32(INT32_MAX), result, vcmpeqq_n_s32(value, 0));
}

/// The powers of four elements, and which of them are not 0.
struct FourPowers {
  int32x4_t values;
  mve_pred16_t present;

  FourPowers(const int8_t* in, mve_pred16_t lanes, const Powers& powers) {
    const int32x4_t difference = vsubq_n_s32(vldrbq_z_s32(in, lanes), powers.largest);
    const int32x4_t shifted = vshlq_s32(difference, vdupq_n_s32(powers.scale.shift));
    values = expOfNegative(vqrdmulhq_n_s32(shifted, powers.scale.multiplier));
    present = vcmpgeq_m_n_s32(difference, powers.least, lanes);
  }
};

}  // namespace

int32_t sumOfPowers(const int8_t* in, size_t count, const Powers& powers, int divisor) {
  const int32x4_t down = vdupq_n_s32(-divisor);
  int32_t sum = 0;
  for (size_t i = 0; i < count; i += 4) {
    const FourPowers four(in + i, vctp32q(static_cast<uint32_t>(count - i)), powers);
    sum = vaddvaq_p_s32(sum, dividedByPower(four.values, down), four.present);
  }
  return sum;
}

void scalePowers(const int8_t* in, int8_t* out, size_t count, const Powers& powers, int32_t factor,
                 int divisor) {
  const int32x4_t down = vdupq_n_s32(-divisor), least = vdupq_n_s32(-128);
  for (size_t i = 0; i < count; i += 4) {
    const mve_pred16_t lanes = vctp32q(static_cast<uint32_t>(count - i));
    const FourPowers four(in + i, lanes, powers);
    const int32x4_t value = vaddq_s32(dividedByPower(vqrdmulhq_n_s32(four.values, factor), down), least);
    const int32x4_t clamped = vminq_s32(vmaxq_s32(value, least), vdupq_n_s32(127));
    vstrbq_p_s32(out + i, vpselq_s32(clamped, least, four.present), lanes);
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
