// SPDX-License-Identifier: Apache-2.0
// Integers of quantized values.
#pragma once

#include "lower/lowering.hpp"

namespace carina::lower {

/// The values of a float value's codes, truncated towards zero, in an integer type. Values outside int8 or
/// int16 wrap. Fails if they may be outside int32.
Result<StoredTensor> truncatedIntegers(Lowering& lowering, const ir::Value* value, DType to);

}  // namespace carina::lower
