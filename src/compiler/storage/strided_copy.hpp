// SPDX-License-Identifier: Apache-2.0
// Copies between strided locations as NPU operations: the form that TRANSPOSE, PAD, TILE and CONCAT take when
// addressing alone cannot express them.
#pragma once

#include <vector>

#include "compiler/dialect/npu_ir.hpp"

namespace carina::compiler {

/// A box of elements read from `value` and written to a location in a JOIN. Offsets and strides in elements
/// of the value's type; all lists have the rank of `shape`.
struct StridedCopy {
  ir::Value* value = nullptr;
  Shape shape;
  int64_t sourceOffset = 0;
  ir::Ints sourceStrides;
  int64_t targetOffset = 0;
  ir::Ints targetStrides;
};

/// Limit on the copies that an operator becomes: each is an NPU operation.
constexpr int64_t kMaxCopies = 4096;

/// Emits as few copies as three loop dimensions allow; the pieces are for a JOIN. Elements wider than 16 bits
/// are moved as 16-bit halves, so pieces may have a different type from the value.
std::vector<npu_ir::Piece> emitCopies(ir::Builder& builder, const StridedCopy& copy);

/// Merges neighbouring dimensions that are contiguous in every given stride list and drops those of size 1.
/// The result has at least one dimension.
void mergeDimensions(Shape& shape, std::vector<ir::Ints*> strides);

}  // namespace carina::compiler
