// SPDX-License-Identifier: Apache-2.0
// tfl -> tosa: operators of quantized TensorFlow Lite networks with the arithmetic of its reference kernels.
#pragma once

#include <vector>

#include "ir/graph.hpp"

namespace carina::lower_tfl {

/// A network as TOSA: the same inputs and outputs, names and quantization included.
struct Lowered {
  ir::Graph tosa;
  /// Types of inputs and outputs in the network, which may differ from the graph's: Float32 where they are
  /// quantized (dequantized) first (last) thing in it, and the graph's are the integers; UInt8 where the
  /// graph has the same bytes as int8, for TOSA's tensors have no sign.
  std::vector<DType> inputTypes, outputTypes;

  bool floatEdges() const;
  /// What the graph gives, with the network's types: bytes of uint8 as such.
  std::vector<Tensor> networkOutputs(std::vector<Tensor> outputs) const;
};

/// `network`: a graph of the tfl dialect whose nodes passed their checks. RESCALEs round twice where
/// TensorFlow Lite does. Codes of uint8 are int8 inside. Errors: every node that cannot be expressed, with
/// its place, the reason and what to change.
Result<Lowered> lowerToTosa(const ir::Graph& network);

/// The place that errors name for a node: "operator 3 (CONV_2D) 'features'".
std::string placeOf(const ir::Node& node);

/// Whether an operator may stand in a network, for lists of operators.
bool hasRule(const ir::OpDef& def);

}  // namespace carina::lower_tfl
