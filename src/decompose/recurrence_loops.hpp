// SPDX-License-Identifier: Apache-2.0
// Recurrent layers over many steps as loops (higher_order.scan), and loops over few slices as straight code.
#pragma once

#include <cstdint>

#include "ir/graph.hpp"

namespace carina::decompose {

/// Recurrent layers over this many steps, and more, are loops unless somebody asks otherwise: what unrolled
/// steps take of commands, compile time and memory grows with them, a loop costs a few thousand cycles of the
/// CPU for each turn of some 25 steps.
constexpr int64_t kLongRecurrence = 100;

struct LoopOptions {
  int64_t mostUnrolled = kLongRecurrence - 1;  // steps
  /// Long recurrences that are to be unrolled are loops while they are quantized: both forms have the same
  /// codes.
  bool unrollLater = false;
};

/// Replaces LSTM, GRU and simple recurrent layers with constant weights over more than `mostUnrolled` steps
/// by loops, whose body is the same operator over a chunk of the steps. Layers in one direction, one above
/// the other, are one loop; of bidirectional ones each layer is two. Steps that do not fill a chunk come
/// behind the loop. What the network quantizes around the operator stays whole.
Status loopRecurrences(ir::Graph& graph, const LoopOptions& options);

/// How many of `steps` a turn of the loop computes: a divisor near 25 where there is one, else a number that
/// leaves few steps over.
int64_t stepsPerTurn(int64_t steps);

}  // namespace carina::decompose
