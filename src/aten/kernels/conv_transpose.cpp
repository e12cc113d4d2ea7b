// SPDX-License-Identifier: Apache-2.0
#include "aten/kernels/conv_transpose.hpp"

#include <algorithm>
#include <array>

#include "aten/kernels/gemm.hpp"

namespace carina::aten {
namespace {

using Triple = std::array<int64_t, 3>;

/// One entry per spatial dimension, padded in front to three.
Triple triple(const ir::Ints& values, int64_t filler) {
  Triple result{filler, filler, filler};
  std::copy(values.begin(), values.end(), result.end() - static_cast<std::ptrdiff_t>(values.size()));
  return result;
}

struct Volume {
  Triple in, out, kernel, stride, dilation, padding;
  static int64_t size(const Triple& t) { return t[0] * t[1] * t[2]; }
};

/// Adds one kernel tap of one output channel: `column` has an element per input position.
void addTap(const Volume& v, const Triple& tap, const float* column, float* plane) {
  const Triple shift{tap[0] * v.dilation[0] - v.padding[0], tap[1] * v.dilation[1] - v.padding[1],
                     tap[2] * v.dilation[2] - v.padding[2]};
  for (int64_t z = 0; z < v.in[0]; ++z) {
    const int64_t oz = z * v.stride[0] + shift[0];
    for (int64_t y = 0; y < v.in[1]; ++y, column += v.in[2]) {
      const int64_t oy = y * v.stride[1] + shift[1];
      if (oz < 0 || oz >= v.out[0] || oy < 0 || oy >= v.out[1]) continue;
      float* row = plane + (oz * v.out[1] + oy) * v.out[2];
      for (int64_t x = 0; x < v.in[2]; ++x) {
        const int64_t ox = x * v.stride[2] + shift[2];
        if (ox >= 0 && ox < v.out[2]) row[ox] += column[x];
      }
    }
  }
}

/// Accumulates the columns [channels * taps, input positions] of one group into its output planes.
void foldColumns(const Volume& v, const float* columns, int64_t channels, float* out) {
  const int64_t positions = Volume::size(v.in), plane = Volume::size(v.out);
  for (int64_t c = 0; c < channels; ++c) {
    Triple tap{};
    for (tap[0] = 0; tap[0] < v.kernel[0]; ++tap[0]) {
      for (tap[1] = 0; tap[1] < v.kernel[1]; ++tap[1]) {
        for (tap[2] = 0; tap[2] < v.kernel[2]; ++tap[2], columns += positions)
          addTap(v, tap, columns, out + c * plane);
      }
    }
  }
}

}  // namespace

Kernel transposedKernel(const ConvGeometry& g, const Shape& input) {
  const auto spatial = static_cast<std::ptrdiff_t>(g.spatial);
  const Volume v{triple({input.end() - spatial, input.end()}, 1),
                 triple({g.output.end() - spatial, g.output.end()}, 1),
                 triple(g.kernel, 1),
                 triple(g.stride, 1),
                 triple(g.dilation, 1),
                 triple(g.padBefore, 0)};
  const int64_t batch = g.batched ? input[0] : 1, groups = g.groups, inputs = g.inChannels / g.groups,
                outputs = g.outChannels / g.groups;
  return [=](Call& call) -> Status {
    for (size_t i = 0; i < call.numOperands(); ++i) {
      if (call.operand(i).dtype() != DType::Float32)
        return fail(Code::WrongElementType, "convolutions of type {} are not supported",
                    dtypeName(call.operand(i).dtype()));
    }
    const int64_t positions = Volume::size(v.in), plane = Volume::size(v.out),
                  rows = outputs * Volume::size(v.kernel);
    std::vector<float> columns(static_cast<size_t>(rows * positions));
    const float* in = call.operand(0).as<float>().data();
    const float* weight = call.operand(1).as<float>().data();
    const Tensor* bias = call.named(2);
    float* out = call.allocate().mutableAs<float>().data();
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t group = 0; group < groups; ++group, in += inputs * positions, out += outputs * plane) {
        for (int64_t c = 0; c < outputs; ++c) {
          std::fill_n(out + c * plane, plane,
                      bias ? bias->as<float>()[static_cast<size_t>(group * outputs + c)] : 0.0f);
        }
        CARINA_RETURN_IF_ERROR(
            gemmTransposedLeft(rows, positions, inputs, weight + group * inputs * rows, in, columns.data()));
        foldColumns(v, columns.data(), outputs, out);
      }
    }
    return {};
  };
}

}  // namespace carina::aten
