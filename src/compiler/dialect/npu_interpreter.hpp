// SPDX-License-Identifier: Apache-2.0
// Executes an npu graph element by element, directly from the definitions in ethosu-numerics. Slow on
// purpose: it is the witness for whether legalization or the layers below it changed a result. Shares no
// arithmetic with the NPU model.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "ir/graph.hpp"

namespace carina::npu_ir {

/// Called with each value as it is computed.
using ValueObserver = std::function<void(const ir::Value&, const Tensor&)>;

/// Runs the graph on `inputs` (types and shapes of graph.inputs()); returns its outputs.
Result<std::vector<Tensor>> interpret(const ir::Graph& graph, std::span<const Tensor> inputs,
                                      const ValueObserver& observer = nullptr);

}  // namespace carina::npu_ir
