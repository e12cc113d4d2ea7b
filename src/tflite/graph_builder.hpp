// SPDX-License-Identifier: Apache-2.0
// A quantized network in a .tflite file as a graph of the tfl dialect.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/graph.hpp"
#include "tflite/model.hpp"

namespace carina::tflite {

/// The main subgraph: values carry the file's names (made unique) and quantization, nodes the name of their
/// first result as location. Constants borrow the mapped file where aligned; packed int4 ones become int8.
/// Errors, all of them up to 20 and each with the operator's place: operators without a place in the dialect
/// (control flow, custom ones), open shapes, and what contradicts itself.
Result<ir::Graph> readNetwork(const std::filesystem::path& path);

/// The same of a model that is read; `owner` keeps its bytes alive.
Result<ir::Graph> buildGraph(const Model& model, const std::shared_ptr<const void>& owner);

/// A network of which some operators need not be known: what has no place in the dialect, or not in that
/// form, is a tfl.OTHER. These stand in the file's order and have effects of their own (variables,
/// resources). Constants, variables and tensors that no graph can hold (strings, open shapes) are none of
/// their operands and results, and not all inputs and outputs of the file need be in the graph.
struct PartialNetwork {
  ir::Graph graph;
  std::vector<std::string> names;          // by tensor of the main subgraph: of its value; "" without one
  std::vector<ir::LocationRef> operators;  // by operator of the main subgraph: of its node
  std::unordered_map<const ir::Location*, Diagnostic> others;  // why an operator is a tfl.OTHER
};

/// Errors: what contradicts itself (a tensor that nothing makes, or two operators make).
Result<PartialNetwork> buildPartialNetwork(const Model& model, const std::shared_ptr<const void>& owner);

}  // namespace carina::tflite
