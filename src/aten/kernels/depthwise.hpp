// SPDX-License-Identifier: Apache-2.0
// 2-D depthwise convolution on the plain channel-first layout, where oneDNN has no fast path.
#pragma once

#include "aten/geometry.hpp"
#include "aten/kernels/kernel.hpp"

namespace carina::aten {

/// One input channel per group, two spatial dimensions, not transposed.
bool isDepthwise(const ConvGeometry& geometry);
Kernel depthwiseKernel(const ConvGeometry& geometry, const Shape& input);

}  // namespace carina::aten
