// SPDX-License-Identifier: Apache-2.0
// The functions that TableKind TANH and SIGMOID compute.
#pragma once

#include "base/tensor.hpp"

namespace carina::npu_ir {

/// TFLite's LOGISTIC or TANH of v in units of 1 / (3 * 4096), with 15 fraction bits: linear interpolation
/// between 256 entries of the logistic function (ethosu-numerics 6.2).
int64_t wideFunction(bool tanh, int64_t v);
/// The table with which Ethos-U85 computes either: 512 words, base below, slope above (ethosu-numerics 6.3).
/// Only one such table fits, so a network with both functions should not load two in turn. `logisticEnd`: a
/// table for LOGISTIC alone, which is also exact from -255 * 512 downwards.
Tensor wideFunctionTable(bool logisticEnd = false);
/// Whether LOGISTIC of values down to `least` needs that table.
bool needsLogisticEnd(int64_t least);
/// The result of Ethos-U85 with such a table before it saturates to int16; after that, wideFunction(tanh, v).
int64_t wideTableEntry(const Tensor& table, bool tanh, int64_t v);

}  // namespace carina::npu_ir
