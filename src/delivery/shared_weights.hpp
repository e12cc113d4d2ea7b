// SPDX-License-Identifier: Apache-2.0
// Constants that TOSA graphs of several methods have in common: stored once, as constants of the program that
// the delegates get as arguments.
#pragma once

#include <span>

#include "base/result.hpp"
#include "ir/graph.hpp"
#include "pte/program.hpp"

namespace carina::delivery {

/// Arguments of delegates in this order: the graph's inputs, its outputs. `graphs`: those of all delegates,
/// method after method in the order of the program.
///
/// What several graphs have as constants of equal bytes (kLeastSharedBytes and more, integers of 8 to 64
/// bits) becomes inputs of theirs, behind the others, and a constant of the program in the calls.
void shareConstantsOfGraphs(pte::Program& program, std::span<ir::Graph> graphs);
constexpr int64_t kLeastSharedBytes = 256;

/// The other way round: arguments of delegate `index` (untrusted) that are constants in all of its calls
/// become constants of the graph, and leave the calls. Whether there were any.
Result<bool> takeSharedConstants(const pte::Program& program, pte::Method& method, size_t index,
                                 ir::Graph& graph);

/// Constants that nothing of a method refers to any more go; indices stay.
void dropUnusedConstants(pte::Program& program);

}  // namespace carina::delivery
