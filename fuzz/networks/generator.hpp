// SPDX-License-Identifier: Apache-2.0
// Makes consistent but odd networks: operators of the ATen table with sizes of 0 and 1, odd and huge sizes,
// arguments that nobody writes, shared and broadcast operands, quantize and dequantize nodes. What PyTorch's
// shape rules refuse is not made.
#pragma once

#include "ir/graph.hpp"
#include "networks/choices.hpp"

namespace carina::fuzz {

/// A functional aten graph of one to six operators, as a reader would hand it on. Most have few elements,
/// some more than any machine holds.
ir::Graph makeNetwork(Choices& choices);

}  // namespace carina::fuzz
