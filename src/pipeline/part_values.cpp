// SPDX-License-Identifier: Apache-2.0
#include "pipeline/part_values.hpp"

#include "ir/regions.hpp"

namespace carina::pipeline {

PartValues::PartValues(const ir::Graph& tosa) {
  const std::vector<const ir::Graph*> graphs = ir::graphsWithin(tosa);
  for (size_t i = 0; i < graphs.size(); ++i) graphs_[graphs[i]] = i;
}

void PartValues::keep(const ir::Value& value, const Tensor& tensor) {
  if (value.name.empty() || !value.producer()) return;
  const size_t graph = graphs_.at(&value.producer()->graph());
  const auto [index, isNew] = index_.try_emplace({graph, value.name}, all_.size());
  if (isNew) all_.push_back({&value, graph, {}, 0});
  Turns& turns = all_[index->second];
  if (turns.count++ < kMostCompared) turns.first.push_back(tensor);
}

const PartValues::Turns* PartValues::find(const compiler::ValuePlacement& placement) const {
  const auto found = index_.find({placement.graph, placement.value});
  return found == index_.end() ? nullptr : &all_[found->second];
}

}  // namespace carina::pipeline
