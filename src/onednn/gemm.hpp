// SPDX-License-Identifier: Apache-2.0
// Row-major matrix products of floats.
#pragma once

#include <cstdint>

#include "base/result.hpp"

namespace carina::onednn {

/// c[m,n] = alpha * a[m,k] b[k,n] + beta * c. With transposeB, b is [n,k]. With beta 0, the contents of c are
/// ignored. One thread.
Status gemm(bool transposeB, int64_t m, int64_t n, int64_t k, float alpha, const float* a, const float* b,
            float beta, float* c);

/// c[m,n] = a^T b with a[k,m] and b[k,n].
Status gemmTransposedLeft(int64_t m, int64_t n, int64_t k, const float* a, const float* b, float* c);

/// Whether this processor multiplies bfloat16 faster than float32.
bool multipliesBfloat16();

/// c[m,n] = a[m,k] b[k,n] with bfloat16 bit patterns, accumulated in float32. With transposeB, b is [n,k].
/// One thread.
Status gemm(bool transposeB, int64_t m, int64_t n, int64_t k, const uint16_t* a, const uint16_t* b, float* c);

}  // namespace carina::onednn
