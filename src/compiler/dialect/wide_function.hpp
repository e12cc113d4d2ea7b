// SPDX-License-Identifier: Apache-2.0
// What TableKind TANH and SIGMOID compute, as numbers.
#pragma once

#include "base/tensor.hpp"

namespace carina::npu_ir {

/// TFLite's LOGISTIC or TANH of v in units of 1 / (3 * 4096), with 15 fraction bits: lines between 256
/// entries of the logistic function (ethosu-numerics 6.2).
int64_t wideFunction(bool tanh, int64_t v);
/// The table with which Ethos-U85 computes either: 512 words, base below, slope above (ethosu-numerics 6.3).
/// There is room for one of them, which a network with both functions had better not load in turns.
/// `logisticEnd`: one for LOGISTIC alone, which is exact from -255 * 512 downwards as well.
Tensor wideFunctionTable(bool logisticEnd = false);
/// Whether LOGISTIC of numbers down to `least` needs that table.
bool needsLogisticEnd(int64_t least);
/// What Ethos-U85 makes of such a table before it saturates to int16: wideFunction(tanh, v) after that.
int64_t wideTableEntry(const Tensor& table, bool tanh, int64_t v);

}  // namespace carina::npu_ir
