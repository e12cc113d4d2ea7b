// SPDX-License-Identifier: Apache-2.0
// How one pass may use the results of others: read them block by block (U85 chains) or row by row (cascades),
// or overwrite them (in place).
#pragma once

#include <span>

#include "compiler/schedule/schedule.hpp"

namespace carina::compiler {

/// U85: a pass that is directly followed by its only reader, an elementwise one, passes its result on in a
/// chaining buffer (ethosu-command-stream 7.5): at most 4 passes and 3 inputs from memory, equal shapes, one
/// table. Sets Pass::follows, Schedule::chained and the storage of the maps in between.
void linkChains(Schedule& schedule);

/// Which inputs a result may overwrite: those in its layout, or, if memory is short, also those in another
/// layout with every element at the same address.
enum class InPlace : uint8_t { SameLayout, SamePlaces };

/// The buffer of an input that the result of an elementwise pass or a SCATTER may overwrite: read for the
/// last time by this pass, and laid out like the result; -1: none. `ranges`: lifetimes of the buffers in
/// passes.
int32_t dyingInput(const Schedule& schedule, const Pass& pass, std::span<const LiveRange> ranges,
                   InPlace inPlace);

/// Which maps cascades may hold some rows of: results that are read as they are, or also those of which
/// passes read parts, such as some channels, or that several passes write side by side.
enum class RollingMaps : uint8_t { Whole, Parts };

/// The facts by which cascades are chosen; staged bytes and cycles are left to the caller. `area`: the area
/// that cascades are to keep small.
CascadeProblem cascadeProblem(const Schedule& schedule, std::span<const LiveRange> ranges, npu::Area area,
                              InPlace inPlace, RollingMaps rolling);

}  // namespace carina::compiler
