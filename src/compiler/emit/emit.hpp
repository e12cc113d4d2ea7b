// SPDX-License-Identifier: Apache-2.0
// From a schedule to the list of operations: addresses, depth slices, weight and table transfers, waits and
// BLOCKDEP.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/schedule/schedule.hpp"

namespace carina::compiler {

/// An operation with information for reports.
struct EmittedOperation {
  npu::Operation operation;
  const ir::Node* node = nullptr;  // null for waits and STOP
  std::string suffix;              // "[16:32]" for depth slices
  std::string_view kind;           // of anything but a kernel operation: "DMA weights", ...
  bool last = false;               // the last operation of its node
};

using OperationSink = std::function<void(EmittedOperation&&)>;

/// Passes all operations to `out` in stream order, STOP included, one at a time: the operations of a program
/// are large, and the search only needs their cost.
void emit(const Schedule& schedule, const OperationSink& out);

/// Cycles of the operations, under a setting of the cycle model.
npu::Cycles streamCycles(const Schedule& schedule,
                         const npu::timing::Rules& rules = npu::timing::kCalibrated);

}  // namespace carina::compiler
