// SPDX-License-Identifier: Apache-2.0
#include "onednn/gemm.hpp"

#include <dnnl.h>

namespace carina::onednn {

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

}  // namespace carina::onednn
