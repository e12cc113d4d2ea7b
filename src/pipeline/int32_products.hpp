// SPDX-License-Identifier: Apache-2.0
// Products beyond int32, which TOSA and the NPU define differently.
#pragma once

#include <span>

#include "base/work_budget.hpp"
#include "ir/graph.hpp"

namespace carina::pipeline {

/// Runs a TOSA graph and fails, with the place, if a product of int32 values does not fit int32: TOSA keeps
/// its low 32 bits, the NPU saturates. Products of inputs of regions are not checked.
Status checkInt32Products(const ir::Graph& tosa, std::span<const Tensor> inputs, WorkBudget* budget);

}  // namespace carina::pipeline
