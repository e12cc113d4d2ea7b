// SPDX-License-Identifier: Apache-2.0
// Resizing (nearest, linear, cubic, in 1 to 3 dimensions) and grid sampling.
#include <algorithm>
#include <array>
#include <cmath>

#include "aten/kernels/dispatch.hpp"
#include "aten/kernels/kernel.hpp"
#include "aten/sampling.hpp"

namespace carina::aten {
namespace {

/// Nearest, linear, cubic and antialiased: a weighted sum along each spatial dimension.
Result<Kernel> prepareUpsample(const ir::Node& node) {
  // Treated as depth x height x width, with leading sizes of 1.
  CARINA_TRY(std::vector<std::vector<Taps>> taps, resizeTaps(node));
  const Shape& input = node.operand(0)->shape();
  std::array<int64_t, 3> in{1, 1, 1};
  for (size_t d = 0; d < taps.size(); ++d) in[3 - taps.size() + d] = input[2 + d];
  while (taps.size() < 3) taps.insert(taps.begin(), {{Tap{}}});
  return Kernel([in, taps = std::move(taps)](Call& call) -> Status {
    const Tensor& tensor = call.operand(0);
    return forFloat(tensor.dtype(), [&](auto tag) -> Status {
      using T = decltype(tag);
      const int64_t plane = in[0] * in[1] * in[2], planes = tensor.numElements() / plane;
      const T* source = tensor.as<T>().data();
      T* out = call.allocate().mutableAs<T>().data();
      for (int64_t p = 0; p < planes; ++p, source += plane) {
        for (const Taps& zs : taps[0]) {
          for (const Taps& ys : taps[1]) {
            for (const Taps& xs : taps[2]) {
              T sum{0};
              for (const Tap& z : zs) {
                T slab{0};
                for (const Tap& y : ys) {
                  const T* row = source + (z.at * in[1] + y.at) * in[2];
                  T line{0};
                  for (const Tap& x : xs) line += static_cast<T>(x.weight) * row[x.at];
                  slab += static_cast<T>(y.weight) * line;
                }
                sum += static_cast<T>(z.weight) * slab;
              }
              *out++ = sum;
            }
          }
        }
      }
      return {};
    });
  });
}

/// Samples planes or volumes at the positions of a grid [N, positions..., dimensions], x first.
Result<Kernel> prepareGridSampler(const ir::Node& node) {
  CARINA_TRY(const GridSampling sampling, gridSampling(node));
  return Kernel([sampling](Call& call) -> Status {
    const Tensor &input = call.operand(0), &grid = call.operand(1);
    if (input.dtype() != DType::Float32 || grid.dtype() != DType::Float32)
      return unsupportedType(grid.dtype());
    // Treated as depth x height x width; planes have a depth of 1.
    const int64_t dims = input.rank() - 2, channels = input.dim(1);
    const int64_t depth = dims == 3 ? input.dim(2) : 1, height = input.dim(dims), width = input.dim(dims + 1);
    const int64_t volume = depth * height * width, points = grid.numElements() / (grid.dim(0) * dims);
    float* out = call.allocate().mutableAs<float>().data();
    for (int64_t n = 0; n < input.dim(0); ++n) {
      for (int64_t p = 0; p < points; ++p) {
        const float* g = grid.as<float>().data() + (n * points + p) * dims;
        const Taps xs = sampling.taps(g[0], width), ys = sampling.taps(g[1], height);
        const Taps zs = dims == 3 ? sampling.taps(g[2], depth) : Taps{Tap{}};
        for (int64_t c = 0; c < channels; ++c) {
          const float* source = input.as<float>().data() + (n * channels + c) * volume;
          float sum = 0;
          for (const Tap& z : zs) {
            for (const Tap& y : ys) {
              const float* row = source + (z.at * height + y.at) * width;
              for (const Tap& x : xs) sum += row[x.at] * (z.weight * y.weight * x.weight);
            }
          }
          out[(n * channels + c) * points + p] = sum;
        }
      }
    }
    return {};
  });
}

constexpr KernelEntry kResizeKernels[] = {
    {"aten.upsample_nearest1d.vec", prepareUpsample},
    {"aten.upsample_nearest2d.vec", prepareUpsample},
    {"aten.upsample_nearest3d.vec", prepareUpsample},
    {"aten._upsample_nearest_exact1d.vec", prepareUpsample},
    {"aten._upsample_nearest_exact2d.vec", prepareUpsample},
    {"aten._upsample_nearest_exact3d.vec", prepareUpsample},
    {"aten.upsample_linear1d.vec", prepareUpsample},
    {"aten.upsample_bilinear2d.vec", prepareUpsample},
    {"aten.upsample_trilinear3d.vec", prepareUpsample},
    {"aten.upsample_bicubic2d.vec", prepareUpsample},
    {"aten._upsample_bilinear2d_aa.vec", prepareUpsample},
    {"aten._upsample_bicubic2d_aa.vec", prepareUpsample},
    {"aten.grid_sampler.default", prepareGridSampler},
    {"aten.grid_sampler_2d.default", prepareGridSampler},
};

}  // namespace

std::span<const KernelEntry> resizeKernels() {
  return kResizeKernels;
}

}  // namespace carina::aten
