// SPDX-License-Identifier: Apache-2.0
// The float reference executor: runs an aten graph on host tensors. It gives the accuracy baseline, shows
// every intermediate value to calibration, and simulates quantization when the graph carries
// quantized_decomposed nodes.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/work_budget.hpp"
#include "ir/graph.hpp"

namespace carina::aten {

/// Called with every value as soon as it is known, in program order: graph inputs first, then the results of
/// each node (also of those that were computed ahead because all their operands are constant). The tensor is
/// row-major and has the value's type; a copy of the Tensor object stays valid (it shares the bytes until
/// somebody writes).
using Observer = std::function<void(const ir::Value& value, const Tensor& tensor)>;

/// Nodes with one result, and the value that stands for it instead: one of the result's type that comes
/// before the node.
using StandIns = std::unordered_map<const ir::Node*, const ir::Value*>;

/// Everything that one run computed, so that runs with other stand-ins compute only what differs.
struct KeptRun {
  std::vector<Tensor> values;
  StandIns standIns;
};

/// What of a graph's constant sub-expressions an executor computes when it is created.
enum class Folding : uint8_t {
  All,
  /// What becomes larger than what it is computed of (weights that are dequantized), and what is computed of
  /// that, is computed in every run, where it is read for the first time, and freed after its last use: for
  /// graphs that run a few times, and whose weights need not be in memory as floats all at once.
  NothingThatGrows
};

/// A graph made ready to run: every node has its kernel with attributes decoded, oneDNN primitives built and
/// constant sub-expressions computed. Several threads may call run() on one Executor at the same time; one
/// run is single-threaded.
class Executor {
 public:
  /// Fails with one diagnostic for every node that the executor cannot run (operator, node, module path,
  /// remedy). `graph` is kept by reference and must not change while the executor lives. Turns of loops whose
  /// number is not in the graph take their steps from `loops`, which outlives the executor; null: they end
  /// after kMostTurns (control_flow.hpp).
  static Result<Executor> create(const ir::Graph& graph, Folding folding = Folding::All,
                                 WorkBudget* loops = nullptr);
  ~Executor();
  Executor(Executor&&) noexcept;
  Executor& operator=(Executor&&) noexcept;

  /// `inputs` in the order of the graph's inputs, of their types and shapes. Returns the graph's outputs in
  /// order. Values are freed after their last use. Fails when an input has another type, or on what only
  /// values show (an index out of range).
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs, const Observer& observer = nullptr) const;

  /// A run that keeps all values, for rerun(). Control flow is computed whole; `standIns` are of this graph,
  /// not of regions. For Folding::All.
  Result<KeptRun> keepRun(std::span<const Tensor> inputs, StandIns standIns = {}) const;
  /// The outputs for the inputs of `before` and these stand-ins: computes what differs and the outputs need.
  Result<std::vector<Tensor>> rerun(const KeptRun& before, const StandIns& standIns) const;

 private:
  struct Plan;
  explicit Executor(std::unique_ptr<Plan> plan);
  std::unique_ptr<Plan> plan_;
};

/// Executor::create and one run.
Result<std::vector<Tensor>> execute(const ir::Graph& graph, std::span<const Tensor> inputs,
                                    const Observer& observer = nullptr);

/// Whether the executor has a kernel for the operator.
bool canExecute(const ir::OpDef& def);

}  // namespace carina::aten
