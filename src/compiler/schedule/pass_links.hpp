// SPDX-License-Identifier: Apache-2.0
// What one pass may do with the results of others: take them block by block (U85 chains), row by row
// (cascades), or write over them (in place).
#pragma once

#include <span>

#include "compiler/schedule/schedule.hpp"

namespace carina::compiler {

/// U85: passes whose elementwise reader comes right behind them hand their result over in a chaining buffer
/// (ethosu-command-stream 7.5): at most 4 passes and 3 inputs from memory, equal shapes, one table. Sets
/// Pass::follows, Schedule::chained and the storage of the maps in between.
void linkChains(Schedule& schedule);

/// Which inputs a result may overwrite: those of its layout, or, where memory is short, also those in another
/// layout with every element at the same place.
enum class InPlace : uint8_t { SameLayout, SamePlaces };

/// The buffer of an elementwise pass's input that the result may overwrite: read for the last time by this
/// pass, and laid out like the result; -1: none. `ranges`: lifetimes of the buffers in passes.
int32_t dyingInput(const Schedule& schedule, const Pass& pass, std::span<const LiveRange> ranges,
                   InPlace inPlace);

/// The facts that cascades are chosen by; staged bytes and cycles are left to the caller. `area`: the one
/// that they are to keep small.
CascadeProblem cascadeProblem(const Schedule& schedule, std::span<const LiveRange> ranges, npu::Area area,
                              InPlace inPlace);

}  // namespace carina::compiler
