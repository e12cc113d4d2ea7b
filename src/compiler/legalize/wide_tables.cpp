// SPDX-License-Identifier: Apache-2.0
#include "compiler/legalize/wide_tables.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "compiler/legalize/pointwise_part.hpp"
#include "tosa/interpreter.hpp"
#include "tosa/tosa.hpp"

namespace carina::compiler {
namespace {

constexpr int64_t kByteCodes = 256;

/// Whether only nodes of the part read what its nodes, but for the last one, compute.
bool isClosed(const PointwisePart& part) {
  const std::unordered_set<const ir::Node*> nodes(part.nodes.begin(), part.nodes.end());
  return std::all_of(part.nodes.begin(), part.nodes.end() - 1, [&](const ir::Node* node) {
    const ir::Value* value = node->result();
    return !value->isGraphOutput() &&
           std::all_of(value->uses().begin(), value->uses().end(),
                       [&](const ir::Use& use) { return nodes.contains(use.node); });
  });
}

bool readsAlone(const PointwisePart& part) {
  return !part.input->isGraphOutput() &&
         std::all_of(part.input->uses().begin(), part.input->uses().end(), [&](const ir::Use& use) {
           return std::find(part.nodes.begin(), part.nodes.end(), use.node) != part.nodes.end();
         });
}

std::optional<Tensor> tableOf(const PointwisePart& part) {
  const auto graph = graphOf(part, kByteCodes);
  if (!graph) return std::nullopt;
  Tensor codes = Tensor::uninitialized(DType::Int8, graph->inputs().front()->shape());
  const auto numbers = codes.mutableAs<int8_t>();
  std::iota(numbers.begin(), numbers.end(), static_cast<int8_t>(-128));
  auto outputs = tosa::interpret(*graph, {&codes, 1});
  if (!outputs.ok() || outputs->front().numElements() != kByteCodes) return std::nullopt;
  return outputs->front().reshaped({kByteCodes});
}

}  // namespace

WideTables::WideTables(const ir::Graph& tosa) {
  std::vector<const ir::Node*> nodes;
  for (const ir::Node* node : tosa.nodes()) nodes.push_back(node);
  std::reverse(nodes.begin(), nodes.end());  // the longest parts first
  for (const ir::Node* node : nodes) {
    // What only widens is part of what reads it.
    if (node->results().size() != 1 || node->result()->dtype() != DType::Int32 || inside_.contains(node) ||
        ir::isa<tosa::Rescale>(node))
      continue;
    const auto part = pointwisePart(node, DType::Int8);
    if (!part || part->tables < 2 || !isClosed(*part)) continue;
    auto table = tableOf(*part);
    if (!table) continue;
    inside_.insert(part->nodes.begin(), part->nodes.end() - 1);
    matches_.emplace(node, Match{part->input, readsAlone(*part), std::move(*table)});
  }
}

}  // namespace carina::compiler
