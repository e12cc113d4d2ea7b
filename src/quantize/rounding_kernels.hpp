// SPDX-License-Identifier: Apache-2.0
// The vector loops of rounding weights (SIMD by Highway, the best instruction set of the machine at run
// time). Products are rounded before anything is added: the codes are the same on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace carina::quantize {

/// U by columns of h = U D U^T, U unit upper triangular; h, n times n and symmetric, is used up. Of `factor`
/// what lies above the diagonal is written.
void factorize(std::span<double> h, size_t n, std::span<float> factor);

/// codes[r] = the code in -most..most of values[r] / scales[r], errors[r] = weights[r] - codes[r] *
/// scales[r].
void roundColumn(std::span<const float> values, const float* weights, const float* scales, float most,
                 int8_t* codes, float* errors);

}  // namespace carina::quantize
