// SPDX-License-Identifier: Apache-2.0
#include "int8_runs.hpp"

#include "helium.hpp"

#if !CARINA_RT_HELIUM

namespace carina::rt::kernels {

int32_t dotInt8(const int8_t* a, const int8_t* b, size_t count, int32_t offset, int32_t sum) {
  uint32_t total = static_cast<uint32_t>(sum);
  for (size_t i = 0; i < count; ++i)
    total += static_cast<uint32_t>(a[i] + offset) * static_cast<uint32_t>(int32_t{b[i]});
  return static_cast<int32_t>(total);
}

void addInt8(const int8_t* a, const int8_t* b, int8_t* out, size_t count, const SumOperand& first,
             const SumOperand& second, const Requantize& requantize) {
  constexpr int32_t kHeadroom = 1 << 20;
  for (size_t i = 0; i < count; ++i) {
    const int32_t x = first.rescale((a[i] - first.zero) * kHeadroom);
    const int32_t y = second.rescale((b[i] - second.zero) * kHeadroom);
    out[i] = requantize(wrappedSum(x, y));
  }
}

void mulInt8(const int8_t* a, const int8_t* b, int8_t* out, size_t count, int32_t firstZero,
             int32_t secondZero, const Requantize& requantize) {
  for (size_t i = 0; i < count; ++i) out[i] = requantize((a[i] - firstZero) * (b[i] - secondZero));
}

void macInt8(const int8_t* in, const int8_t* weights, int32_t* sums, size_t count, int32_t offset) {
  for (size_t i = 0; i < count; ++i) sums[i] = wrappedSum(sums[i], (in[i] + offset) * weights[i]);
}

void addToInt8(const int8_t* in, int32_t* sums, size_t count) {
  for (size_t i = 0; i < count; ++i) sums[i] = wrappedSum(sums[i], in[i]);
}

void maxInt8(const int8_t* in, int8_t* largest, size_t count) {
  for (size_t i = 0; i < count; ++i) largest[i] = in[i] > largest[i] ? in[i] : largest[i];
}

int32_t largestInt8(const int8_t* in, size_t count) {
  int32_t largest = in[0];
  for (size_t i = 1; i < count; ++i) largest = in[i] > largest ? in[i] : largest;
  return largest;
}

namespace {

/// e^x for x <= 0 with 26 fraction bits, as a fraction of 2^31.
int32_t expOfNegative(int32_t value) {
  if (value == 0) return INT32_MAX;
  constexpr int32_t kQuarter = 1 << ExpTerms::kFirstBit;
  const int32_t part = (value & (kQuarter - 1)) - kQuarter,
                rest = wrappedSum(part, static_cast<int32_t>(0u - static_cast<uint32_t>(value)));
  const int32_t x = part * 32 + (1 << 28), x2 = saturatingHighProduct(x, x);
  const int32_t cubic = dividedByPower(saturatingHighProduct(x2, x2), 2) + saturatingHighProduct(x2, x);
  const int32_t series = x + dividedByPower(saturatingHighProduct(cubic, ExpTerms::kThird) + x2, 1);
  int32_t result = ExpTerms::kMiddle + saturatingHighProduct(ExpTerms::kMiddle, series);
  for (int k = 0; k < 7; ++k) {
    if ((rest >> (ExpTerms::kFirstBit + k) & 1) != 0)
      result = saturatingHighProduct(result, ExpTerms::kFactors[k]);
  }
  return result;
}

int32_t powerOf(int32_t difference, const Rescale& scale) {
  const int32_t shifted = static_cast<int32_t>(static_cast<uint32_t>(difference) << scale.shift);
  return expOfNegative(saturatingHighProduct(shifted, scale.multiplier));
}

}  // namespace

int32_t sumOfPowers(const int8_t* in, size_t count, const Powers& powers, int divisor) {
  int32_t sum = 0;
  for (size_t i = 0; i < count; ++i) {
    const int32_t difference = in[i] - powers.largest;
    if (difference >= powers.least)
      sum = wrappedSum(sum, dividedByPower(powerOf(difference, powers.scale), divisor));
  }
  return sum;
}

void scalePowers(const int8_t* in, int8_t* out, size_t count, const Powers& powers, int32_t factor,
                 int divisor) {
  for (size_t i = 0; i < count; ++i) {
    const int32_t difference = in[i] - powers.largest;
    int32_t value = -128;
    if (difference >= powers.least)
      value += dividedByPower(saturatingHighProduct(factor, powerOf(difference, powers.scale)), divisor);
    out[i] = static_cast<int8_t>(clampTo(value, -128, 127));
  }
}

void lookUpInt8(const int8_t* in, const int8_t* table, int8_t* out, size_t count) {
  for (size_t i = 0; i < count; ++i) out[i] = table[in[i] + 128];
}

}  // namespace carina::rt::kernels

#endif
