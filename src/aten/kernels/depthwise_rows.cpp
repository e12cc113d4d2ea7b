// SPDX-License-Identifier: Apache-2.0
// Compiled without floating-point contraction: unrounded products would differ between machines.
#include "aten/kernels/depthwise_rows.hpp"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "aten/kernels/depthwise_rows.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#ifndef CARINA_DEPTHWISE_WIDTH
#define CARINA_DEPTHWISE_WIDTH
namespace carina::aten {

constexpr int64_t kMaxLanes = 16;

/// Width of a row padded with zeros, so that vectors may extend beyond its data.
inline int64_t paddedWidth(const Plane& p) {
  return std::max(p.padLeft + p.inW, p.outW * p.strideW + p.kernelW * p.dilationW) + 2 * kMaxLanes;
}

}  // namespace carina::aten
#endif

HWY_BEFORE_NAMESPACE();
namespace carina::aten::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// in[0], in[kStride], ...
template <int64_t kStride, typename D>
HWY_INLINE hn::Vec<D> loadTap(D d, const float* in) {
  if constexpr (kStride == 1) {
    return hn::LoadU(d, in);
  } else {
    hn::Vec<D> even, odd;
    hn::LoadInterleaved2(d, in, even, odd);
    return even;
  }
}

/// Computes one vector of outputs, starting at x, in every row. Lanes beyond the end of a row are overwritten
/// by the next row.
template <int64_t kStride, bool kInner>
HWY_INLINE void columnOfVectors(const Plane& p, int64_t width, const float* rows, const float* weight,
                                float bias, int64_t x, float* out) {
  const hn::CappedTag<float, kMaxLanes> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  // Mask of the lanes below a column of outputs.
  const auto below = [&](int64_t column) {
    return hn::FirstN(d, static_cast<size_t>(std::clamp<int64_t>(column - x, 0, lanes)));
  };
  for (int64_t y = 0; y < p.outH; ++y) {
    auto sum = hn::Set(d, bias);
    for (int64_t ky = 0; ky < p.kernelH; ++ky) {
      const int64_t inY = y * p.strideH - p.padTop + ky * p.dilationH;
      if (inY < 0 || inY >= p.inH) continue;
      const float* row = rows + inY * width + x * kStride;
      for (int64_t kx = 0; kx < p.kernelW; ++kx) {
        const auto product =
            hn::Mul(loadTap<kStride>(d, row + kx * p.dilationW), hn::Set(d, weight[ky * p.kernelW + kx]));
        const auto more = hn::Add(sum, product);
        if constexpr (kInner) {
          sum = more;
        } else {
          const Span outputs = p.outputs[static_cast<size_t>(kx)];
          sum = hn::IfThenElse(hn::AndNot(below(outputs.first), below(outputs.last)), more, sum);
        }
      }
    }
    const int64_t at = y * p.outW + x, left = p.outH * p.outW - at;
    if (left >= lanes) {
      hn::StoreU(sum, d, out + at);
    } else {
      alignas(64) float last[kMaxLanes];
      hn::Store(sum, d, last);
      std::copy_n(last, std::min(left, p.outW - x), out + at);
    }
  }
}

template <int64_t kStride>
void planeKernel(const Plane& p, const float* in, const float* weight, float bias, float* scratch,
                 float* out) {
  const int64_t width = paddedWidth(p);
  for (int64_t y = 0; y < p.inH; ++y) std::copy_n(in + y * p.inW, p.inW, scratch + y * width + p.padLeft);
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::CappedTag<float, kMaxLanes>()));
  int64_t first = 0, last = p.outW;  // outputs that have all taps
  for (const Span& outputs : p.outputs) {
    first = std::max(first, outputs.first);
    last = std::min(last, outputs.last);
  }
  for (int64_t begin = 0; begin < p.outW; begin += lanes) {
    // The last vector of several is aligned with the end of the row.
    const int64_t x = std::min(begin, std::max<int64_t>(0, p.outW - lanes));
    if (x >= first && std::min(x + lanes, p.outW) <= last)
      columnOfVectors<kStride, true>(p, width, scratch, weight, bias, x, out);
    else
      columnOfVectors<kStride, false>(p, width, scratch, weight, bias, x, out);
  }
}

void anyPlaneKernel(const Plane& p, const float* in, const float* weight, float bias, float* scratch,
                    float* out) {
  (p.strideW == 1 ? planeKernel<1> : planeKernel<2>)(p, in, weight, bias, scratch, out);
}

}  // namespace carina::aten::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace carina::aten {
namespace {
HWY_EXPORT(anyPlaneKernel);
}  // namespace

std::optional<size_t> scratchOf(const Plane& plane) {
  const int64_t width = paddedWidth(plane);
  if (plane.strideW > 2 || width > 2 * plane.inW + 4 * kMaxLanes) return std::nullopt;
  return static_cast<size_t>(plane.inH * width);
}

void convolvePlane(const Plane& plane, const float* in, const float* weight, float bias,
                   std::span<float> scratch, float* out) {
  HWY_DYNAMIC_DISPATCH(anyPlaneKernel)(plane, in, weight, bias, scratch.data(), out);
}

}  // namespace carina::aten
#endif
