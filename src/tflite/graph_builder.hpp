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
/// What is computed from the shapes of tensors is a constant as well (tfl/shape_values.hpp). Errors, all of
/// them up to 20 and each with the operator's place: operators without a place in the dialect (control flow,
/// custom ones), open shapes, and what contradicts itself.
Result<ir::Graph> readNetwork(const std::filesystem::path& path);

/// The same of a model that is read; `owner` keeps its bytes alive.
Result<ir::Graph> buildGraph(const Model& model, const std::shared_ptr<const void>& owner);

/// A subgraph as a part of such a network.
struct PartialSubgraph {
  size_t index = 0;                        // in the model
  std::vector<std::string> names;          // by tensor: of its value; "" without one
  std::vector<ir::LocationRef> operators;  // by operator: of its node
  std::vector<size_t> folded;              // operators without one: what they make is a constant
};

/// A network of which some operators need not be known: what has no place in the dialect, or not in that
/// form, is a tfl.OTHER. These stand in the file's order and have effects of their own; for some it is known
/// that these are about one variable. Constants, variables and tensors that no graph can hold (strings, open
/// shapes) are none of their operands and results, and not all inputs and outputs of the file need be in the
/// graph. Subgraphs that operators run follow the main one in the same graph, each between a tfl.SUBGRAPH,
/// whose results are its inputs, and a tfl.RETURN of its outputs: no value goes from one to another.
struct PartialNetwork {
  ir::Graph graph;
  std::vector<PartialSubgraph> subgraphs;                      // the main one first
  std::unordered_map<const ir::Location*, Diagnostic> others;  // why an operator is a tfl.OTHER
  /// By operator: the name of the variable that it handles, and nothing else.
  std::unordered_map<const ir::Location*, std::string> variables;
};

/// Whether a node is a tfl.SUBGRAPH or tfl.RETURN.
bool isSubgraphEnd(const ir::Node& node);

/// Errors: what contradicts itself (a tensor that nothing makes, or two operators make), subgraphs that run
/// themselves.
Result<PartialNetwork> buildPartialNetwork(const Model& model, const std::shared_ptr<const void>& owner);

}  // namespace carina::tflite
