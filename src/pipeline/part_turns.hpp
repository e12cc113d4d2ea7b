// SPDX-License-Identifier: Apache-2.0
// How often NPU parts run in one inference.
#pragma once

#include <optional>
#include <vector>

#include "compiler/cycle_bound.hpp"
#include "pipeline/pipeline.hpp"

namespace carina::pipeline {

/// For each NPU part in order: the iterations of the loops over slices around it. Branches count as taken,
/// other loops as one iteration.
std::vector<int64_t> iterationsOfParts(const ir::Graph& graph);

/// Cycles and multiply-accumulates of the Ethos-U in one inference, with parts in loops counted per
/// iteration.
npu::Cycles npuCycles(const Build& build);
int64_t npuMacs(const Build& build);

/// A bound on npuCycles() (compiler/cycle_bound.hpp), with parts in loops counted per iteration. nullopt if a
/// part branches, or there is none.
std::optional<compiler::CycleBound> npuCycleBound(const Build& build);

}  // namespace carina::pipeline
