// SPDX-License-Identifier: Apache-2.0
// float32 functions whose run time is the same for all but the rarest arguments, so that inference time is
// predictable, and that need no 64-bit arithmetic: up to 2.5 times as fast as newlib's on a Cortex-M55.
// Within 4 units in the last place (tests/runtime/kernels/mathematics_test.cpp), and bit-identical on every
// core and host; NaN, infinities and signs of zero as in C. Polynomials are from scripts/fit_functions.py.
#pragma once

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace carina::rt::kernels::mathematics {

constexpr float kLn2 = 0.693147181f, kHalfPi = 1.57079633f, kPi = 3.14159265f;

inline uint32_t bitsOf(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}
inline float floatOf(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}
/// 2^n; n from -126 to 127.
inline float powerOfTwo(int32_t n) {
  return floatOf((static_cast<uint32_t>(n) + 127u) << 23);
}
inline float clamped(float x, float low, float high) {  // NaN propagates
  x = x < low ? low : x;
  return x > high ? high : x;
}

/// c[0] + c[1] x + c[2] x^2 + ...
template <size_t N>
inline float polynomial(const float (&c)[N], float x) {
  float sum = c[N - 1];
  for (size_t i = N - 1; i-- > 0;) sum = sum * x + c[i];
  return sum;
}

/// The nearest integer, for |x| below 2^22.
struct Nearest {
  float real;
  int32_t integer;
};
inline Nearest nearest(float x) {
  constexpr float kShift = 12582912.0f;  // 1.5 * 2^23: adding it rounds away the fraction
  const float shifted = x + kShift;
  return {shifted - kShift, static_cast<int32_t>(bitsOf(shifted) - bitsOf(kShift))};
}

/// e^x = 2^exponent (1 + rest), |rest| below 0.42.
struct Exponential {
  int32_t exponent;
  float rest;
};
inline Exponential exponential(float x) {
  static constexpr float kTerms[] = {0.5f, 0.16666577f, 0.0416665547f, 0.00836317307f, 0.00139261761f};
  // ln 2 in two parts; the first has few bits, so that its product with an exponent is exact.
  constexpr float kHigh = 0.693359375f, kLow = -2.12194440e-4f;
  const Nearest n = nearest(x * 1.44269504f);
  const float r = (x - n.real * kHigh) - n.real * kLow;
  return {n.integer, r + r * r * polynomial(kTerms, r)};
}

inline float exp(float x) {
  const Exponential e = exponential(clamped(x, -104.0f, 89.0f));
  const int32_t half = e.exponent / 2;
  return (1.0f + e.rest) * powerOfTwo(half) * powerOfTwo(e.exponent - half);
}
/// e^x - 1.
inline float expm1(float x) {
  const Exponential e = exponential(clamped(x, -30.0f, 89.0f));
  const float half = powerOfTwo(e.exponent - 1);
  return 2.0f * (half * e.rest + (half - 0.5f));
}
inline float sigmoid(float x) {
  return 1.0f / (1.0f + exp(-x));
}
inline float tanh(float x) {
  const float t = expm1(-2.0f * fabsf(x));
  return copysignf(-t / (t + 2.0f), x);
}
/// e^|x| / 2 without premature overflow.
inline float halfExponential(float x) {
  const float root = exp(0.5f * fabsf(x));
  return 0.5f * root * root;
}
inline float sinh(float x) {
  const float size = fabsf(x), half = halfExponential(x), t = expm1(size < 1.0f ? size : 1.0f);
  return copysignf(size < 1.0f ? 0.5f * (t + t / (t + 1.0f)) : half - 0.25f / half, x);
}
inline float cosh(float x) {
  const float half = halfExponential(x);
  return half + 0.25f / half;
}

inline float erf(float x) {
  static constexpr float kSmall[] = {1.12837917f,    -0.376126385f,    0.112837825f,    -0.0268654307f,
                                     0.00522103181f, -0.000848408044f, 0.000112659594f, -9.66704579e-06f};
  // -log(1 - erf)
  static constexpr float kLarge[] = {-0.000320138052f, 1.13023343f,     0.631826052f,
                                     0.110080083f,     -0.026421136f,   0.00475959629f,
                                     -0.000596805626f, 4.60580427e-05f, -1.63715141e-06f};
  const float size = fabsf(x), small = size < 1.0f ? size : 1.0f;
  const float near = small * polynomial(kSmall, small * small);
  const float far = 1.0f - exp(-polynomial(kLarge, clamped(size, 1.0f, 4.0f)));
  return copysignf(size < 1.0f ? near : far, x);
}
inline float gelu(float x) {
  return 0.5f * x * (1.0f + erf(x * 0.70710678f));
}
inline float geluByTanh(float x) {
  return 0.5f * x * (1.0f + tanh(0.79788456f * (x + 0.044715f * x * x * x)));
}

/// Sine and cosine of x reduced by `quarters` quarter turns.
struct Turn {
  float sine, cosine;
  int32_t quarters;
};
constexpr float kMaxReducedArgument = 512.0f;  // beyond it, more digits of pi are needed
inline Turn turn(float x) {
  static constexpr float kSine[] = {-0.166666667f, 0.00833333186f, -0.000198400783f, 2.72482513e-06f};
  static constexpr float kCosine[] = {0.0416666646f, -0.00138882991f, 2.45466062e-05f};
  // pi / 2 in three parts, the first two of few bits.
  constexpr float kHigh = 1.5703125f, kMiddle = 4.83751297e-4f, kLow = 7.54978995e-8f;
  const Nearest n = nearest(x * 0.636619772f);
  const float r = ((x - n.real * kHigh) - n.real * kMiddle) - n.real * kLow, square = r * r;
  return {r + r * square * polynomial(kSine, square),
          (1.0f - 0.5f * square) + square * square * polynomial(kCosine, square), n.integer};
}
inline float signedBy(float x, int32_t quarters) {
  return (quarters & 2) != 0 ? -x : x;
}
inline float sin(float x) {
  if (fabsf(x) > kMaxReducedArgument) return sinf(x);
  const Turn t = turn(x);
  return signedBy((t.quarters & 1) != 0 ? t.cosine : t.sine, t.quarters);
}
inline float cos(float x) {
  if (fabsf(x) > kMaxReducedArgument) return cosf(x);
  const Turn t = turn(x);
  return signedBy((t.quarters & 1) != 0 ? t.sine : t.cosine, t.quarters + 1);
}
inline float tan(float x) {
  if (fabsf(x) > kMaxReducedArgument) return tanf(x);
  const Turn t = turn(x);
  const bool odd = (t.quarters & 1) != 0;
  return (odd ? -t.cosine : t.sine) / (odd ? t.sine : t.cosine);
}

/// atan(t) for t from 0 to 1.
inline float smallAtan(float t) {
  static constexpr float kTerms[] = {-0.333333331f,   0.199999493f,  -0.142840038f,  0.110882616f,
                                     -0.0893182677f,  0.0703191423f, -0.0489605136f, 0.0263050007f,
                                     -0.00914462956f, 0.00148869189f};
  const float square = t * t;
  return t + t * square * polynomial(kTerms, square);
}
inline float atan(float x) {
  const float size = fabsf(x);
  const bool far = size > 1.0f;
  const float angle = smallAtan(far ? 1.0f / size : size);
  return copysignf(far ? kHalfPi - angle : angle, x);
}
inline float atan2(float y, float x) {
  if (x != x || y != y) return x + y;
  const float high = fabsf(y), wide = fabsf(x);
  const float larger = high > wide ? high : wide, smaller = high > wide ? wide : high;
  const float ratio = larger == 0.0f ? 0.0f : smaller == larger ? 1.0f : smaller / larger;
  float angle = smallAtan(ratio);
  angle = high > wide ? kHalfPi - angle : angle;
  angle = __builtin_signbit(x) ? kPi - angle : angle;
  return copysignf(angle, y);
}
/// asin(|x|) of |x| up to 0.5; else asin(sqrt((1 - |x|) / 2)), which is half of acos(|x|).
inline float arc(float size) {
  static constexpr float kTerms[] = {0.166666663f,  0.0750009454f, 0.0445994015f,
                                     0.0311006628f, 0.0171492382f, 0.0336908474f};
  const bool far = size > 0.5f;
  const float square = far ? (1.0f - size) * 0.5f : size * size;
  const float t = far ? sqrtf(square) : size;
  return t + t * square * polynomial(kTerms, square);
}
inline float asin(float x) {
  const float size = fabsf(x), angle = arc(size);
  return copysignf(size > 0.5f ? kHalfPi - 2.0f * angle : angle, x);
}
inline float acos(float x) {
  const float size = fabsf(x), angle = arc(size);
  const float far = x > 0.0f ? 2.0f * angle : kPi - 2.0f * angle;
  return size > 0.5f ? far : kHalfPi - copysignf(angle, x);
}

inline float log(float x) {
  static constexpr float kTerms[] = {0.333333307f, -0.250003064f, 0.200010451f, -0.166412815f,
                                     0.142144959f, -0.129981838f, 0.126223198f, -0.0790274377f};
  constexpr uint32_t kRootHalf = 0x3f3504f3;  // sqrt(0.5)
  constexpr float kHigh = 0.693359375f, kLow = -2.12194440e-4f, kTiny = 1.17549435e-38f;
  const bool tiny = x < kTiny;
  const uint32_t bits = bitsOf(tiny ? x * 8388608.0f : x) - kRootHalf;
  const auto exponent = static_cast<float>((static_cast<int32_t>(bits) >> 23) - (tiny ? 23 : 0));
  const float f = floatOf((bits & 0x7fffff) + kRootHalf) - 1.0f, square = f * f;
  const float rest = square * f * polynomial(kTerms, f) + exponent * kLow;
  const float odd = x == 0.0f ? -__builtin_inff() : x < 0.0f ? __builtin_nanf("") : x;
  return x > 0.0f && x < __builtin_inff() ? exponent * kHigh + (f + (rest - 0.5f * square)) : odd;
}
/// log(1 + x).
inline float log1p(float x) {
  const float sum = 1.0f + x;
  if (!(sum > 0.0f && sum < __builtin_inff())) return log(sum);
  return log(sum) + (x - (sum - 1.0f)) / sum;
}
constexpr float kFar = 1e4f;  // beyond it, 1 is negligible next to the square
inline float asinh(float x) {
  const float size = fabsf(x);
  const bool far = size > kFar;
  const float near = far ? kFar : size, square = near * near;
  const float sum = log1p(far ? size - 1.0f : near + square / (1.0f + sqrtf(square + 1.0f)));
  return copysignf(far ? sum + kLn2 : sum, x);
}
inline float acosh(float x) {
  const bool far = x > kFar;
  const float near = (far ? kFar : x) - 1.0f;
  const float sum = log1p(far ? x - 1.0f : near + sqrtf(2.0f * near + near * near));
  return far ? sum + kLn2 : sum;
}
inline float atanh(float x) {
  const float size = fabsf(x);
  return copysignf(0.5f * log1p(2.0f * size / (1.0f - size)), x);
}

/// The remainder of a after whole multiples of b, with the sign of a; exact, because it is a float.
inline float fmod(float a, float b) {
  const float size = fabsf(a), by = fabsf(b), quotient = size / by;
  if (!(quotient < 4194304.0f && by > 1e-30f && by < 1e30f)) return fmodf(a, b);
  float rest = __builtin_fmaf(-truncf(quotient), by, size);
  rest = rest < 0.0f ? rest + by : rest;
  rest = rest >= by ? rest - by : rest;
  return copysignf(rest, a);
}

}  // namespace carina::rt::kernels::mathematics
