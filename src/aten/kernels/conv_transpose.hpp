// SPDX-License-Identifier: Apache-2.0
// Transposed convolution in 1 to 3 dimensions: a matrix product gives what each input element adds, which is
// then summed into the output.
#pragma once

#include "aten/geometry.hpp"
#include "aten/kernels/kernel.hpp"

namespace carina::aten {

Kernel transposedKernel(const ConvGeometry& geometry, const Shape& input);

}  // namespace carina::aten
