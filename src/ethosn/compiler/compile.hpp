// SPDX-License-Identifier: Apache-2.0
// From a network of Ethos-N operations to a compiled network. Deterministic.
#pragma once

#include "ethosn/compiler/network.hpp"
#include "ethosn/stream/compiled_network.hpp"
#include "ethosn/targets/variant.hpp"

namespace carina::ethosn {

/// Inputs and outputs of the result are in the order of the network's. Fails with operation, reason and
/// remedy on what the hardware cannot run, on what the compiler does not do, and where a stripe does not fit
/// SRAM.
Result<CompiledNetwork> compileNetwork(const Network& network, const Target& target);

}  // namespace carina::ethosn
