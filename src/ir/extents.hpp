// SPDX-License-Identifier: Apache-2.0
// The largest tensors of a graph: every size, and the number of elements, fits 31 bits. TOSA's level 8K asks
// for no more (MAX_LOG2_SIZE), and .tosa, .tflite and .pte files store sizes in 32 bits.
#pragma once

#include "ir/op_def.hpp"

namespace carina::ir {

constexpr int64_t kMostElements = INT32_MAX;

/// Errors: a negative size, a size or a number of elements beyond kMostElements.
Status checkExtents(const Type& type);

}  // namespace carina::ir
