// SPDX-License-Identifier: Apache-2.0
// The TOSA reference interpreter: integer operators bit-exact to the TOSA 1.0 specification (RESCALE clips
// unsigned outputs as signed values, like the reference model), floating point in the precision that the
// conformance rules require. Everything below a TOSA graph is checked against it, so it shares no arithmetic
// with the compiler or the NPU model.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/work_budget.hpp"
#include "ir/graph.hpp"

namespace carina::tosa {

/// Called with every value that a node computes, in order, including nested graphs; operands and inputs are
/// not repeated.
using Observer = std::function<void(const ir::Value& value, const Tensor& tensor)>;

/// Runs a verified graph. One tensor per graph input, with its type; unsigned data is passed in the signed
/// type of the same width. Intermediate tensors are freed after their last use. Errors name the node: inputs
/// of another type, operators that cannot be interpreted (CUSTOM), and what the specification calls
/// unpredictable (accumulator overflow, values out of RESCALE's range, indices out of range, division by
/// zero, shifts out of range, endless loops).
/// uint8 tensors are the bytes of int8 inputs. With a budget, nothing is started that exceeds its remaining
/// steps or memory.
Result<std::vector<Tensor>> interpret(const ir::Graph& graph, std::span<const Tensor> inputs,
                                      const Observer& observer = nullptr, WorkBudget* budget = nullptr);

/// Whether the budget has the memory and the steps for one run, not counting loop iterations.
Status checkBudget(const ir::Graph& graph, WorkBudget& budget);

/// Runs a single node (constant operands included in `operands`), for tests and constant folding.
Result<std::vector<Tensor>> interpretNode(const ir::Node& node, std::span<const Tensor> operands,
                                          const Observer& observer = nullptr);

}  // namespace carina::tosa
