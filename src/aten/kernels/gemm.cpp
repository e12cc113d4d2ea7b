// SPDX-License-Identifier: Apache-2.0
#include "aten/kernels/gemm.hpp"

#include "aten/kernels/numeric.hpp"

namespace carina::aten {

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
