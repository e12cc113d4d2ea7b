// SPDX-License-Identifier: Apache-2.0
// Row-major matrix products of floats.
#pragma once

#include <cstdint>

#include "base/result.hpp"

namespace carina::onednn {

/// c[m,n] = alpha * a[m,k] b[k,n] + beta * c. With transposeB, b is [n,k]. beta 0 ignores what c holds. One
/// thread.
Status gemm(bool transposeB, int64_t m, int64_t n, int64_t k, float alpha, const float* a, const float* b,
            float beta, float* c);

/// c[m,n] = a^T b with a[k,m] and b[k,n].
Status gemmTransposedLeft(int64_t m, int64_t n, int64_t k, const float* a, const float* b, float* c);

}  // namespace carina::onednn
