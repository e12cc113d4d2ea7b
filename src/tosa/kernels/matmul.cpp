// SPDX-License-Identifier: Apache-2.0
// MATMUL.
#include <oneapi/tbb/parallel_for.h>

#include "tosa/kernels/products.hpp"

namespace carina::tosa::kernels {
namespace {

/// a [N, H, C], b [N, W, C].
template <typename Acc, typename In>
std::vector<Acc> product(const In* a, const In* b, int64_t batch, int64_t height, int64_t width,
                         int64_t channels) {
  std::vector<Acc> sums(static_cast<size_t>(batch * height * width));
  tbb::parallel_for(int64_t{0}, batch * height, [&](int64_t row) {
    const In* columns = b + row / height * width * channels;
    for (int64_t w = 0; w < width; ++w) {
      sums[static_cast<size_t>(row * width + w)] =
          dot<Acc>(a + row * channels, columns + w * channels, channels);
    }
  });
  return sums;
}

}  // namespace

Results matmul(const ir::Node& node, Operands operands) {
  const Tensor& a = operands[0];
  // B with its channels innermost, so that both runs are contiguous.
  const std::vector<int64_t> strides = rowMajorStrides(operands[1].shape());
  const int64_t batch = a.dim(0), height = a.dim(1), channels = a.dim(2), width = operands[1].dim(2);
  const Tensor b =
      stridedCopy(operands[1], 0, {batch, width, channels}, {strides[0], strides[2], strides[1]});
  const Tensor noBias;
  if (isFloat(a.dtype())) {
    const auto x = asDoubles(a), y = asDoubles(b);
    return finishFloats(node, product<double>(x.data(), y.data(), batch, height, width, channels), noBias);
  }
  const auto x = centered(a, operands[2]), y = centered(b, operands[3]);
  if (fitsInt32(channels, a.dtype(), b.dtype())) {
    return finishIntegers(node, product<int32_t>(x.data(), y.data(), batch, height, width, channels), noBias);
  }
  return finishIntegers(node, product<int64_t>(x.data(), y.data(), batch, height, width, channels), noBias);
}

}  // namespace carina::tosa::kernels
