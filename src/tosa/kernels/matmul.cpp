// SPDX-License-Identifier: Apache-2.0
// MATMUL.

#include <algorithm>

#include "base/parallel.hpp"
#include "base/shape.hpp"
#include "onednn/gemm.hpp"
#include "tosa/kernels/blocks.hpp"
#include "tosa/kernels/products.hpp"

namespace carina::tosa::kernels {
namespace {

/// a [N, H, C], b [N, W, C].
template <typename Acc, typename In>
std::vector<Acc> product(const In* a, const In* b, int64_t batch, int64_t height, int64_t width,
                         int64_t channels) {
  std::vector<Acc> sums(static_cast<size_t>(batch * height * width));
  parallelFor(static_cast<size_t>(batch * height), [&](size_t at) {
    const auto row = static_cast<int64_t>(at);
    const In* columns = b + row / height * width * channels;
    for (int64_t w = 0; w < width; ++w) {
      sums[static_cast<size_t>(row * width + w)] =
          dot<Acc>(a + row * channels, columns + w * channels, channels);
    }
  });
  return sums;
}

Status multiply(int64_t m, int64_t n, int64_t k, const float* a, const float* b, float* c) {
  return onednn::gemm(false, m, n, k, 1.0f, a, b, 0.0f, c);
}
Status multiply(int64_t m, int64_t n, int64_t k, const uint16_t* a, const uint16_t* b, float* c) {
  return onednn::gemm(false, m, n, k, a, b, c);
}

/// a [N, H, C] times b [N, C, W], in blocks of rows. T: float, or uint16_t for the bit patterns of bfloat16.
template <typename T>
Result<Tensor> floatProduct(const ir::Node& node, const Tensor& a, const Tensor& b) {
  Tensor out = Tensor::uninitialized(DType::Float32, node.result()->shape());
  const int64_t height = a.dim(1), channels = a.dim(2), width = b.dim(2);
  const T *x = a.as<T>().data(), *y = b.as<T>().data();
  float* sums = out.mutableAs<float>().data();
  constexpr int64_t kRows = 256;
  const int64_t blocks = ceilDiv(height, kRows);
  CARINA_RETURN_IF_ERROR(forBlocks(a.dim(0) * blocks, [&](int64_t i) {
    const int64_t n = i / blocks, first = i % blocks * kRows, rows = std::min(kRows, height - first);
    return multiply(rows, width, channels, x + (n * height + first) * channels, y + n * channels * width,
                    sums + (n * height + first) * width);
  }));
  return out;
}

}  // namespace

Results matmul(const ir::Node& node, Operands operands) {
  const Tensor& a = operands[0];
  if (isFloat(a.dtype())) {
    const Tensor& b = operands[1];
    const bool bfloat16 = a.dtype() == DType::BFloat16 && b.dtype() == DType::BFloat16;
    CARINA_TRY(Tensor sums, bfloat16 && onednn::multipliesBfloat16()
                                ? floatProduct<uint16_t>(node, a, b)
                                : floatProduct<float>(node, asFloat32(a), asFloat32(b)));
    return finishFloats(node, std::move(sums), Tensor());
  }
  // B with its channels innermost, so that both runs are contiguous.
  const std::vector<int64_t> strides = rowMajorStrides(operands[1].shape());
  const int64_t batch = a.dim(0), height = a.dim(1), channels = a.dim(2), width = operands[1].dim(2);
  const Tensor b =
      stridedCopy(operands[1], 0, {batch, width, channels}, {strides[0], strides[2], strides[1]});
  const Tensor noBias;
  const auto x = centered(a, operands[2]), y = centered(b, operands[3]);
  if (fitsInt32(channels, a.dtype(), b.dtype())) {
    return finishIntegers(node, product<int32_t>(x.data(), y.data(), batch, height, width, channels), noBias);
  }
  return finishIntegers(node, product<int64_t>(x.data(), y.data(), batch, height, width, channels), noBias);
}

}  // namespace carina::tosa::kernels
