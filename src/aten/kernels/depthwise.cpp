// SPDX-License-Identifier: Apache-2.0
#include "aten/kernels/depthwise.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "aten/kernels/depthwise_rows.hpp"

namespace carina::aten {
namespace {

/// The outputs of a row for which tap kx of a kernel row is inside the input.
Span outputsOf(const Plane& p, int64_t kx) {
  const int64_t shift = kx * p.dilationW - p.padLeft;  // inX = x * strideW + shift
  return {shift >= 0 ? 0 : (-shift + p.strideW - 1) / p.strideW,
          p.inW - 1 - shift < 0 ? 0 : std::min(p.outW, (p.inW - 1 - shift) / p.strideW + 1)};
}

/// Adds the products of one row of the kernel; `in` and `row` begin at column 0.
void addTaps(const Plane& p, const float* in, const float* weight, float* row) {
  for (int64_t kx = 0; kx < p.kernelW; ++kx) {
    const auto [first, last] = p.outputs[static_cast<size_t>(kx)];
    const int64_t shift = kx * p.dilationW - p.padLeft;
    for (int64_t x = first; x < last; ++x) row[x] += weight[kx] * in[x * p.strideW + shift];
  }
}

/// One channel; taps that are outside the input are skipped.
void convolvePlain(const Plane& p, const float* in, const float* weight, float bias, float* out) {
  for (int64_t y = 0; y < p.outH; ++y, out += p.outW) {
    std::fill_n(out, p.outW, bias);
    for (int64_t ky = 0; ky < p.kernelH; ++ky) {
      const int64_t inY = y * p.strideH - p.padTop + ky * p.dilationH;
      if (inY >= 0 && inY < p.inH) addTaps(p, in + inY * p.inW, weight + ky * p.kernelW, out);
    }
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
  const std::optional<size_t> vectors = scratchOf(plane);
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
    std::vector<float> scratch(vectors.value_or(0));
    const int64_t inPlane = plane.inH * plane.inW, taps = plane.kernelH * plane.kernelW;
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t c = 0; c < channels; ++c) {
        const float* source = in + (b * (channels / perInput) + c / perInput) * inPlane;
        const float start = bias ? bias->as<float>()[static_cast<size_t>(c)] : 0.0f;
        if (vectors)
          convolvePlane(plane, source, weight + c * taps, start, scratch, out);
        else
          convolvePlain(plane, source, weight + c * taps, start, out);
        out += plane.outH * plane.outW;
      }
    }
    return {};
  };
}

}  // namespace carina::aten
