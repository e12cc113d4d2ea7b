// SPDX-License-Identifier: Apache-2.0
#include "onednn/gemm.hpp"

#include <algorithm>
#include <dnnl.hpp>

#include "onednn/engine.hpp"

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

bool multipliesBfloat16() {
#if defined(__x86_64__)
  static const bool supported = __builtin_cpu_supports("avx512bf16") != 0;
  return supported;
#else
  return false;
#endif
}

Status gemm(bool transposeB, int64_t m, int64_t n, int64_t k, const uint16_t* a, const uint16_t* b,
            float* c) {
  if (m == 0 || n == 0) return {};
  if (k == 0) {
    std::fill_n(c, m * n, 0.0f);
    return {};
  }
  using dnnl::memory;
  // oneDNN caches the code that it generates for these sizes.
  return run([&](dnnl::stream& stream) {
    const auto matrix = [](int64_t rows, int64_t columns, memory::data_type type, bool transposed) {
      return memory::desc({rows, columns}, type,
                          transposed ? memory::format_tag::ba : memory::format_tag::ab);
    };
    const memory::desc left = matrix(m, k, memory::data_type::bf16, false),
                       right = matrix(k, n, memory::data_type::bf16, transposeB),
                       sums = matrix(m, n, memory::data_type::f32, false);
    const dnnl::matmul product(dnnl::matmul::primitive_desc(dnnl::matmul::desc(left, right, sums), engine()));
    product.execute(stream, {{DNNL_ARG_SRC, memory(left, engine(), const_cast<uint16_t*>(a))},
                             {DNNL_ARG_WEIGHTS, memory(right, engine(), const_cast<uint16_t*>(b))},
                             {DNNL_ARG_DST, memory(sums, engine(), c)}});
  });
}

Status gemmTransposedLeft(int64_t m, int64_t n, int64_t k, const float* a, const float* b, float* c) {
  if (m == 0 || n == 0) return {};
  if (dnnl_sgemm('T', 'N', m, n, k, 1.0f, a, m, b, n, 0.0f, c, n) != dnnl_success) {
    return fail(Code::ToolFailed, "oneDNN cannot multiply [{},{}] by [{},{}]", m, k, k, n);
  }
  return {};
}

}  // namespace carina::onednn
