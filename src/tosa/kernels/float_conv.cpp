// SPDX-License-Identifier: Apache-2.0
#include "tosa/kernels/float_conv.hpp"

#include <algorithm>
#include <memory>

#include "onednn/gemm.hpp"
#include "tosa/kernels/blocks.hpp"

namespace carina::tosa::kernels {
namespace {

/// Elements of the gathered windows of one block: half of a usual second-level cache.
constexpr int64_t kBlockElements = int64_t{1} << 18;

/// The window of one output position, in the order of the weights' elements; zeros outside the input.
template <typename T>
void gather(const Geometry& g, const T* input, int64_t position, T* row) {
  const int64_t ox = position % g.output[2], oy = position / g.output[2] % g.output[1],
                od = position / (g.output[2] * g.output[1]) % g.output[0],
                n = position / (g.output[2] * g.output[1] * g.output[0]);
  const Reach depth = reach(g, 0, od), height = reach(g, 1, oy), width = reach(g, 2, ox);
  const int64_t line = g.kernel[2] * g.channels, columns = width.last - width.first;
  for (int64_t kd = 0; kd < g.kernel[0]; ++kd) {
    for (int64_t ky = 0; ky < g.kernel[1]; ++ky, row += line) {
      const bool inside = kd >= depth.first && kd < depth.last && ky >= height.first && ky < height.last;
      if (!inside || columns <= 0) {
        std::fill_n(row, line, T{});
        continue;
      }
      const int64_t z = depth.origin + kd * g.dilation[0], y = height.origin + ky * g.dilation[1],
                    x = width.origin + width.first * g.dilation[2];
      const T* pixel = input + (((n * g.input[0] + z) * g.input[1] + y) * g.input[2] + x) * g.channels;
      T* to = std::fill_n(row, width.first * g.channels, T{});
      for (int64_t kx = 0; kx < columns; ++kx)
        to = std::copy_n(pixel + kx * g.dilation[2] * g.channels, g.channels, to);
      std::fill(to, row + line, T{});
    }
  }
}

/// Whether the windows are the input's pixels, unchanged and in order.
bool isPointwise(const Geometry& g) {
  bool same = true;
  for (size_t axis = 0; axis < 3; ++axis)
    same = same && g.kernel[axis] == 1 && g.stride[axis] == 1 && g.before[axis] == 0 &&
           g.input[axis] == g.output[axis];
  return same;
}

Status product(int64_t m, int64_t n, int64_t k, const float* a, const float* b, float* c) {
  return onednn::gemm(true, m, n, k, 1.0f, a, b, 0.0f, c);
}
Status product(int64_t m, int64_t n, int64_t k, const uint16_t* a, const uint16_t* b, float* c) {
  return onednn::gemm(true, m, n, k, a, b, c);
}

/// T: float, or uint16_t for the bit patterns of bfloat16.
template <typename T>
Result<Tensor> denseSums(const ir::Node& node, const Geometry& g, const Tensor& input, const Tensor& weight) {
  Tensor out = Tensor::uninitialized(DType::Float32, node.result()->shape());
  const T *x = input.as<T>().data(), *w = weight.as<T>().data();
  float* sums = out.mutableAs<float>().data();
  const int64_t window = g.kernel[0] * g.kernel[1] * g.kernel[2] * g.channels;
  const int64_t rows = g.batch * g.output[0] * g.output[1] * g.output[2];
  const int64_t rowsOfBlock = std::clamp<int64_t>(kBlockElements / std::max<int64_t>(window, 1), 1, 4096);
  const bool pointwise = isPointwise(g);
  CARINA_RETURN_IF_ERROR(forBlocks(ceilDiv(rows, rowsOfBlock), [&](int64_t block) -> Status {
    const int64_t first = block * rowsOfBlock, count = std::min(rowsOfBlock, rows - first);
    float* to = sums + first * g.outChannels;
    if (pointwise) return product(count, g.outChannels, window, x + first * window, w, to);
    const std::unique_ptr<T[]> windows(new T[static_cast<size_t>(count * window)]);
    for (int64_t i = 0; i < count; ++i) gather(g, x, first + i, windows.get() + i * window);
    return product(count, g.outChannels, window, windows.get(), w, to);
  }));
  return out;
}

}  // namespace

Result<Tensor> denseFloats(const ir::Node& node, const Geometry& g, const Tensor& input,
                           const Tensor& weight) {
  if (input.dtype() == DType::BFloat16 && weight.dtype() == DType::BFloat16 && onednn::multipliesBfloat16())
    return denseSums<uint16_t>(node, g, input, weight);
  return denseSums<float>(node, g, asFloat32(input), asFloat32(weight));
}

Tensor depthwiseFloats(const ir::Node& node, const Geometry& g, const Tensor& input, const Tensor& weight) {
  Tensor out = Tensor::zeros(DType::Float32, node.result()->shape());
  const float *x = input.as<float>().data(), *w = weight.as<float>().data();
  float* sums = out.mutableAs<float>().data();
  forOutputRows(g, [&](int64_t n, int64_t, int64_t oy, int64_t offset) {
    const Reach height = reach(g, 1, oy);
    for (int64_t ox = 0; ox < g.output[2]; ++ox) {
      const Reach width = reach(g, 2, ox);
      float* to = sums + offset + ox * g.outChannels;
      for (int64_t ky = height.first; ky < height.last; ++ky) {
        for (int64_t kx = width.first; kx < width.last; ++kx) {
          const int64_t y = height.origin + ky * g.dilation[1], column = width.origin + kx * g.dilation[2];
          const float* pixel = x + ((n * g.input[1] + y) * g.input[2] + column) * g.channels;
          const float* kernel = w + (ky * g.kernel[2] + kx) * g.outChannels;
          for (int64_t c = 0; c < g.channels; ++c) {
            for (int64_t m = 0; m < g.multiplier; ++m)
              to[c * g.multiplier + m] += pixel[c] * kernel[c * g.multiplier + m];
          }
        }
      }
    }
  });
  return out;
}

/// Multiplies every input position by every tap, with one product per row of positions, and adds the results
/// at the positions of the taps.
Result<Tensor> transposedFloats(const ir::Node& node, const Geometry& g, const Tensor& input,
                                const Tensor& weight) {
  Tensor out = Tensor::zeros(DType::Float32, node.result()->shape());
  const float *x = input.as<float>().data(), *w = weight.as<float>().data();
  float* sums = out.mutableAs<float>().data();
  const int64_t taps = g.kernel[1] * g.kernel[2], columns = taps * g.outChannels;
  // Images are processed in parallel; positions within one image add to the same outputs.
  Status done = forBlocks(g.batch, [&](int64_t n) -> Status {
    std::vector<float> products(static_cast<size_t>(g.input[2] * columns));
    for (int64_t iy = 0; iy < g.input[1]; ++iy) {
      const float* row = x + (n * g.input[1] + iy) * g.input[2] * g.channels;
      CARINA_RETURN_IF_ERROR(
          onednn::gemm(true, g.input[2], columns, g.channels, 1.0f, row, w, 0.0f, products.data()));
      for (int64_t ix = 0; ix < g.input[2]; ++ix) {
        for (int64_t tap = 0; tap < taps; ++tap) {
          const int64_t oy = iy * g.stride[1] + g.before[1] + tap / g.kernel[2],
                        ox = ix * g.stride[2] + g.before[2] + tap % g.kernel[2];
          if (oy < 0 || oy >= g.output[1] || ox < 0 || ox >= g.output[2]) continue;
          float* to = sums + ((n * g.output[1] + oy) * g.output[2] + ox) * g.outChannels;
          for (int64_t oc = 0; oc < g.outChannels; ++oc)
            to[oc] += products[static_cast<size_t>(ix * columns + oc * taps + tap)];
        }
      }
    }
    return {};
  });
  CARINA_RETURN_IF_ERROR(std::move(done));
  return out;
}

}  // namespace carina::tosa::kernels
