// SPDX-License-Identifier: Apache-2.0
// tfl -> tosa: operators of quantized TensorFlow Lite networks with the arithmetic of its reference kernels.
#pragma once

#include <vector>

#include "ir/graph.hpp"

namespace carina::lower_tfl {

/// A network as TOSA: the same inputs and outputs, names and quantization included.
struct Lowered {
  ir::Graph tosa;
  /// Types of inputs and outputs in the network, which may differ from the graph's: Float32 if the network
  /// quantizes them first (dequantizes them last), in which case the graph's are integers; UInt8 if the graph
  /// has the same bytes as int8, since TOSA tensors have no signedness.
  std::vector<DType> inputTypes, outputTypes;

  bool floatEdges() const;
  /// The graph's outputs with the network's types: uint8 bytes as such.
  std::vector<Tensor> networkOutputs(std::vector<Tensor> outputs) const;
};

/// `network`: a graph of the tfl dialect whose nodes passed their checks. RESCALEs round twice where
/// TensorFlow Lite does. Inside, uint8 codes are int8. Fails with one diagnostic for each node that cannot be
/// expressed: place, reason and remedy.
Result<Lowered> lowerToTosa(const ir::Graph& network);

/// How errors refer to a node: "operator 3 (CONV_2D) 'features'".
std::string placeOf(const ir::Node& node);

/// Whether an operator is supported in networks, for lists of operators.
bool hasRule(const ir::OpDef& def);

}  // namespace carina::lower_tfl
