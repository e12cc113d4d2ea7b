// SPDX-License-Identifier: Apache-2.0
// Runs a quantized aten graph in integers, operator by operator: what stands between dequantize and quantize
// nodes computes as its TOSA form does, each by itself. Values are those of the graph, so that it stands
// beside the simulation in float (aten::Executor), which rounds by itself, and beside the TOSA graph of the
// whole, whose passes it knows nothing of.
#pragma once

#include <memory>

#include "aten/executor.hpp"
#include "base/result.hpp"
#include "ir/graph.hpp"

namespace carina::partition {

class IntegerExecutor {
 public:
  /// Whatever has no integer form (what crosses the ends of the graph, operators of int64, choices and loops)
  /// is computed by aten::Executor. `graph` outlives it.
  static Result<IntegerExecutor> create(const ir::Graph& graph);
  ~IntegerExecutor();
  IntegerExecutor(IntegerExecutor&&) noexcept;
  IntegerExecutor& operator=(IntegerExecutor&&) noexcept;

  /// As aten::Executor::run(). The observer sees inputs, and of results what crosses from one operator to
  /// others: codes, and their dequantized values.
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs,
                                  const aten::Observer& observer = nullptr) const;

  /// Quantize nodes whose operators compute in integers, and all that there are (of values, not constants).
  size_t inIntegers() const;
  size_t quantized() const;

 private:
  struct Plan;
  explicit IntegerExecutor(std::unique_ptr<Plan> plan);
  std::unique_ptr<Plan> plan_;
};

}  // namespace carina::partition
