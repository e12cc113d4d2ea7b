// SPDX-License-Identifier: Apache-2.0
// Decides which runs of operators are tiled by rows (legalize/row_tiles.hpp).
//
// For speed, behind a cache: norms and softmax whose maps do not fit the cache together. Convolutions with
// many weights are not tiled: each tile would read them again.
// For memory, without a cache: whole runs, such as attention by heads and layers over tokens by tokens, whose
// maps would determine the size of the arena.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "compiler/legalize/row_tiles.hpp"
#include "compiler/search/options.hpp"
#include "ir/graph.hpp"
#include "npu/targets/target.hpp"

namespace carina::compiler {

/// From TOSA to a graph that is ready for scheduling.
using Lower = std::function<Result<ir::Graph>(const ir::Graph&)>;

/// The TOSA graph with tiles where they are expected to take fewer cycles, in up to four ways, the most
/// promising one first. Each candidate is scheduled on its own, whole and in several numbers of tiles. The
/// graphs differ in whether pairs of layers are tiled together with the norms around them, which may be in
/// smaller tiles, and whether products of computed matrices are tiled (Ethos-U85). Nothing if no tiles are
/// faster; without a cache in front of a slow arena, none are.
std::vector<TiledGraph> tiledForSpeed(const ir::Graph& tosa, const npu::Machine& machine,
                                      const Options& options, const Lower& lower);

/// Tiles as few runs of a TOSA graph, in as few tiles, as a bound on the arena of `bytes` allows or, if that
/// is not possible, the least bound. Nothing if tiles do not lower the bound, or if there is a cache.
std::optional<TiledGraph> tiledForMemory(const ir::Graph& tosa, const npu::Machine& machine,
                                         const Options& options, int64_t bytes, const Lower& lower);

}  // namespace carina::compiler
