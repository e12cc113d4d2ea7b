// SPDX-License-Identifier: Apache-2.0
#include "aten/kernels/depthwise.hpp"

#include <algorithm>
#include <vector>

namespace carina::aten {
namespace {

/// Outputs of a row.
struct Span {
  int64_t first, last;  // exclusive
};

struct Plane {
  int64_t inH, inW, outH, outW, kernelH, kernelW, strideH, strideW, dilationH, dilationW, padTop, padLeft;
  std::vector<Span> outputs = {};  // outputsOf() each column of the kernel
};

/// row[x] += weight * in[x * stride], with the stride known to the compiler in the common cases.
template <int64_t kStride>
void addTap(float* row, const float* in, int64_t n, int64_t stride, float weight) {
  const int64_t step = kStride ? kStride : stride;
  for (int64_t x = 0; x < n; ++x) row[x] += weight * in[x * step];
}

/// The same for three taps side by side, in one pass over the row; every element adds them in the same order.
template <int64_t kStride>
void addThreeTaps(float* row, const float* in, int64_t n, const float* weight) {
  const float a = weight[0], b = weight[1], c = weight[2];
  for (int64_t x = 0; x < n; ++x) {
    const float* at = in + x * kStride;
    row[x] = ((row[x] + a * at[0]) + b * at[1]) + c * at[2];
  }
}

/// The outputs of a row for which tap kx of the kernel's rows lies inside of the input.
Span outputsOf(const Plane& p, int64_t kx) {
  const int64_t shift = kx * p.dilationW - p.padLeft;  // inX = x * strideW + shift
  return {shift >= 0 ? 0 : (-shift + p.strideW - 1) / p.strideW,
          p.inW - 1 - shift < 0 ? 0 : std::min(p.outW, (p.inW - 1 - shift) / p.strideW + 1)};
}

/// One row of the kernel; `in` and `row` begin at column 0.
void addTaps(const Plane& p, const float* in, const float* weight, float* row) {
  const auto addOne = [&](int64_t kx, Span outputs) {
    const int64_t n = outputs.last - outputs.first;
    if (n <= 0) return;
    const float* source = in + (outputs.first * p.strideW + kx * p.dilationW - p.padLeft);
    if (p.strideW == 1) {
      addTap<1>(row + outputs.first, source, n, 1, weight[kx]);
    } else if (p.strideW == 2) {
      addTap<2>(row + outputs.first, source, n, 2, weight[kx]);
    } else {
      addTap<0>(row + outputs.first, source, n, p.strideW, weight[kx]);
    }
  };
  const bool together = p.kernelW == 3 && p.dilationW == 1 && p.strideW <= 2;
  const Span inner =  // outputs that have all three taps
      together ? Span{p.outputs.front().first, p.outputs.back().last} : Span{0, 0};
  if (inner.first >= inner.last) {
    for (int64_t kx = 0; kx < p.kernelW; ++kx) addOne(kx, p.outputs[static_cast<size_t>(kx)]);
    return;
  }
  for (int64_t kx = 0; kx < p.kernelW; ++kx) {
    const Span outputs = p.outputs[static_cast<size_t>(kx)];
    addOne(kx, {outputs.first, inner.first});
    addOne(kx, {inner.last, outputs.last});
  }
  const float* source = in + (inner.first * p.strideW - p.padLeft);
  (p.strideW == 1 ? addThreeTaps<1> : addThreeTaps<2>)(row + inner.first, source, inner.last - inner.first,
                                                       weight);
}

/// One output row; taps that fall outside of the input are left out.
void convolveRow(const Plane& p, const float* in, const float* weight, float bias, int64_t y, float* row) {
  std::fill_n(row, p.outW, bias);
  for (int64_t ky = 0; ky < p.kernelH; ++ky) {
    const int64_t inY = y * p.strideH - p.padTop + ky * p.dilationH;
    if (inY >= 0 && inY < p.inH) addTaps(p, in + inY * p.inW, weight + ky * p.kernelW, row);
  }
}

}  // namespace

bool isDepthwise(const ConvGeometry& geometry) {
  return geometry.spatial == 2 && !geometry.transposed && geometry.groups == geometry.inChannels &&
         geometry.groups > 1;
}

Kernel depthwiseKernel(const ConvGeometry& g, const Shape& input) {
  const size_t n = g.output.size(), i = input.size();
  Plane plane{input[i - 2], input[i - 1], g.output[n - 2], g.output[n - 1], g.kernel[0],    g.kernel[1],
              g.stride[0],  g.stride[1],  g.dilation[0],   g.dilation[1],   g.padBefore[0], g.padBefore[1]};
  for (int64_t kx = 0; kx < plane.kernelW; ++kx) plane.outputs.push_back(outputsOf(plane, kx));
  const int64_t batch = g.batched ? input[0] : 1, channels = g.outChannels,
                perInput = channels / g.inChannels;
  return [=](Call& call) -> Status {
    for (size_t operand = 0; operand < call.numOperands(); ++operand) {
      if (call.operand(operand).dtype() != DType::Float32)
        return fail(Code::WrongElementType, "convolutions of type {} are not supported",
                    dtypeName(call.operand(operand).dtype()));
    }
    const float* in = call.operand(0).as<float>().data();
    const float* weight = call.operand(1).as<float>().data();
    const Tensor* bias = call.named(2);
    float* out = call.allocate().mutableAs<float>().data();
    const int64_t inPlane = plane.inH * plane.inW, taps = plane.kernelH * plane.kernelW;
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t c = 0; c < channels; ++c) {
        const float* source = in + (b * (channels / perInput) + c / perInput) * inPlane;
        const float start = bias ? bias->as<float>()[static_cast<size_t>(c)] : 0.0f;
        for (int64_t y = 0; y < plane.outH; ++y, out += plane.outW) {
          convolveRow(plane, source, weight + c * taps, start, y, out);
        }
      }
    }
    return {};
  };
}

}  // namespace carina::aten
