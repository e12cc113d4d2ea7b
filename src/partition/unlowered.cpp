// SPDX-License-Identifier: Apache-2.0
#include "partition/unlowered.hpp"

#include "lower/lower.hpp"

namespace carina::partition {

bool isClosed(const Unit& unit) {
  return !unit.boundary && extract(unit.nodes, "part").ok();
}

std::vector<Unit> unloweredUnits(const ir::Graph& graph) {
  std::vector<Unit> found;
  for (Unit& unit : findUnits(graph).units) {
    if (unit.boundary) continue;
    const auto part = extract(unit.nodes, "part");
    if (part.ok() && !lower::lowerToTosa(part->graph).ok()) found.push_back(std::move(unit));
  }
  return found;
}

}  // namespace carina::partition
