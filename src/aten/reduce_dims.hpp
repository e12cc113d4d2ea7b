// SPDX-License-Identifier: Apache-2.0
// The dimensions that a reduction folds, and the remaining shape.
#pragma once

#include "ir/graph.hpp"

namespace carina::aten {

struct ReduceDims {
  std::vector<bool> reduced;  // per input dimension
  Shape output;               // reduced dimensions are kept with size 1 if keepdim is set
  int64_t count = 1;          // elements folded into one
};
/// Reads the operator's "dim" (int, list or absent: all dimensions; an empty list also means all, except in
/// any.dims and all.dims, where it folds nothing) and "keepdim".
Result<ReduceDims> reduceDims(const ir::Node& node);

}  // namespace carina::aten
