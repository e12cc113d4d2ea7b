// SPDX-License-Identifier: Apache-2.0
// AVG_POOL2D and MAX_POOL2D.

#include <atomic>
#include <cmath>
#include <limits>

#include "base/parallel.hpp"
#include "tosa/kernels/kernel.hpp"
#include "tosa/kernels/scale.hpp"

namespace carina::tosa::kernels {
namespace {

/// Calls window(output offset of the pixel, input pixels in it) for every output pixel, rows in parallel.
/// Padding is excluded; pixels are offsets of their first channel.
template <typename F>
void forWindows(const ir::Node& node, F window) {
  const auto& kernel = node.attributeAs<ir::Ints>(0);
  const auto& stride = node.attributeAs<ir::Ints>(1);
  const auto& pad = node.attributeAs<ir::Ints>(2);
  const Shape &in = node.operand(0)->shape(), &out = node.result()->shape();
  parallelFor(static_cast<size_t>(out[0] * out[1]), [&](size_t at) {
    const auto row = static_cast<int64_t>(at);
    const int64_t n = row / out[1], y0 = row % out[1] * stride[0] - pad[0];
    std::vector<int64_t> pixels;
    for (int64_t ox = 0; ox < out[2]; ++ox) {
      const int64_t x0 = ox * stride[1] - pad[2];
      pixels.clear();
      for (int64_t y = std::max<int64_t>(y0, 0); y < std::min(y0 + kernel[0], in[1]); ++y) {
        for (int64_t x = std::max<int64_t>(x0, 0); x < std::min(x0 + kernel[1], in[2]); ++x) {
          pixels.push_back(((n * in[1] + y) * in[2] + x) * in[3]);
        }
      }
      window((row * out[2] + ox) * out[3], pixels);
    }
  });
}

template <typename T>
Results averageIntegers(const ir::Node& node, Operands operands) {
  Tensor out = resultTensor(node);
  const T* input = operands[0].as<T>().data();
  T* output = out.mutableAs<T>().data();
  const int64_t channels = out.dim(3);
  const int64_t inputZero = operands[1].integerAt(0), outputZero = operands[2].integerAt(0);
  const int64_t low = integerMin(out.dtype()), high = integerMax(out.dtype());
  std::atomic<bool> bad{false};
  forWindows(node, [&](int64_t offset, const std::vector<int64_t>& pixels) {
    const auto count = static_cast<int64_t>(pixels.size());
    const ReciprocalScale scale = reciprocalScale(static_cast<uint32_t>(count));
    for (int64_t c = 0; c < channels; ++c) {
      int64_t sum = -inputZero * count;
      for (int64_t pixel : pixels) sum += input[pixel + c];
      if (sum < INT32_MIN || sum > INT32_MAX) bad = true;
      const int64_t value = applyScale32(sum, scale.multiplier, scale.shift, false) + outputZero;
      output[offset + c] = static_cast<T>(std::min(std::max(value, low), high));
    }
  });
  if (bad) return unpredictable("an accumulator of AVG_POOL2D overflows int32");
  return one(std::move(out));
}

/// The larger of two, with the operator's treatment of NaN.
float larger(float a, float b, bool ignoreNan) {
  if (std::isnan(a)) return ignoreNan ? b : a;
  if (std::isnan(b)) return ignoreNan ? a : b;
  return std::max(a, b);
}

}  // namespace

Results averagePool(const ir::Node& node, Operands operands) {
  if (operands[0].dtype() == DType::Int8) return averageIntegers<int8_t>(node, operands);
  if (operands[0].dtype() == DType::Int16) return averageIntegers<int16_t>(node, operands);
  const Tensor input = asFloat32(operands[0]);
  Tensor out = Tensor::uninitialized(DType::Float32, node.result()->shape());
  const float* x = input.as<float>().data();
  float* y = out.mutableAs<float>().data();
  const int64_t channels = out.dim(3);
  forWindows(node, [&](int64_t offset, const std::vector<int64_t>& pixels) {
    for (int64_t c = 0; c < channels; ++c) {
      double sum = 0;
      for (int64_t pixel : pixels) sum += x[pixel + c];
      y[offset + c] = static_cast<float>(sum / static_cast<double>(pixels.size()));
    }
  });
  return one(roundedTo(node.result()->dtype(), out));
}

Results maxPool(const ir::Node& node, Operands operands) {
  const DType dtype = operands[0].dtype();
  if (isFloat(dtype)) {
    const bool ignoreNan = ir::cast<MaxPool2d>(&node).nanMode() == NanMode::IGNORE;
    const Tensor input = asFloat32(operands[0]);
    Tensor out = Tensor::uninitialized(DType::Float32, node.result()->shape());
    const float* x = input.as<float>().data();
    float* y = out.mutableAs<float>().data();
    const int64_t channels = out.dim(3);
    forWindows(node, [&](int64_t offset, const std::vector<int64_t>& pixels) {
      for (int64_t c = 0; c < channels; ++c) {
        float best =
            ignoreNan ? std::numeric_limits<float>::quiet_NaN() : -std::numeric_limits<float>::infinity();
        for (int64_t pixel : pixels) best = larger(best, x[pixel + c], ignoreNan);
        y[offset + c] = best;
      }
    });
    return one(roundedTo(dtype, out));
  }
  Tensor out = resultTensor(node);
  withIntegerType(dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* x = operands[0].as<T>().data();
    T* y = out.mutableAs<T>().data();
    const int64_t channels = out.dim(3);
    forWindows(node, [&](int64_t offset, const std::vector<int64_t>& pixels) {
      std::fill_n(y + offset, channels, std::numeric_limits<T>::min());
      for (int64_t pixel : pixels) {
        for (int64_t c = 0; c < channels; ++c) y[offset + c] = std::max(y[offset + c], x[pixel + c]);
      }
    });
  });
  return one(std::move(out));
}

}  // namespace carina::tosa::kernels
