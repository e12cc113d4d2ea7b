// SPDX-License-Identifier: Apache-2.0
// Builds the loops of elementwise kernels from functions of single elements.
#pragma once

#include "stream.hpp"

namespace carina::rt::kernels {

template <float (*F)(float)>
bool eachReal(const float* const* in, float* out, size_t count, const Parameter*) {
  for (size_t i = 0; i < count; ++i) out[i] = F(in[0][i]);
  return true;
}
template <int64_t (*F)(int64_t)>
bool eachInteger(const int64_t* const* in, int64_t* out, size_t count, const Parameter*) {
  for (size_t i = 0; i < count; ++i) out[i] = F(in[0][i]);
  return true;
}
template <float (*F)(float, float)>
bool pairReal(const float* const* in, float* out, size_t count, const Parameter*) {
  for (size_t i = 0; i < count; ++i) out[i] = F(in[0][i], in[1][i]);
  return true;
}
template <int64_t (*F)(int64_t, int64_t)>
bool pairInteger(const int64_t* const* in, int64_t* out, size_t count, const Parameter*) {
  for (size_t i = 0; i < count; ++i) out[i] = F(in[0][i], in[1][i]);
  return true;
}

/// Integer arithmetic wraps.
constexpr int64_t wrapAdd(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
constexpr int64_t wrapSub(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
constexpr int64_t wrapMul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

/// (self, out)
Status unary(KernelContext& context, const Functions& functions, Result result);
/// (self, other, out), both tensors or numbers.
Status binary(KernelContext& context, const Functions& functions, Result result);

}  // namespace carina::rt::kernels
