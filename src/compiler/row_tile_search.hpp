// SPDX-License-Identifier: Apache-2.0
// Decides which runs of operators are tiled by rows (legalize/row_tiles.hpp): norms and softmax whose maps do
// not fit a cache together. Convolutions with many weights are not tiled: each tile would read them again.
#pragma once

#include <functional>
#include <optional>

#include "base/result.hpp"
#include "compiler/legalize/row_tiles.hpp"
#include "compiler/search/options.hpp"
#include "ir/graph.hpp"
#include "npu/targets/target.hpp"

namespace carina::compiler {

/// Tiles the runs of a TOSA graph that are expected to take fewer cycles in tiles: each candidate is
/// scheduled on its own, whole and in several numbers of tiles. Nothing if there are none; without a cache in
/// front of a slow arena, there never are. `lower`: from TOSA to a graph that is ready for scheduling.
std::optional<TiledGraph> withRowTiles(const ir::Graph& tosa, const npu::Machine& machine,
                                       const Options& options,
                                       const std::function<Result<ir::Graph>(const ir::Graph&)>& lower);

}  // namespace carina::compiler
