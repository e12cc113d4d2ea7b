// SPDX-License-Identifier: Apache-2.0
// Constants that TOSA graphs of several methods have in common: stored once, as constants of the program that
// are passed to the delegates as arguments.
#pragma once

#include <span>

#include "base/result.hpp"
#include "ir/graph.hpp"
#include "pte/program.hpp"

namespace carina::delivery {

/// Arguments of delegates are the graph's inputs, then its outputs. `graphs`: those of all delegates, method
/// by method in program order.
///
/// Constants with equal bytes in several graphs (kMinSharedBytes or more, integers of 8 to 32 bits) become
/// inputs of these graphs, after the other inputs, and the calls pass one constant of the program for them.
void shareConstantsOfGraphs(pte::Program& program, std::span<ir::Graph> graphs);
constexpr int64_t kMinSharedBytes = 256;

/// The inverse: arguments of delegate `index` (untrusted) that are constants in all of its calls become
/// constants of the graph and are removed from the calls. Returns whether there were any.
Result<bool> takeSharedConstants(const pte::Program& program, pte::Method& method, size_t index,
                                 ir::Graph& graph);

/// Clears constants that no method refers to any more; indices do not change.
void dropUnusedConstants(pte::Program& program);

}  // namespace carina::delivery
