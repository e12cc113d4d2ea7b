// SPDX-License-Identifier: Apache-2.0
// Sampling [N, C, H, W] at the positions of a grid [N, OH, OW, 2] of (x, y) in [-1, 1].
#include <math.h>

#include "call.hpp"
#include "carina/kernels.hpp"

namespace carina::rt::kernels {
namespace {

enum Interpolation : int64_t { kBilinear, kNearest };
enum Padding : int64_t { kZeros, kBorder, kReflection };

struct Sampler {
  const Tensor* input;
  int64_t interpolation, padding;
  bool alignCorners;
  size_t steps[kMaxRank];

  /// A coordinate of the grid as a position along dimension 2 (height) or 3 (width).
  float position(float g, uint32_t dim) const {
    const auto size = static_cast<float>(input->sizes[dim]), last = size - 1.0f;
    float at = alignCorners ? (g + 1.0f) / 2.0f * last : ((g + 1.0f) * size - 1.0f) / 2.0f;
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

  /// The element of a plane at whole positions, 0 outside.
  float at(const float* plane, float y, float x) const {
    if (!(y >= 0.0f && x >= 0.0f && y < static_cast<float>(input->sizes[2]) &&
          x < static_cast<float>(input->sizes[3])))
      return 0.0f;
    return plane[static_cast<size_t>(y) * steps[2] + static_cast<size_t>(x) * steps[3]];
  }

  float sample(const float* plane, float y, float x) const {
    if (interpolation == kNearest) return at(plane, nearbyintf(y), nearbyintf(x));
    const float top = floorf(y), left = floorf(x), down = y - top, right = x - left;
    return at(plane, top, left) * (1.0f - down) * (1.0f - right) +
           at(plane, top, left + 1.0f) * (1.0f - down) * right +
           at(plane, top + 1.0f, left) * down * (1.0f - right) +
           at(plane, top + 1.0f, left + 1.0f) * down * right;
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
  if (sampler.interpolation != kBilinear && sampler.interpolation != kNearest) return outOfRange(2);
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
        const float x = sampler.position(g[0], 3), y = sampler.position(g[gridSteps[3]], 2);
        for (size_t c = 0; c < static_cast<size_t>(output->sizes[1]); ++c) {
          const float* plane = input.as<const float>() + n * sampler.steps[0] + c * sampler.steps[1];
          output->as<float>()[n * steps[0] + c * steps[1] + i * steps[2] + j * steps[3]] =
              sampler.sample(plane, y, x);
        }
      }
    }
  }
  return Status{};
}

}  // namespace carina::rt::kernels
