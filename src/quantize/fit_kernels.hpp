// SPDX-License-Identifier: Apache-2.0
// Vector loops of fitted rounding and of its layer input statistics (SIMD through Highway, which selects the
// machine's best instruction set at run time).
#pragma once

#include <cstddef>
#include <span>

namespace carina::quantize {

/// Columns are padded with zeros to a multiple of this many rows.
inline constexpr size_t kRowPadding = 16;

/// gram[i * columns + j] += sum over rows of a[i * stride + row] * a[j * stride + row], for j <= i. `columns`
/// columns of `stride` rows each, stride a multiple of kRowPadding.
void addGram(std::span<const float> a, size_t columns, size_t stride, std::span<float> gram);

/// values[r] += sum over j < count of errors[j * stride + r] * factors[j].
void addFeedback(std::span<const float> errors, size_t count, size_t stride, std::span<const float> factors,
                 std::span<float> values);

/// sums[p * width + i] = sum over r < rows, starting from 0 and in order, of planes[p * planeStride + r *
/// rowStride + i], for p < count and i < width.
void sumRows(const float* planes, size_t count, size_t planeStride, size_t rows, size_t rowStride,
             size_t width, float* sums);

}  // namespace carina::quantize
