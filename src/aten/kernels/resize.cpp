// SPDX-License-Identifier: Apache-2.0
// Resizing (nearest, linear, cubic, in 1 to 3 dimensions) and grid sampling.
#include <algorithm>
#include <array>
#include <cmath>

#include "aten/geometry.hpp"
#include "aten/kernels/dispatch.hpp"
#include "aten/kernels/kernel.hpp"

namespace carina::aten {
namespace {

/// One output coordinate as a weighted sum of source coordinates.
struct Taps {
  int count = 1;
  std::array<int64_t, 4> at{};
  std::array<float, 4> weight{1, 0, 0, 0};
};
enum class Mode : uint8_t { Nearest, NearestExact, Linear, Cubic };

/// Weights of Keys' cubic kernel with A = -0.75 for the four neighbours at fraction t.
std::array<float, 4> cubicWeights(float t) {
  constexpr float kA = -0.75f;
  const auto inner = [](float x) { return ((kA + 2) * x - (kA + 3)) * x * x + 1; };
  const auto outer = [](float x) { return ((kA * x - 5 * kA) * x + 8 * kA) * x - 4 * kA; };
  return {outer(t + 1), inner(t), inner(1 - t), outer(2 - t)};
}

/// Coordinates are computed in float32 as PyTorch does.
Taps tapsOf(Mode mode, int64_t o, int64_t size, float scale, bool align) {
  Taps taps;
  const auto at = static_cast<float>(o);
  if (mode == Mode::Nearest || mode == Mode::NearestExact) {
    const float source = mode == Mode::Nearest ? at * scale : (at + 0.5f) * scale;
    taps.at[0] = std::min(static_cast<int64_t>(std::floor(source)), size - 1);
    return taps;
  }
  float source = align ? at * scale : (at + 0.5f) * scale - 0.5f;
  if (mode == Mode::Linear) {
    source = std::max(source, 0.0f);
    const int64_t low = std::min(static_cast<int64_t>(source), size - 1);
    const float fraction = std::clamp(source - static_cast<float>(low), 0.0f, 1.0f);
    taps.count = 2;
    taps.at = {low, low + (low < size - 1 ? 1 : 0), 0, 0};
    taps.weight = {1 - fraction, fraction, 0, 0};
    return taps;
  }
  const float floor = std::floor(source);
  taps.count = 4;
  for (int k = 0; k < 4; ++k) {
    taps.at[static_cast<size_t>(k)] = std::clamp<int64_t>(static_cast<int64_t>(floor) - 1 + k, 0, size - 1);
  }
  taps.weight = cubicWeights(source - floor);
  return taps;
}

Mode modeOf(std::string_view name) {
  if (name.find("nearest_exact") != std::string_view::npos) return Mode::NearestExact;
  if (name.find("nearest") != std::string_view::npos) return Mode::Nearest;
  return name.find("bicubic") != std::string_view::npos ? Mode::Cubic : Mode::Linear;
}

Result<Kernel> prepareUpsample(const ir::Node& node) {
  CARINA_TRY(const ResizeGeometry g, resizeGeometry(node));
  const Shape& input = node.operand(0)->shape();
  const Mode mode = modeOf(node.opName());
  // Seen as depth x height x width with sizes of 1 in front.
  std::array<std::vector<Taps>, 3> taps;
  std::array<int64_t, 3> in{1, 1, 1};
  for (size_t d = 0; d < 3; ++d) {
    if (d < 3 - g.spatial) {
      taps[d].push_back(Taps{});
      continue;
    }
    const size_t i = d - (3 - g.spatial);
    in[d] = input[2 + i];
    if (in[d] <= 0) return fail("an empty tensor cannot be resized");
    for (int64_t o = 0; o < g.output[2 + i]; ++o)
      taps[d].push_back(tapsOf(mode, o, in[d], g.scale[i], g.alignCorners));
  }
  return Kernel([in, taps = std::move(taps)](Call& call) -> Status {
    const Tensor& tensor = call.operand(0);
    return forFloat(tensor.dtype(), [&](auto tag) -> Status {
      using T = decltype(tag);
      const int64_t plane = in[0] * in[1] * in[2], planes = tensor.numElements() / plane;
      const T* source = tensor.as<T>().data();
      T* out = call.allocate().mutableAs<T>().data();
      for (int64_t p = 0; p < planes; ++p, source += plane) {
        for (const Taps& z : taps[0]) {
          for (const Taps& y : taps[1]) {
            for (const Taps& x : taps[2]) {
              T sum{0};
              for (size_t i = 0; i < static_cast<size_t>(z.count); ++i) {
                T slab{0};
                for (size_t j = 0; j < static_cast<size_t>(y.count); ++j) {
                  const T* row = source + (z.at[i] * in[1] + y.at[j]) * in[2];
                  T line{0};
                  for (size_t k = 0; k < static_cast<size_t>(x.count); ++k)
                    line += static_cast<T>(x.weight[k]) * row[x.at[k]];
                  slab += static_cast<T>(y.weight[j]) * line;
                }
                sum += static_cast<T>(z.weight[i]) * slab;
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

/// Antialiased weights of one output coordinate: the kernel is stretched by the scale when it shrinks, and
/// normalised.
struct WideTaps {
  int64_t first = 0;
  std::vector<float> weights;
};

WideTaps wideTaps(bool cubic, int64_t o, int64_t size, float scale) {
  const float stretch = std::max(scale, 1.0f), support = (cubic ? 2.0f : 1.0f) * stretch;
  const float centre = scale * (static_cast<float>(o) + 0.5f);
  WideTaps taps;
  taps.first = std::max<int64_t>(static_cast<int64_t>(centre - support + 0.5f), 0);
  const int64_t end = std::min(static_cast<int64_t>(centre + support + 0.5f), size);
  const auto kernel = [cubic](float x) {
    constexpr float kA = -0.5f;
    x = std::abs(x);
    if (!cubic) return x < 1 ? 1 - x : 0.0f;
    if (x < 1) return ((kA + 2) * x - (kA + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * kA : 0.0f;
  };
  float total = 0;
  for (int64_t i = taps.first; i < end; ++i) {
    taps.weights.push_back(kernel((static_cast<float>(i) - centre + 0.5f) / stretch));
    total += taps.weights.back();
  }
  for (float& weight : taps.weights) weight /= total;
  return taps;
}

Result<Kernel> prepareAntialias(const ir::Node& node) {
  CARINA_TRY(const ResizeGeometry g, resizeGeometry(node));
  const Shape& input = node.operand(0)->shape();
  const bool cubic = node.opName().find("bicubic") != std::string_view::npos;
  std::array<std::vector<WideTaps>, 2> taps;
  for (size_t d = 0; d < 2; ++d) {
    if (input[2 + d] <= 0) return fail("an empty tensor cannot be resized");
    for (int64_t o = 0; o < g.output[2 + d]; ++o)
      taps[d].push_back(wideTaps(cubic, o, input[2 + d], g.scale[d]));
  }
  return Kernel([taps = std::move(taps)](Call& call) -> Status {
    const Tensor& tensor = call.operand(0);
    const int64_t height = tensor.dim(2), width = tensor.dim(3), planes = tensor.dim(0) * tensor.dim(1);
    return forFloat(tensor.dtype(), [&](auto tag) -> Status {
      using T = decltype(tag);
      const T* source = tensor.as<T>().data();
      T* out = call.allocate().mutableAs<T>().data();
      for (int64_t p = 0; p < planes; ++p, source += height * width) {
        for (const WideTaps& y : taps[0]) {
          for (const WideTaps& x : taps[1]) {
            T sum{0};
            for (size_t j = 0; j < y.weights.size(); ++j) {
              const T* row = source + (y.first + static_cast<int64_t>(j)) * width + x.first;
              T line{0};
              for (size_t i = 0; i < x.weights.size(); ++i) line += static_cast<T>(x.weights[i]) * row[i];
              sum += static_cast<T>(y.weights[j]) * line;
            }
            *out++ = sum;
          }
        }
      }
      return {};
    });
  });
}

enum class Border : int64_t { Zeros = 0, Clamp = 1, Reflection = 2 };

/// A normalised coordinate in [-1, 1] as a source position.
float sourcePosition(float g, int64_t size, Border border, bool align) {
  float at =
      align ? (g + 1) / 2 * static_cast<float>(size - 1) : ((g + 1) * static_cast<float>(size) - 1) / 2;
  if (border == Border::Zeros) return at;
  const auto last = static_cast<float>(size - 1);
  if (border == Border::Reflection) {
    const float low = align ? 0.0f : -0.5f, span = align ? last : static_cast<float>(size);
    if (span <= 0) return 0;
    at = std::abs(at - low);
    const float turns = std::floor(at / span), extra = at - turns * span;
    at = std::fmod(turns, 2.0f) == 0 ? extra + low : span - extra + low;
  }
  return std::clamp(at, 0.0f, last);
}

/// Bilinear (0) and nearest (1) sampling at grid positions.
Result<Kernel> prepareGridSampler(const ir::Node& node) {
  const Arguments a(node);
  const int64_t interpolation = a.integer("interpolation_mode"), padding = a.integer("padding_mode");
  const bool align = a.boolean("align_corners");
  if (interpolation != 0 && interpolation != 1)
    return fail("grid_sampler with bicubic interpolation; use bilinear");
  if (padding < 0 || padding > 2) return fail("padding mode {} is not known", padding);
  return Kernel([=](Call& call) -> Status {
    const Tensor &input = call.operand(0), &grid = call.operand(1);
    if (input.dtype() != DType::Float32 || grid.dtype() != DType::Float32)
      return unsupportedType(grid.dtype());
    const int64_t channels = input.dim(1), height = input.dim(2), width = input.dim(3),
                  points = grid.dim(1) * grid.dim(2);
    float* out = call.allocate().mutableAs<float>().data();
    for (int64_t n = 0; n < input.dim(0); ++n) {
      for (int64_t p = 0; p < points; ++p) {
        const float* g = grid.as<float>().data() + (n * points + p) * 2;
        const float x = sourcePosition(g[0], width, static_cast<Border>(padding), align);
        const float y = sourcePosition(g[1], height, static_cast<Border>(padding), align);
        for (int64_t c = 0; c < channels; ++c) {
          const float* plane = input.as<float>().data() + (n * channels + c) * height * width;
          const auto value = [&](float fy, float fx) {
            const bool inside =
                fy >= 0 && fx >= 0 && fy < static_cast<float>(height) && fx < static_cast<float>(width);
            return inside ? plane[static_cast<int64_t>(fy) * width + static_cast<int64_t>(fx)] : 0.0f;
          };
          float& to = out[(n * channels + c) * points + p];
          if (interpolation == 1) {
            to = value(std::nearbyint(y), std::nearbyint(x));
          } else {
            const float x0 = std::floor(x), y0 = std::floor(y), fx = x - x0, fy = y - y0;
            to = value(y0, x0) * (1 - fy) * (1 - fx) + value(y0, x0 + 1) * (1 - fy) * fx +
                 value(y0 + 1, x0) * fy * (1 - fx) + value(y0 + 1, x0 + 1) * fy * fx;
          }
        }
      }
    }
    return {};
  });
}

constexpr KernelEntry kKernels[] = {
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
    {"aten._upsample_bilinear2d_aa.vec", prepareAntialias},
    {"aten._upsample_bicubic2d_aa.vec", prepareAntialias},
    {"aten.grid_sampler.default", prepareGridSampler},
    {"aten.grid_sampler_2d.default", prepareGridSampler},
};

}  // namespace

std::span<const KernelEntry> resizeKernels() {
  return kKernels;
}

}  // namespace carina::aten
