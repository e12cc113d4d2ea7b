// SPDX-License-Identifier: Apache-2.0
// Generates consistent but unusual networks: operators of the ATen table with sizes of 0 and 1, odd and huge
// sizes, unusual arguments, shared and broadcast operands, quantize and dequantize nodes. Networks that
// violate PyTorch's shape rules are not generated.
#pragma once

#include "ir/graph.hpp"
#include "networks/choices.hpp"

namespace carina::fuzz {

/// A functional aten graph of one to six operators, as a reader would return it. Most have few elements, some
/// more than fit on any machine.
ir::Graph makeNetwork(Choices& choices);

}  // namespace carina::fuzz
