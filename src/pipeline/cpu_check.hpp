// SPDX-License-Identifier: Apache-2.0
// The CPU side of verify: every kernel call of a program against the float executor, each on the inputs that
// it really had.
#pragma once

#include <map>
#include <memory>

#include "aten/executor.hpp"
#include "device/run.hpp"
#include "pipeline/pipeline.hpp"

namespace carina::pipeline {

/// One node that CPU kernels compute, over all samples. Float results may differ from the executor's by 1e-5
/// of the largest magnitude in the tensor plus 1e-6; others are equal.
struct CpuResult {
  std::string op;     // "aten.addmm.default"
  std::string where;  // node of the user's network
  int64_t elements = 0;
  int64_t mismatches = 0;
  double worst = 0;  // largest float error as a share of what is allowed
};

class CpuCheck {
 public:
  /// Fails when the float executor lacks an operator of the program. `program` outlives the check.
  static Result<CpuCheck> create(const ProgramGraph& program);
  CpuCheck(CpuCheck&&) noexcept = default;
  CpuCheck& operator=(CpuCheck&&) noexcept = default;

  /// One run with kernel results and delegate results kept.
  Status add(std::span<const Tensor> inputs, const device::RunOutcome& outcome);
  /// In the order in which the nodes are computed.
  const std::vector<CpuResult>& results() const { return results_; }

 private:
  explicit CpuCheck(const ProgramGraph& program) : program_(&program) {}
  Status cut();
  Result<Tensor> actual(const ir::Value& value, const std::map<pte::ValueId, Tensor>& stored) const;
  static void compare(CpuResult& result, const Tensor& reference, const Tensor& actual);

  const ProgramGraph* program_;
  /// The CPU nodes side by side: their operands are inputs, their results outputs.
  std::unique_ptr<ir::Graph> nodes_;
  std::vector<const ir::Value*> operands_, values_;  // of the program, by input and by output of nodes_
  std::vector<size_t> owner_;                        // index into results_ by output of nodes_
  std::optional<aten::Executor> executor_;
  std::vector<CpuResult> results_;
};

}  // namespace carina::pipeline
