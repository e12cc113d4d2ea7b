// SPDX-License-Identifier: Apache-2.0
// The vector loops of depthwise convolutions (Highway SIMD, with the best instruction set of the machine,
// selected at run time).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace carina::aten {

/// A range of outputs of a row.
struct Span {
  int64_t first, last;  // last is exclusive
};

struct Plane {
  int64_t inH, inW, outH, outW, kernelH, kernelW, strideH, strideW, dilationH, dilationW, padTop, padLeft;
  std::vector<Span> outputs = {};  // one range per kernel column, from outputsOf()
};

/// Floats of scratch memory that convolvePlane() needs; none if it does not support the plane.
std::optional<size_t> scratchOf(const Plane& plane);

/// One channel: each output is the bias plus the products of the taps inside the input, in the order of the
/// kernel's rows. Products are rounded before they are added. The scratch memory must initially be zero and
/// is passed unchanged from channel to channel.
void convolvePlane(const Plane& plane, const float* in, const float* weight, float bias,
                   std::span<float> scratch, float* out);

}  // namespace carina::aten
