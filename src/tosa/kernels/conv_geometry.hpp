// SPDX-License-Identifier: Apache-2.0
// Sizes of a convolution and the windows of its output positions.
#pragma once

#include <array>

#include "base/parallel.hpp"
#include "base/shape.hpp"
#include "tosa/kernels/kernel.hpp"

namespace carina::tosa::kernels {

/// Sizes in the order depth, height, width.
struct Geometry {
  int64_t batch, channels, outChannels, multiplier;
  std::array<int64_t, 3> input, kernel, output, stride, dilation, before;
};

/// Kernel positions [first, last) that are inside the input for one output position.
struct Reach {
  int64_t origin;  // input position of kernel position 0, may be outside
  int64_t first, last;
};

inline Reach reach(const Geometry& g, size_t axis, int64_t out) {
  const int64_t origin = out * g.stride[axis] - g.before[axis], step = g.dilation[axis];
  const int64_t first = origin >= 0 ? 0 : ceilDiv(-origin, step);
  const int64_t room = g.input[axis] - origin;
  const int64_t last = room <= 0 ? 0 : std::min(g.kernel[axis], ceilDiv(room, step));
  return {origin, std::min(first, g.kernel[axis]), last};
}

/// Calls row(n, d, y, offset of the row's first output element) for all output rows, in parallel.
template <typename F>
void forOutputRows(const Geometry& g, F row) {
  const int64_t rows = g.batch * g.output[0] * g.output[1];
  parallelFor(static_cast<size_t>(rows), [&](size_t at) {
    const auto i = static_cast<int64_t>(at);
    row(i / (g.output[0] * g.output[1]), i / g.output[1] % g.output[0], i % g.output[1],
        i * g.output[2] * g.outChannels);
  });
}

}  // namespace carina::tosa::kernels
