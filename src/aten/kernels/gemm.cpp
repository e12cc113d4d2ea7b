// SPDX-License-Identifier: Apache-2.0
#include "aten/kernels/gemm.hpp"

#include <dnnl.h>

#include <algorithm>

#include "aten/kernels/numeric.hpp"

namespace carina::aten {

Status gemm(bool transposeB, int64_t m, int64_t n, int64_t k, float alpha, const float* a, const float* b,
            float beta, float* c) {
  if (m == 0 || n == 0) return {};
  if (k == 0) {
    for (int64_t i = 0; i < m * n; ++i) c[i] = beta == 0 ? 0.0f : beta * c[i];
    return {};
  }
  const dnnl_status_t status =
      dnnl_sgemm('N', transposeB ? 'T' : 'N', m, n, k, alpha, a, k, b, transposeB ? k : n, beta, c, n);
  if (status != dnnl_success)
    return fail(Code::ToolFailed, "oneDNN cannot multiply [{},{}] by [{},{}]", m, k, k, n);
  return {};
}

Status gemmTransposedLeft(int64_t m, int64_t n, int64_t k, const float* a, const float* b, float* c) {
  if (m == 0 || n == 0) return {};
  if (dnnl_sgemm('T', 'N', m, n, k, 1.0f, a, m, b, n, 0.0f, c, n) != dnnl_success) {
    return fail(Code::ToolFailed, "oneDNN cannot multiply [{},{}] by [{},{}]", m, k, k, n);
  }
  return {};
}

template <typename T>
void gemmOf(bool transposeB, int64_t m, int64_t n, int64_t k, T alpha, const T* a, const T* b, T beta, T* c) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      T sum{0};
      for (int64_t x = 0; x < k; ++x)
        sum = wrapAdd(sum, wrapMul(a[i * k + x], transposeB ? b[j * k + x] : b[x * n + j]));
      T& out = c[i * n + j];
      out = beta == T{0} ? wrapMul(alpha, sum) : wrapAdd(wrapMul(alpha, sum), wrapMul(beta, out));
    }
  }
}

template void gemmOf(bool, int64_t, int64_t, int64_t, double, const double*, const double*, double, double*);
template void gemmOf(bool, int64_t, int64_t, int64_t, uint8_t, const uint8_t*, const uint8_t*, uint8_t,
                     uint8_t*);
template void gemmOf(bool, int64_t, int64_t, int64_t, int8_t, const int8_t*, const int8_t*, int8_t, int8_t*);
template void gemmOf(bool, int64_t, int64_t, int64_t, int16_t, const int16_t*, const int16_t*, int16_t,
                     int16_t*);
template void gemmOf(bool, int64_t, int64_t, int64_t, int32_t, const int32_t*, const int32_t*, int32_t,
                     int32_t*);
template void gemmOf(bool, int64_t, int64_t, int64_t, int64_t, const int64_t*, const int64_t*, int64_t,
                     int64_t*);

}  // namespace carina::aten
