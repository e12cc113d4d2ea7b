// SPDX-License-Identifier: Apache-2.0
// The vector loops of depthwise convolutions (SIMD by Highway, the best instruction set of the machine at run
// time).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace carina::aten {

/// Outputs of a row.
struct Span {
  int64_t first, last;  // exclusive
};

struct Plane {
  int64_t inH, inW, outH, outW, kernelH, kernelW, strideH, strideW, dilationH, dilationW, padTop, padLeft;
  std::vector<Span> outputs = {};  // outputsOf() each column of the kernel
};

/// How many floats convolvePlane() needs to work in; none if the plane is not for it.
std::optional<size_t> scratchOf(const Plane& plane);

/// One channel: each output adds up, from the bias on, the taps inside of the input, row by row of the
/// kernel. Products are rounded before they are added. The scratch begins as zeros and goes from channel to
/// channel as it is.
void convolvePlane(const Plane& plane, const float* in, const float* weight, float bias,
                   std::span<float> scratch, float* out);

}  // namespace carina::aten
