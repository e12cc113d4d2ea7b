// SPDX-License-Identifier: Apache-2.0
// Which dimensions a reduction folds and what is left of the shape.
#pragma once

#include "ir/graph.hpp"

namespace carina::aten {

struct ReduceDims {
  std::vector<bool> reduced;  // per input dimension
  Shape output;               // with kept dimensions of size 1 where keepdim says so
  int64_t count = 1;          // elements folded into one
};
/// From the operator's "dim" (int, list or absent: all; but an empty list folds nothing in any.dims and
/// all.dims) and "keepdim".
Result<ReduceDims> reduceDims(const ir::Node& node);

}  // namespace carina::aten
