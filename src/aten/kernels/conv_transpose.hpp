// SPDX-License-Identifier: Apache-2.0
// Transposed convolution in 1 to 3 dimensions: a matrix product computes the contributions of each input
// element, which are then accumulated in the output.
#pragma once

#include "aten/geometry.hpp"
#include "aten/kernels/kernel.hpp"

namespace carina::aten {

Kernel transposedKernel(const ConvGeometry& geometry, const Shape& input);

}  // namespace carina::aten
