// SPDX-License-Identifier: Apache-2.0
// Functions of 16-bit codes that the program computes inaccurately: a TABLE interpolates between 513 entries,
// too few for functions with many bends or poles in the range of their argument. The float simulation
// (aten::Executor) computes every function exactly and does not show this.
#pragma once

#include <vector>

#include "base/result.hpp"
#include "ir/graph.hpp"

namespace carina::partition {

/// A function, or a chain of functions, of one int16 value; between a dequantize and a quantize node.
struct CoarseFunction {
  const ir::Node* function = nullptr;  // the last one
  const ir::Node* quantize = nullptr;
  Tensor results;     // int16: the program's codes for the codes from -32768 to 32767
  int64_t worst = 0;  // largest difference from the simulation, in codes
  double share = 0;   // of the codes that are off by more than lower::kTableTolerance
};

/// The functions of `graph`, in program order, with codes that are off by more than lower::kTableTolerance.
/// Those that have no integer form or cannot be executed are left out; loops and conditionals are not
/// visited.
std::vector<CoarseFunction> coarseFunctions(const ir::Graph& graph);

/// The graph with these functions of it replaced by lookups of the program's codes.
ir::Graph withProgramsCodes(const ir::Graph& graph, const std::vector<CoarseFunction>& functions);

/// A warning for each source node of functions of which many codes are off.
std::vector<Diagnostic> warningsOf(const std::vector<CoarseFunction>& functions);

}  // namespace carina::partition
