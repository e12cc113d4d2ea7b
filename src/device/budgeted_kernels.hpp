// SPDX-License-Identifier: Apache-2.0
// The runtime's kernels, limited by a work budget.
#pragma once

#include <cstdint>
#include <vector>

#include "base/work_budget.hpp"
#include "carina/kernel.hpp"
#include "pte/program.hpp"

namespace carina::device {

/// Kernels that draw on a work budget. The runtime calls functions without state, so the budget of the next
/// call is kept per thread and set by begin().
class BudgetedKernels {
 public:
  explicit BudgetedKernels(WorkBudget& budget) : budget_(budget) {}

  /// All kernels of the runtime, each limited by the budget.
  static rt::KernelTable table();
  /// Lists the kernel calls of a verified method.
  void list(const pte::Method& method);
  /// Announces the next kernel call. In methods with several chains, the costliest call at this instruction
  /// of any chain counts.
  void begin(uint32_t instruction, rt::Text name);

 private:
  WorkBudget& budget_;
  std::vector<int64_t> steps_;  // by instruction
};

}  // namespace carina::device
