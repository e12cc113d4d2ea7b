// SPDX-License-Identifier: Apache-2.0
// Converts a quantized network in a .tflite file to a graph of the tfl dialect.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/graph.hpp"
#include "tflite/model.hpp"

namespace carina::tflite {

/// The main subgraph: values have the file's names (made unique) and quantization, nodes the name of their
/// first result as location. Constants borrow the mapped file where aligned; packed int4 ones become int8.
/// Values computed from the shapes of tensors are constants as well (tfl/shape_values.hpp). Reports up to 20
/// errors, each with the operator's place: operators that the dialect does not have (control flow, custom
/// ones), dynamic shapes, and contradictions in the file.
Result<ir::Graph> readNetwork(const std::filesystem::path& path);

/// The same for a model already read; `owner` keeps its bytes alive.
Result<ir::Graph> buildGraph(const Model& model, const std::shared_ptr<const void>& owner);

/// A subgraph of a PartialNetwork.
struct PartialSubgraph {
  size_t index = 0;                        // in the model
  std::vector<std::string> names;          // by tensor: name of its value; "" if it has none
  std::vector<ir::LocationRef> operators;  // by operator: of its node
  std::vector<size_t> folded;              // operators without a node: their result is a constant
};

/// A network in which some operators need not be known: those that the dialect does not support, or not in
/// that form, become tfl.OTHER. These keep the file's order and have side effects; for some of them, the
/// effects are known to be limited to one variable. Constants, variables and tensors that no graph can hold
/// (strings, dynamic shapes) are not among their operands and results, and some inputs and outputs of the
/// file may be missing in the graph. Subgraphs that operators run follow the main one in the same graph, each
/// between a tfl.SUBGRAPH, whose results are its inputs, and a tfl.RETURN of its outputs: no value crosses
/// from one to another.
struct PartialNetwork {
  ir::Graph graph;
  std::vector<PartialSubgraph> subgraphs;                      // the main one first
  std::unordered_map<const ir::Location*, Diagnostic> others;  // why an operator is a tfl.OTHER
  /// By operator: the name of the only variable that it accesses.
  std::unordered_map<const ir::Location*, std::string> variables;
};

/// Whether a node is a tfl.SUBGRAPH or tfl.RETURN.
bool isSubgraphEnd(const ir::Node& node);

/// Fails on contradictions (a tensor that no operator computes, or that two compute) and on recursive
/// subgraphs.
Result<PartialNetwork> buildPartialNetwork(const Model& model, const std::shared_ptr<const void>& owner);

}  // namespace carina::tflite
