// SPDX-License-Identifier: Apache-2.0
// FFT2D and RFFT2D as direct transforms of rows, then columns, in double precision: sizes are small, and the
// code stays simple.
#include <cmath>
#include <complex>
#include <numbers>

#include "tosa/kernels/kernel.hpp"

namespace carina::tosa::kernels {
namespace {

using Complex = std::complex<double>;

/// exp(-i * sign * 2 pi k / size) for k in 0..size-1, exact at the quarters.
std::vector<Complex> roots(int64_t size, double sign) {
  std::vector<Complex> list;
  for (int64_t k = 0; k < size; ++k) {
    if (4 * k % size == 0) {
      static constexpr double kCos[] = {1, 0, -1, 0}, kSin[] = {0, 1, 0, -1};
      const auto quarter = static_cast<size_t>(4 * k / size);
      list.emplace_back(kCos[quarter], -sign * kSin[quarter]);
    } else {
      const double angle = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(size);
      list.emplace_back(std::cos(angle), -sign * std::sin(angle));
    }
  }
  return list;
}

/// Transforms `count` elements that are `stride` apart.
void transform(Complex* data, int64_t count, int64_t stride, const std::vector<Complex>& unit) {
  std::vector<Complex> result(static_cast<size_t>(count));
  for (int64_t k = 0; k < count; ++k) {
    Complex sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += data[i * stride] * unit[static_cast<size_t>(i * k % count)];
    result[static_cast<size_t>(k)] = sum;
  }
  for (int64_t k = 0; k < count; ++k) data[k * stride] = result[static_cast<size_t>(k)];
}

}  // namespace

Results fft(const ir::Node& node, Operands operands) {
  const auto complexInput = ir::dynCast<Fft2d>(&node);
  const double sign = complexInput && complexInput.inverse() ? -1 : 1;
  const Tensor& real = operands[0];
  const int64_t batch = real.dim(0), height = real.dim(1), width = real.dim(2);
  const auto rowRoots = roots(width, sign), columnRoots = roots(height, sign);

  Tensor outReal = resultTensor(node, 0), outImag = resultTensor(node, 1);
  const int64_t kept = outReal.dim(2);
  float* re = outReal.mutableAs<float>().data();
  float* im = outImag.mutableAs<float>().data();
  std::vector<Complex> image(static_cast<size_t>(height * width));
  for (int64_t n = 0; n < batch; ++n) {
    for (int64_t i = 0; i < height * width; ++i) {
      const auto at = static_cast<size_t>(n * height * width + i);
      image[static_cast<size_t>(i)] = {real.as<float>()[at],
                                       complexInput ? operands[1].as<float>()[at] : 0.0};
    }
    for (int64_t y = 0; y < height; ++y) transform(image.data() + y * width, width, 1, rowRoots);
    for (int64_t x = 0; x < width; ++x) transform(image.data() + x, height, width, columnRoots);
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < kept; ++x) {
        *re++ = static_cast<float>(image[static_cast<size_t>(y * width + x)].real());
        *im++ = static_cast<float>(image[static_cast<size_t>(y * width + x)].imag());
      }
    }
  }
  return std::vector<Tensor>{std::move(outReal), std::move(outImag)};
}

}  // namespace carina::tosa::kernels
