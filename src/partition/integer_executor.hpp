// SPDX-License-Identifier: Apache-2.0
// Runs a quantized aten graph in integers, operator by operator: what is between dequantize and quantize
// nodes computes like its TOSA form, each piece separately. Its values are those of the graph, and can
// therefore be compared with the float simulation (aten::Executor), which rounds in its own way, and with the
// TOSA graph of the whole network, whose passes are not applied here.
#pragma once

#include <memory>

#include "aten/executor.hpp"
#include "base/result.hpp"
#include "ir/graph.hpp"

namespace carina::partition {

class IntegerExecutor {
 public:
  /// What has no integer form (values that cross the ends of the graph, operators on int64, conditionals and
  /// loops) is computed by aten::Executor. `graph` must outlive it.
  static Result<IntegerExecutor> create(const ir::Graph& graph);
  ~IntegerExecutor();
  IntegerExecutor(IntegerExecutor&&) noexcept;
  IntegerExecutor& operator=(IntegerExecutor&&) noexcept;

  /// Like aten::Executor::run(). The observer sees inputs and, of the results, those that pass from one
  /// operator to others: codes, and their dequantized values.
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs,
                                  const aten::Observer& observer = nullptr) const;

  /// Number of quantize nodes whose operators compute in integers, and of all quantize nodes (of values, not
  /// constants).
  size_t inIntegers() const;
  size_t quantized() const;

 private:
  struct Plan;
  explicit IntegerExecutor(std::unique_ptr<Plan> plan);
  std::unique_ptr<Plan> plan_;
};

}  // namespace carina::partition
