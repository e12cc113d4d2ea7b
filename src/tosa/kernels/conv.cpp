// SPDX-License-Identifier: Apache-2.0
// The convolutions. Two-dimensional ones are treated as three-dimensional with depth 1. The inner loops run
// over contiguous channels (and kernel columns if the dilation is 1), the outer ones over output rows in
// parallel.
#include "tosa/kernels/float_conv.hpp"
#include "tosa/kernels/products.hpp"

namespace carina::tosa::kernels {
namespace {

Geometry geometryOf(const ir::Node& node, const ir::Ints& pad, const ir::Ints& stride,
                    const ir::Ints& dilation, size_t kernelAxis) {
  const Shape &input = node.operand(0)->shape(), &weight = node.operand(1)->shape(),
              &output = node.result()->shape();
  Geometry g{};
  g.batch = input[0];
  g.channels = input.back();
  g.outChannels = output.back();
  g.multiplier = g.outChannels / g.channels;
  const size_t dimensions = input.size() - 2, skip = 3 - dimensions;
  for (size_t i = 0; i < 3; ++i) {
    const bool present = i >= skip;
    const size_t k = present ? i - skip : 0;
    g.input[i] = present ? input[1 + k] : 1;
    g.output[i] = present ? output[1 + k] : 1;
    g.kernel[i] = present ? weight[kernelAxis + k] : 1;
    g.stride[i] = present ? stride[k] : 1;
    g.dilation[i] = present && !dilation.empty() ? dilation[k] : 1;
    g.before[i] = present ? pad[2 * k] : 0;
  }
  return g;
}

/// Weight [OC, KD, KH, KW, IC].
template <typename Acc, typename In>
std::vector<Acc> dense(const Geometry& g, const In* input, const In* weight) {
  std::vector<Acc> sums(
      static_cast<size_t>(g.batch * g.output[0] * g.output[1] * g.output[2] * g.outChannels), Acc{0});
  const int64_t kernelSize = g.kernel[0] * g.kernel[1] * g.kernel[2] * g.channels;
  forOutputRows(g, [&](int64_t n, int64_t od, int64_t oy, int64_t offset) {
    const Reach depth = reach(g, 0, od), height = reach(g, 1, oy);
    for (int64_t ox = 0; ox < g.output[2]; ++ox) {
      const Reach width = reach(g, 2, ox);
      const int64_t columns = width.last - width.first;
      if (columns <= 0) continue;
      Acc* out = sums.data() + offset + ox * g.outChannels;
      for (int64_t kd = depth.first; kd < depth.last; ++kd) {
        for (int64_t ky = height.first; ky < height.last; ++ky) {
          const int64_t z = depth.origin + kd * g.dilation[0], y = height.origin + ky * g.dilation[1];
          const int64_t x = width.origin + width.first * g.dilation[2];
          const In* image = input + (((n * g.input[0] + z) * g.input[1] + y) * g.input[2] + x) * g.channels;
          const In* kernel = weight + ((kd * g.kernel[1] + ky) * g.kernel[2] + width.first) * g.channels;
          if (g.dilation[2] == 1) {
            for (int64_t oc = 0; oc < g.outChannels; ++oc) {
              out[oc] += dot<Acc>(image, kernel + oc * kernelSize, columns * g.channels);
            }
            continue;
          }
          for (int64_t kx = 0; kx < columns; ++kx) {
            const In* pixel = image + kx * g.dilation[2] * g.channels;
            for (int64_t oc = 0; oc < g.outChannels; ++oc) {
              out[oc] += dot<Acc>(pixel, kernel + oc * kernelSize + kx * g.channels, g.channels);
            }
          }
        }
      }
    }
  });
  return sums;
}

/// Weight [KH, KW, C, M].
template <typename Acc, typename In>
std::vector<Acc> depthwise(const Geometry& g, const In* input, const In* weight) {
  std::vector<Acc> sums(static_cast<size_t>(g.batch * g.output[1] * g.output[2] * g.outChannels), Acc{0});
  forOutputRows(g, [&](int64_t n, int64_t, int64_t oy, int64_t offset) {
    const Reach height = reach(g, 1, oy);
    for (int64_t ox = 0; ox < g.output[2]; ++ox) {
      const Reach width = reach(g, 2, ox);
      Acc* out = sums.data() + offset + ox * g.outChannels;
      for (int64_t ky = height.first; ky < height.last; ++ky) {
        for (int64_t kx = width.first; kx < width.last; ++kx) {
          const int64_t y = height.origin + ky * g.dilation[1], x = width.origin + kx * g.dilation[2];
          const In* pixel = input + ((n * g.input[1] + y) * g.input[2] + x) * g.channels;
          const In* kernel = weight + (ky * g.kernel[2] + kx) * g.outChannels;
          if (g.multiplier == 1) {
            for (int64_t c = 0; c < g.channels; ++c)
              out[c] += static_cast<Acc>(pixel[c]) * static_cast<Acc>(kernel[c]);
            continue;
          }
          for (int64_t c = 0; c < g.channels; ++c) {
            for (int64_t m = 0; m < g.multiplier; ++m) {
              const int64_t o = c * g.multiplier + m;
              out[o] += static_cast<Acc>(pixel[c]) * static_cast<Acc>(kernel[o]);
            }
          }
        }
      }
    }
  });
  return sums;
}

/// Weight [OC, KH, KW, IC]; an output position gathers what the input positions would scatter to it.
template <typename Acc, typename In>
std::vector<Acc> transposed(const Geometry& g, const In* input, const In* weight) {
  std::vector<Acc> sums(static_cast<size_t>(g.batch * g.output[1] * g.output[2] * g.outChannels), Acc{0});
  const auto source = [&g](size_t axis, int64_t out, int64_t k) -> int64_t {  // input position, or -1
    const int64_t scaled = out - g.before[axis] - k;
    if (scaled < 0 || scaled % g.stride[axis] != 0 || scaled / g.stride[axis] >= g.input[axis]) return -1;
    return scaled / g.stride[axis];
  };
  const int64_t kernelSize = g.kernel[1] * g.kernel[2] * g.channels;
  forOutputRows(g, [&](int64_t n, int64_t, int64_t oy, int64_t offset) {
    for (int64_t ky = 0; ky < g.kernel[1]; ++ky) {
      const int64_t iy = source(1, oy, ky);
      if (iy < 0) continue;
      for (int64_t ox = 0; ox < g.output[2]; ++ox) {
        for (int64_t kx = 0; kx < g.kernel[2]; ++kx) {
          const int64_t ix = source(2, ox, kx);
          if (ix < 0) continue;
          const In* pixel = input + ((n * g.input[1] + iy) * g.input[2] + ix) * g.channels;
          const In* kernel = weight + (ky * g.kernel[2] + kx) * g.channels;
          Acc* out = sums.data() + offset + ox * g.outChannels;
          for (int64_t oc = 0; oc < g.outChannels; ++oc)
            out[oc] += dot<Acc>(pixel, kernel + oc * kernelSize, g.channels);
        }
      }
    }
  });
  return sums;
}

template <typename Acc, typename In>
std::vector<Acc> convolve(const ir::Node& node, const Geometry& g, const In* input, const In* weight) {
  switch (opId(&node)) {
    case OpId::DepthwiseConv2d:
      return depthwise<Acc>(g, input, weight);
    case OpId::TransposeConv2d:
      return transposed<Acc>(g, input, weight);
    default:
      return dense<Acc>(g, input, weight);
  }
}

Geometry geometryOf(const ir::Node& node) {
  switch (opId(&node)) {
    case OpId::Conv2d: {
      const auto op = ir::cast<Conv2d>(&node);
      return geometryOf(node, op.pad(), op.stride(), op.dilation(), 1);
    }
    case OpId::Conv3d: {
      const auto op = ir::cast<Conv3d>(&node);
      return geometryOf(node, op.pad(), op.stride(), op.dilation(), 1);
    }
    case OpId::DepthwiseConv2d: {
      const auto op = ir::cast<DepthwiseConv2d>(&node);
      return geometryOf(node, op.pad(), op.stride(), op.dilation(), 0);
    }
    case OpId::TransposeConv2d: {
      const auto op = ir::cast<TransposeConv2d>(&node);
      return geometryOf(node, op.outPad(), op.stride(), {}, 1);
    }
    default:
      CARINA_UNREACHABLE("not a convolution");
  }
}

}  // namespace

Results convolution(const ir::Node& node, Operands operands) {
  const Geometry g = geometryOf(node);
  const Tensor &input = operands[0], &weight = operands[1], &bias = operands[2];
  if (isFloat(input.dtype())) {
    if (!ir::isa<DepthwiseConv2d>(&node) && !ir::isa<TransposeConv2d>(&node)) {
      CARINA_TRY(Tensor sums, denseFloats(node, g, input, weight));
      return finishFloats(node, std::move(sums), bias);
    }
    const Tensor x = asFloat32(input), w = asFloat32(weight);
    if (ir::isa<DepthwiseConv2d>(&node)) return finishFloats(node, depthwiseFloats(node, g, x, w), bias);
    CARINA_TRY(Tensor sums, transposedFloats(node, g, x, w));
    return finishFloats(node, std::move(sums), bias);
  }
  const auto x = centered(input, operands[3]), w = centered(weight, operands[4]);
  const int64_t window = g.kernel[0] * g.kernel[1] * g.kernel[2];
  const int64_t terms = ir::isa<DepthwiseConv2d>(&node) ? window : window * g.channels;
  if (fitsInt32(terms, input.dtype(), weight.dtype())) {
    return finishIntegers(node, convolve<int32_t>(node, g, x.data(), w.data()), bias);
  }
  return finishIntegers(node, convolve<int64_t>(node, g, x.data(), w.data()), bias);
}

}  // namespace carina::tosa::kernels
