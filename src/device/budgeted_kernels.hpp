// SPDX-License-Identifier: Apache-2.0
// The runtime's kernels behind a budget.
#pragma once

#include <cstdint>
#include <vector>

#include "base/work_budget.hpp"
#include "carina/kernel.hpp"
#include "pte/program.hpp"

namespace carina::device {

/// Kernels in front of which a budget stands. The runtime calls functions without a state of their own, so
/// the budget of the call that comes next is kept per thread: begin() says which it is.
class BudgetedKernels {
 public:
  explicit BudgetedKernels(WorkBudget& budget) : budget_(budget) {}

  /// All kernels of the runtime, each behind the budget.
  static rt::KernelTable table();
  /// The calls of a method that the verifier has seen.
  void list(const pte::Method& method);
  /// A kernel call comes next. Where methods have several chains, the one that costs most at this place of
  /// any.
  void begin(uint32_t instruction, rt::Text name);

 private:
  WorkBudget& budget_;
  std::vector<int64_t> steps_;  // by instruction
};

}  // namespace carina::device
