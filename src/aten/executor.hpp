// SPDX-License-Identifier: Apache-2.0
// The float reference executor: runs an aten graph on host tensors. It provides the accuracy baseline,
// exposes every intermediate value to calibration, and simulates quantization if the graph contains
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
/// each node (including nodes computed in advance because all their operands are constant). The tensor is
/// row-major and has the value's type; a copy of the Tensor object stays valid (it shares the bytes until
/// they are written to).
using Observer = std::function<void(const ir::Value& value, const Tensor& tensor)>;

/// Nodes with one result, each with the value that replaces this result: a value of the same type that is
/// defined before the node.
using Replacements = std::unordered_map<const ir::Node*, const ir::Value*>;

/// All values that one run computed, so that runs with other stand-ins only compute what differs.
struct KeptRun {
  std::vector<Tensor> values;
  Replacements standIns;
};

/// Which constant sub-expressions of a graph an executor computes when it is created.
enum class Folding : uint8_t {
  All,
  /// Sub-expressions that are larger than their operands (dequantized weights), and whatever depends on them,
  /// are computed in every run, immediately before their first use, and freed after their last: for graphs
  /// that run a few times and whose weights need not all be in memory as floats at once.
  NothingThatGrows
};

/// A graph prepared for execution: every node has its kernel with decoded attributes, oneDNN primitives are
/// built and constant sub-expressions computed. Several threads may call run() on one Executor at the same
/// time; each run is single-threaded.
class Executor {
 public:
  /// Fails with one diagnostic for every node that the executor cannot run (operator, node, module path,
  /// remedy). `graph` is kept by reference and must not change while the executor lives. Iterations of loops
  /// whose count is not in the graph are charged to `loops`, which must outlive the executor; null: only
  /// kMaxLoopIterations (control_flow.hpp) limits them.
  static Result<Executor> create(const ir::Graph& graph, Folding folding = Folding::All,
                                 WorkBudget* loops = nullptr);
  ~Executor();
  Executor(Executor&&) noexcept;
  Executor& operator=(Executor&&) noexcept;

  /// `inputs`: one tensor per graph input, in order, with the same types and shapes. Returns the graph's
  /// outputs in order. Values are freed after their last use. Fails if an input has another type, or if the
  /// values cause an error (an index out of range).
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs, const Observer& observer = nullptr) const;

  /// A run that keeps all values, for rerun(). Control flow nodes are computed as a whole; `standIns` may
  /// only refer to this graph, not to its regions. Requires Folding::All.
  Result<KeptRun> keepRun(std::span<const Tensor> inputs, Replacements standIns = {}) const;
  /// The outputs for the inputs of `before` with these stand-ins: computes only what differs and affects the
  /// outputs.
  Result<std::vector<Tensor>> rerun(const KeptRun& before, const Replacements& standIns) const;

 private:
  struct Plan;
  explicit Executor(std::unique_ptr<Plan> plan);
  std::unique_ptr<Plan> plan_;
};

/// Executor::create followed by one run.
Result<std::vector<Tensor>> execute(const ir::Graph& graph, std::span<const Tensor> inputs,
                                    const Observer& observer = nullptr);

/// Whether the executor has a kernel for the operator.
bool canExecute(const ir::OpDef& def);

}  // namespace carina::aten
