// SPDX-License-Identifier: Apache-2.0
// Normalisation of rows: layer_norm and rms_norm over any dimensions, and the norms that networks write out.
#pragma once

#include <functional>

#include "ir/graph.hpp"
#include "ir/op_view.hpp"

namespace carina::decompose {

enum class Centred : uint8_t { No, Yes };

/// Elements of a row; longer ones have no integer form (src/lower/rules_norm.cpp).
inline constexpr int64_t kLongestRow = int64_t{1} << 20;

/// x / sqrt(mean(x^2) + eps) over `dims` (in ascending order), or (x - mean) / sqrt(variance + eps) with the
/// biased variance. It is not decomposed: 8 or 16-bit codes cannot hold the variances of rows that differ by
/// orders of magnitude.
ir::Value* normalizedOver(ir::Builder& b, ir::Value* x, const ir::Ints& dims, double eps, Centred centred);

/// Whether the guard of a divisor, max(length, guard) or length + guard, makes no difference. The rows are
/// those of the operand before it is centred. The guard is relative to their root mean square, or standard
/// deviation.
using IsNegligible = std::function<bool(const ir::Value& rows, double guard)>;

/// Replaces written-out norms whose divisor has a guard outside of the root by operators that have its square
/// inside, where the guard is negligible. Others are part of forNpu().
Status useGuardedNorms(ir::Graph& graph, const IsNegligible& isNegligible);

}  // namespace carina::decompose
