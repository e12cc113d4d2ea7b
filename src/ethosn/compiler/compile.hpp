// SPDX-License-Identifier: Apache-2.0
// From a network of Ethos-N operations to a compiled network. Deterministic.
#pragma once

#include "ethosn/compiler/network.hpp"
#include "ethosn/stream/compiled_network.hpp"
#include "ethosn/targets/variant.hpp"

namespace carina::ethosn {

/// What the hardware does in one go for an operation.
struct CompiledPass {
  std::string operation;  // its name in the network
  std::string mce, ple;   // "convolution", "passthrough"; empty where the engine has nothing to do
  uint32_t firstAgent = 0, endAgent = 0;      // in the command stream
  uint64_t inputBytes = 0, outputBytes = 0;   // of the maps
  uint64_t residentInputBytes = 0;            // that lie in SRAM already
  bool outputStays = false;                   // in SRAM alone
  uint64_t weightBytes = 0, streamBytes = 0;  // weights as they are, and encoded
};

/// Inputs and outputs of the result are in the order of the network's. Fails with operation (as place),
/// reason and remedy on what the hardware cannot run, on what the compiler does not do, and where a stripe
/// does not fit SRAM. `passes`, when given, gets what the commands do, in order.
Result<CompiledNetwork> compileNetwork(const Network& network, const Target& target,
                                       std::vector<CompiledPass>* passes = nullptr);

}  // namespace carina::ethosn
