// SPDX-License-Identifier: Apache-2.0
// Vector loops of weight rounding (SIMD through Highway, which selects the machine's best instruction set at
// run time). Products are rounded before they are added, so that codes are the same on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace carina::quantize {

/// Factorizes h = U D U^T with U unit upper triangular, and returns U by columns. h, n x n and symmetric, is
/// overwritten; only the part of `factor` above the diagonal is written.
void factorize(std::span<double> h, size_t n, std::span<float> factor);

/// codes[r] = the code in -most..most of values[r] / scales[r], errors[r] = weights[r] - codes[r] *
/// scales[r].
void roundColumn(std::span<const float> values, const float* weights, const float* scales, float most,
                 int8_t* codes, float* errors);

}  // namespace carina::quantize
