// SPDX-License-Identifier: Apache-2.0
// tfl -> tosa: operators of quantized TensorFlow Lite networks with the arithmetic of its reference kernels.
#pragma once

#include <vector>

#include "ir/graph.hpp"

namespace carina::lower_tfl {

/// A network as TOSA: the same inputs and outputs, names and quantization included.
struct Lowered {
  ir::Graph tosa;
  /// Which inputs (outputs) are float in the network, and quantized (dequantized) first (last) thing in it:
  /// the graph's are the integers.
  std::vector<bool> floatInputs, floatOutputs;

  bool floatEdges() const;
};

/// `network`: a graph of the tfl dialect whose nodes passed their checks. RESCALEs round twice where
/// TensorFlow Lite does. Errors: every node that cannot be expressed, with its place, the reason and what to
/// change.
Result<Lowered> lowerToTosa(const ir::Graph& network);

/// The same where tensors may be uint8, too: inside they are int8, by codes 128 less. Inputs and outputs keep
/// their bytes, as TOSA has them: int8 tensors that a RESCALE takes (makes) as unsigned.
Result<Lowered> lowerBytesToTosa(const ir::Graph& network);

/// The place that errors name for a node: "operator 3 (CONV_2D) 'features'".
std::string placeOf(const ir::Node& node);

/// Whether an operator may stand in a network, for lists of operators.
bool hasRule(const ir::OpDef& def);

}  // namespace carina::lower_tfl
