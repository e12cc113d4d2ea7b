// SPDX-License-Identifier: Apache-2.0
// Recurrent layers over many steps as loops (higher_order.scan), and loops over few slices unrolled.
#pragma once

#include <cstdint>

#include "ir/graph.hpp"

namespace carina::decompose {

/// By default, recurrent layers over at least this many steps become loops: the commands, compile time and
/// memory of unrolled steps grow with their number, whereas a loop costs a few thousand CPU cycles per
/// iteration of about 25 steps.
constexpr int64_t kLongRecurrence = 100;

struct LoopOptions {
  int64_t mostUnrolled = kLongRecurrence - 1;  // steps
  /// Long recurrences that will be unrolled are loops during quantization, so that both forms have the same
  /// codes.
  bool unrollLater = false;
};

/// Replaces LSTM, GRU and simple recurrent layers with constant weights over more than `mostUnrolled` steps
/// by loops, whose body is the same operator over a chunk of the steps. Stacked unidirectional layers form
/// one loop; each bidirectional layer forms two. Steps that do not fill a chunk follow the loop. Operators
/// that the network quantizes as a unit are kept.
Status loopRecurrences(ir::Graph& graph, const LoopOptions& options);

/// Steps per iteration of the loop: a divisor of `steps` near 25 if there is one, otherwise a value that
/// leaves few steps over.
int64_t stepsPerIteration(int64_t steps);

}  // namespace carina::decompose
