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

/// An operation with what reports need to know about it.
struct EmittedOperation {
  npu::Operation operation;
  const ir::Node* node = nullptr;  // null for waits and STOP
  std::string suffix;              // "[16:32]" for depth slices
  std::string_view kind;           // of what is no kernel operation: "DMA weights", ...
  bool last = false;               // the last operation of its node
};

using OperationSink = std::function<void(EmittedOperation&&)>;

/// All operations in stream order, STOP included, one after the other: a program's operations are large, and
/// the search only asks what they cost.
void emit(const Schedule& schedule, const OperationSink& out);

/// Cycles of the operations, under a setting of the cycle model.
npu::Cycles streamCycles(const Schedule& schedule,
                         const npu::timing::Rules& rules = npu::timing::kCalibrated);

}  // namespace carina::compiler
