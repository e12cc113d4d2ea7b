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

void lookUpInt8(const int8_t* in, const int8_t* table, int8_t* out, size_t count) {
  for (size_t i = 0; i < count; ++i) out[i] = table[in[i] + 128];
}

}  // namespace carina::rt::kernels

#endif
