// SPDX-License-Identifier: Apache-2.0
// The CPU side of verify: checks every kernel call of a program against the float executor, each on its
// actual inputs.
#pragma once

#include <map>
#include <memory>

#include "aten/executor.hpp"
#include "device/run.hpp"
#include "pipeline/pipeline.hpp"

namespace carina::pipeline {

/// One node that CPU kernels compute, over all samples. Float results may differ from the executor's by 1e-5
/// of the largest magnitude in the tensor plus 1e-6; all others must be equal.
struct CpuResult {
  std::string op;     // "aten.addmm.default"
  std::string where;  // node of the user's network
  int64_t elements = 0;
  int64_t mismatches = 0;
  double worst = 0;  // largest float error as a fraction of the tolerance
};

class CpuCheck {
 public:
  /// Fails if the float executor lacks an operator of the program. `program` must outlive the check.
  static Result<CpuCheck> create(const ProgramGraph& program);
  CpuCheck(CpuCheck&&) noexcept = default;
  CpuCheck& operator=(CpuCheck&&) noexcept = default;

  /// Adds one run in which kernel and delegate results were kept.
  Status add(std::span<const Tensor> inputs, const device::RunOutcome& outcome);
  /// In the order of the program's instructions. Nodes that never ran have no elements.
  const std::vector<CpuResult>& results() const { return results_; }

 private:
  /// One node in isolation: its operands are inputs, its results outputs.
  struct NodeCheck {
    std::unique_ptr<ir::Graph> graph;
    std::unique_ptr<aten::Executor> executor;
    std::vector<const ir::Value*> operands;  // in the program, by input of `graph`
    size_t result = 0;                       // index into results_
  };
  struct Trace;

  explicit CpuCheck(const ProgramGraph& program) : program_(&program) {}
  Status cut(const ir::Node& node);
  Status follow(const ir::Graph& graph, Trace& trace);
  Status followCond(const ir::Node& node, Trace& trace);
  Status followLoop(const ir::Node& node, Trace& trace);
  Status followScan(const ir::Node& node, Trace& trace);
  Status followRegion(const ir::Graph& region, std::span<const Tensor> inputs, Trace& trace,
                      std::vector<Tensor>& outputs);
  Status followCall(const ir::Node& node, Trace& trace);
  Result<Tensor> actual(const ir::Value& value, const Trace& trace) const;
  Result<std::vector<Tensor>> actual(std::span<ir::Value* const> values, const Trace& trace) const;
  void place(const ir::Value& value, const Tensor& tensor, Trace& trace) const;
  static void compare(CpuResult& result, const Tensor& reference, const Tensor& actual);

  const ProgramGraph* program_;
  std::unordered_map<const ir::Node*, NodeCheck> nodes_;
  std::vector<bool> ofNode_;  // by instruction: whether it belongs to a node; the others are copies
  std::vector<CpuResult> results_;
};

}  // namespace carina::pipeline
