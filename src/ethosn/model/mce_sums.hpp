// SPDX-License-Identifier: Apache-2.0
// The inner loops of the MCE: vectorized sums of products.
#pragma once

#include <cstdint>

namespace carina::ethosn::model {

/// Rows of both operands begin at multiples of this many elements; the rest of a row after its terms is 0.
inline constexpr int64_t kTermUnit = 32;

/// sums[p * columns + o] += sum over k of rows[p * terms + k] * weights[o * terms + k], in 32 bits with
/// wrap-around. `terms` is a multiple of kTermUnit; values are within -256..255.
void addProducts(const int16_t* rows, int64_t rowCount, const int16_t* weights, int64_t columns,
                 int64_t terms, int32_t* sums);

/// sums[p * channels + c] += rows[p * step + c] * weights[c] for every channel.
void addScaledRows(const int16_t* rows, int64_t rowCount, int64_t step, const int16_t* weights,
                   int64_t channels, int32_t* sums);

}  // namespace carina::ethosn::model
