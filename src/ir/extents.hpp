// SPDX-License-Identifier: Apache-2.0
// Limits on the tensors of a graph: every size, and the number of elements, fits in 31 bits. TOSA's level 8K
// requires no more (MAX_LOG2_SIZE), and .tosa, .tflite and .pte files store sizes in 32 bits.
#pragma once

#include "ir/op_def.hpp"

namespace carina::ir {

constexpr int64_t kMaxElements = INT32_MAX;

/// Fails if a size is negative, or if a size or the number of elements exceeds kMaxElements.
Status checkExtents(const Type& type);

}  // namespace carina::ir
