// SPDX-License-Identifier: Apache-2.0
// The inner loops of int8 kernels, over contiguous elements.
#pragma once

#include <stddef.h>

#include "fixed_point.hpp"

namespace carina::rt::kernels {

/// An operand of a sum: (q - zero) << 20, rescaled.
struct SumOperand {
  int32_t zero = 0;
  Rescale rescale;
};
/// clamp(rescale(value) + zero, min, max)
struct Requantize {
  Rescale rescale;
  int32_t zero = 0, min = -128, max = 127;

  constexpr int8_t operator()(int32_t value) const {
    return static_cast<int8_t>(clampTo(wrappedSum(rescale(value), zero), min, max));
  }
};

/// sum + the sum of (a[i] + offset) * b[i], wrapping.
int32_t dotInt8(const int8_t* a, const int8_t* b, size_t count, int32_t offset, int32_t sum);
/// out[i] = requantize(first(a[i]) + second(b[i])).
void addInt8(const int8_t* a, const int8_t* b, int8_t* out, size_t count, const SumOperand& first,
             const SumOperand& second, const Requantize& requantize);
/// out[i] = requantize((a[i] - firstZero) * (b[i] - secondZero)).
void mulInt8(const int8_t* a, const int8_t* b, int8_t* out, size_t count, int32_t firstZero,
             int32_t secondZero, const Requantize& requantize);
/// sums[i] += (in[i] + offset) * weights[i], wrapping.
void macInt8(const int8_t* in, const int8_t* weights, int32_t* sums, size_t count, int32_t offset);
/// sums[i] += in[i].
void addToInt8(const int8_t* in, int32_t* sums, size_t count);
/// largest[i] = max(largest[i], in[i]).
void maxInt8(const int8_t* in, int8_t* largest, size_t count);
/// The largest of in[0] to in[count - 1]; `count` is not 0.
int32_t largestInt8(const int8_t* in, size_t count);

/// e^((q - largest) * scale) as a fraction of 2^31, or 0 if q - largest is below `least` (<= 0). The shift of
/// `scale` is not negative; its result has 26 fraction bits.
struct Powers {
  Rescale scale;
  int32_t largest = 0, least = 0;
};
/// The wrapping sum of powers, each divided by 2^divisor.
int32_t sumOfPowers(const int8_t* in, size_t count, const Powers& powers, int divisor);
/// out[i] = clamp(power * factor / 2^31 / 2^divisor - 128).
void scalePowers(const int8_t* in, int8_t* out, size_t count, const Powers& powers, int32_t factor,
                 int divisor);
/// out[i] = table[in[i] + 128].
void lookUpInt8(const int8_t* in, const int8_t* table, int8_t* out, size_t count);

}  // namespace carina::rt::kernels
