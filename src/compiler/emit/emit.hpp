// SPDX-License-Identifier: Apache-2.0
// From a schedule to the list of operations: addresses, depth slices, weight and table transfers, waits and
// BLOCKDEP.
#pragma once

#include <string>
#include <vector>

#include "compiler/schedule/schedule.hpp"

namespace carina::compiler {

/// An operation with what reports need to know about it.
struct EmittedOperation {
  npu::Operation operation;
  const ir::Node* node = nullptr;  // null for waits and STOP
  std::string suffix;              // "[16:32]" for depth slices
  std::string kind;                // "CONV", "DMA weights", ...
  bool last = false;               // the last operation of its node
};

/// All operations in stream order, STOP included.
std::vector<EmittedOperation> emit(const Schedule& schedule);

}  // namespace carina::compiler
