// SPDX-License-Identifier: Apache-2.0
// Resizing of [N, C, H, W]: nearest and bilinear. Coordinates are computed in float32 as PyTorch does.
#include <math.h>

#include "carina/kernels.hpp"
#include "region.hpp"

namespace carina::rt::kernels {
namespace {

struct Resize {
  const Tensor* input;
  const Tensor* output;
  bool alignCorners = false;
  float scale[2];  // input elements per output element, for height and width
  size_t from[kMaxRank], to[kMaxRank];

  /// `sizes` and `factors` are argument indices; exactly one of the two is given.
  Status open(Call& call, uint32_t sizes, uint32_t factors) {
    const IntegerList size = call.integers(sizes);
    double factor[2] = {};
    const uint32_t factorCount = call.reals(factors, factor, 2);
    if (!call.ok()) return call.status();
    if (input->type != output->type) return typesDiffer();
    if (input->rank != 4 || output->rank != 4 || input->sizes[0] != output->sizes[0] ||
        input->sizes[1] != output->sizes[1])
      return shapesDiffer();
    if (size.given == (factorCount != 0) || (size.given ? size.count : factorCount) != 2)
      return outOfRange(sizes);
    for (uint32_t i = 0; i < 2; ++i) {
      const int32_t in = input->sizes[2 + i], out = output->sizes[2 + i];
      if (size.given && size.items[i] != out) return shapesDiffer();
      if (in == 0 || out == 0 || (!size.given && !(factor[i] > 0))) return outOfRange(factors);
      if (alignCorners)
        scale[i] = out > 1 ? static_cast<float>(in - 1) / static_cast<float>(out - 1) : 0.0f;
      else
        scale[i] = size.given ? static_cast<float>(in) / static_cast<float>(out)
                              : static_cast<float>(1.0 / factor[i]);
    }
    strides(*input, from);
    strides(*output, to);
    return Status{};
  }
  /// Input index (floor of `source`) within dimension 2 + i.
  size_t within(uint32_t i, float source) const {
    const int64_t at = static_cast<int64_t>(source), last = input->sizes[2 + i] - 1;
    return static_cast<size_t>(at < 0 ? 0 : at < last ? at : last);
  }
  /// Everything but height and width as one box.
  Region planes() const {
    Region region;
    for (uint32_t d = 0; d < 2; ++d)
      region.add(static_cast<size_t>(output->sizes[d]), static_cast<ptrdiff_t>(from[d]),
                 static_cast<ptrdiff_t>(to[d]));
    return region;
  }
};

}  // namespace

/// (input, output_size, scale_factors, out)
Status upsampleNearest2d(KernelContext& context) {
  Call call(context, 4);
  Resize resize{call.tensor(0), call.output(3), false, {}, {}, {}};
  if (!call.ok()) return call.status();
  CARINA_RT_TRY(resize.open(call, 1, 2));
  for (uint32_t i = 0; i < 2; ++i) {  // PyTorch copies or doubles rows whatever the factor
    const int64_t in = resize.input->sizes[2 + i], out = resize.output->sizes[2 + i];
    if (out == in || out == 2 * in) resize.scale[i] = static_cast<float>(in) / static_cast<float>(out);
  }
  if (resize.output->elements() == 0) return Status{};
  const Region planes = resize.planes();
  for (size_t y = 0; y < static_cast<size_t>(resize.output->sizes[2]); ++y) {
    const size_t row = resize.within(0, static_cast<float>(y) * resize.scale[0]) * resize.from[2];
    for (size_t x = 0; x < static_cast<size_t>(resize.output->sizes[3]); ++x) {
      const size_t column = resize.within(1, static_cast<float>(x) * resize.scale[1]) * resize.from[3];
      planes.copy(*resize.input, row + column, *resize.output, y * resize.to[2] + x * resize.to[3]);
    }
  }
  return Status{};
}

namespace {

/// Two neighbours and the weight of the second.
struct Neighbours {
  size_t low, high;
  float fraction;
  Neighbours(const Resize& resize, uint32_t i, size_t o) {
    const float at = static_cast<float>(o), scale = resize.scale[i];
    float source = resize.alignCorners ? at * scale : (at + 0.5f) * scale - 0.5f;
    if (!(source > 0.0f)) source = 0.0f;
    const size_t last = static_cast<size_t>(resize.input->sizes[2 + i] - 1), first = resize.within(i, source);
    const float rest = source - static_cast<float>(first);
    fraction = rest > 1.0f ? 1.0f : rest;
    low = first * resize.from[2 + i];
    high = (first < last ? first + 1 : first) * resize.from[2 + i];
  }
};

}  // namespace

/// (input, output_size, align_corners, scale_factors, out)
Status upsampleBilinear2d(KernelContext& context) {
  Call call(context, 5);
  Resize resize{call.tensor(0), call.output(4), call.boolean(2), {}, {}, {}};
  if (!call.ok()) return call.status();
  if (!isReal(resize.input->type)) return typesDiffer();
  CARINA_RT_TRY(resize.open(call, 1, 3));
  if (resize.output->elements() == 0) return Status{};
  const Tensor& shape = *resize.output;
  for (size_t y = 0; y < static_cast<size_t>(shape.sizes[2]); ++y) {
    const Neighbours rows(resize, 0, y);
    for (size_t x = 0; x < static_cast<size_t>(shape.sizes[3]); ++x) {
      const Neighbours columns(resize, 1, x);
      for (size_t n = 0; n < static_cast<size_t>(shape.sizes[0]); ++n) {
        for (size_t c = 0; c < static_cast<size_t>(shape.sizes[1]); ++c) {
          const float* in = resize.input->as<const float>() + n * resize.from[0] + c * resize.from[1];
          const float left = 1.0f - columns.fraction;
          const float upper =
              left * in[rows.low + columns.low] + columns.fraction * in[rows.low + columns.high];
          const float lower =
              left * in[rows.high + columns.low] + columns.fraction * in[rows.high + columns.high];
          resize.output
              ->as<float>()[n * resize.to[0] + c * resize.to[1] + y * resize.to[2] + x * resize.to[3]] =
              (1.0f - rows.fraction) * upper + rows.fraction * lower;
        }
      }
    }
  }
  return Status{};
}

}  // namespace carina::rt::kernels
