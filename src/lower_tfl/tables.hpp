// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lower_tfl/lowering.hpp"

namespace carina::lower_tfl {

using Function = float (*)(float);

/// The 513 int16 entries with which TFLite interpolates a function of int16 codes, computed in float32 like
/// TFLite: the first entry of an interval compensates half of the error in its middle.
Tensor interpolatedTable(Function function, const Quantum& from, const Quantum& to);

/// Looks up int8 codes in a table of 256 int32 numbers >= 0, by combining tables of their bytes.
ir::Value* wideLookup(Lowering& lowering, ir::Value* codes, const std::array<int32_t, 256>& entries);

/// int16 codes in units of 1 / (3 * 4096): (code * multiplier) / 2^shift, rounded.
struct WideInput {
  int64_t multiplier = 3;
  int shift = 0;
};
/// LOGISTIC (or TANH) of int16 codes as int16 with 15 fraction bits. TFLite interpolates between entries of
/// the logistic function that are further apart than those of a TABLE, so this uses 32-bit arithmetic.
/// tanh(x) = 2
/// * logistic(2 * x) - 1.
ir::Value* wideSigmoid(Lowering& lowering, ir::Value* input, const WideInput& scaled, bool tanh);

}  // namespace carina::lower_tfl
