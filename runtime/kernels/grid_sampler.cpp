// SPDX-License-Identifier: Apache-2.0
// Sampling [N, C, H, W] at the positions of a grid [N, OH, OW, 2] of (x, y) in [-1, 1].
#include <math.h>

#include "call.hpp"
#include "carina/kernels.hpp"

namespace carina::rt::kernels {
namespace {

enum Interpolation : int64_t { kBilinear, kNearest, kBicubic };
enum Padding : int64_t { kZeros, kBorder, kReflection };

/// The elements that a grid coordinate reads along one dimension, and their weights. Elements outside the
/// input are left out.
struct GridTaps {
  uint32_t count = 0;
  size_t offset[4];
  float share[4];
};

/// Keys' cubic kernel with A = -0.75.
float cubic(float x) {
  constexpr float kA = -0.75f;
  x = fabsf(x);
  if (x <= 1.0f) return ((kA + 2.0f) * x - (kA + 3.0f)) * x * x + 1.0f;
  return x < 2.0f ? ((kA * x - 5.0f * kA) * x + 8.0f * kA) * x - 4.0f * kA : 0.0f;
}

struct Sampler {
  const Tensor* input;
  int64_t interpolation, padding;
  bool alignCorners;
  size_t steps[kMaxRank];

  /// Moves a position into dimension 2 (height) or 3 (width) according to the padding mode.
  float bordered(float at, uint32_t dim) const {
    const auto size = static_cast<float>(input->sizes[dim]), last = size - 1.0f;
    if (padding == kZeros) return at;
    if (padding == kReflection) {
      const float low = alignCorners ? 0.0f : -0.5f, span = alignCorners ? last : size;
      if (!(span > 0.0f)) return 0.0f;
      at = fabsf(at - low);
      const float turns = floorf(at / span), extra = at - turns * span;
      at = fmodf(turns, 2.0f) == 0.0f ? extra + low : span - extra + low;
    }
    return at > last ? last : at > 0.0f ? at : 0.0f;
  }

  GridTaps taps(float g, uint32_t dim) const {
    const auto size = static_cast<float>(input->sizes[dim]);
    float at = alignCorners ? (g + 1.0f) / 2.0f * (size - 1.0f) : ((g + 1.0f) * size - 1.0f) / 2.0f;
    GridTaps result;
    const auto add = [&](float where, float share) {
      if (!(where >= 0.0f && where < size)) return;
      result.offset[result.count] = static_cast<size_t>(where) * steps[dim];
      result.share[result.count++] = share;
    };
    if (interpolation != kBicubic) at = bordered(at, dim);
    const float low = floorf(at), fraction = at - low;
    if (interpolation == kNearest) {
      add(nearbyintf(at), 1.0f);
    } else if (interpolation == kBilinear) {
      add(low, 1.0f - fraction);
      add(low + 1.0f, fraction);
    } else {  // padding applies to each element that is read, not to the position
      for (int tap = -1; tap < 3; ++tap)
        add(bordered(low + static_cast<float>(tap), dim), cubic(fraction - static_cast<float>(tap)));
    }
    return result;
  }

  float sample(const float* plane, const GridTaps& rows, const GridTaps& columns) const {
    float sum = 0.0f;
    for (uint32_t i = 0; i < rows.count; ++i) {
      const float* row = plane + rows.offset[i];
      for (uint32_t j = 0; j < columns.count; ++j)
        sum += row[columns.offset[j]] * (rows.share[i] * columns.share[j]);
    }
    return sum;
  }
};

}  // namespace

/// (input, grid, interpolation_mode, padding_mode, align_corners, out)
Status gridSampler2d(KernelContext& context) {
  Call call(context, 6);
  Sampler sampler{call.tensor(0), call.integer(2), call.integer(3), call.boolean(4), {}};
  const Tensor* grid = call.tensor(1);
  Tensor* output = call.output(5);
  if (!call.ok()) return call.status();
  const Tensor& input = *sampler.input;
  if (!isReal(input.type) || !isReal(grid->type) || !isReal(output->type)) return typesDiffer();
  if (input.rank != 4 || grid->rank != 4 || output->rank != 4 || grid->sizes[3] != 2 ||
      input.sizes[0] != grid->sizes[0] || input.sizes[0] != output->sizes[0] ||
      input.sizes[1] != output->sizes[1] || grid->sizes[1] != output->sizes[2] ||
      grid->sizes[2] != output->sizes[3])
    return shapesDiffer();
  if (sampler.interpolation < kBilinear || sampler.interpolation > kBicubic) return outOfRange(2);
  if (sampler.padding < kZeros || sampler.padding > kReflection) return outOfRange(3);
  if (output->elements() == 0) return Status{};
  if (input.elements() == 0) return outOfRange(0);
  size_t gridSteps[kMaxRank], steps[kMaxRank];
  strides(input, sampler.steps);
  strides(*grid, gridSteps);
  strides(*output, steps);
  for (size_t n = 0; n < static_cast<size_t>(output->sizes[0]); ++n) {
    for (size_t i = 0; i < static_cast<size_t>(output->sizes[2]); ++i) {
      for (size_t j = 0; j < static_cast<size_t>(output->sizes[3]); ++j) {
        const float* g = grid->as<const float>() + n * gridSteps[0] + i * gridSteps[1] + j * gridSteps[2];
        const GridTaps columns = sampler.taps(g[0], 3), rows = sampler.taps(g[gridSteps[3]], 2);
        for (size_t c = 0; c < static_cast<size_t>(output->sizes[1]); ++c) {
          const float* plane = input.as<const float>() + n * sampler.steps[0] + c * sampler.steps[1];
          output->as<float>()[n * steps[0] + c * steps[1] + i * steps[2] + j * steps[3]] =
              sampler.sample(plane, rows, columns);
        }
      }
    }
  }
  return Status{};
}

}  // namespace carina::rt::kernels
