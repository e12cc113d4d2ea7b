// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lower_tfl/lowering.hpp"

namespace carina::lower_tfl {

using Function = float (*)(float);

/// The 513 int16 entries with which TFLite interpolates a function of int16 codes, computed in float32 as it
/// does: the first entry of an interval carries half of the error in its middle.
Tensor interpolatedTable(Function function, const Quantum& from, const Quantum& to);

/// int8 codes through a table of 256 int32 numbers >= 0: tables of their bytes, put together.
ir::Value* wideLookup(Lowering& lowering, ir::Value* codes, const std::array<int32_t, 256>& entries);

}  // namespace carina::lower_tfl
