// SPDX-License-Identifier: Apache-2.0
// tfl -> tosa: operators of quantized TensorFlow Lite networks with the arithmetic of its reference kernels.
#pragma once

#include "ir/graph.hpp"

namespace carina::lower_tfl {

/// `network`: a graph of the tfl dialect whose nodes passed their checks. The result has the same inputs and
/// outputs, names included (TOSA knows no unsigned numbers: uint8 ones travel as the int8 with the same
/// bits). RESCALEs round twice where TensorFlow Lite does. Errors: every node that cannot be expressed, with
/// its place, the reason and what to change.
Result<ir::Graph> lowerToTosa(const ir::Graph& network);

/// Whether an operator has a rule, for lists of operators.
bool hasRule(const ir::OpDef& def);

}  // namespace carina::lower_tfl
