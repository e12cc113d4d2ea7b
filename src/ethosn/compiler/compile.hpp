// SPDX-License-Identifier: Apache-2.0
// Compiles a network of Ethos-N operations. Deterministic.
#pragma once

#include "ethosn/compiler/network.hpp"
#include "ethosn/stream/compiled_network.hpp"
#include "ethosn/targets/variant.hpp"

namespace carina::ethosn {

/// A hardware pass, and the operation that it belongs to.
struct CompiledPass {
  std::string operation;                      // its name in the network
  std::string mce, ple;                       // "convolution", "PASSTHROUGH"; empty if the engine is not used
  uint32_t firstAgent = 0, endAgent = 0;      // in the command stream
  uint64_t inputBytes = 0, outputBytes = 0;   // of the feature maps
  uint64_t residentInputBytes = 0;            // already in SRAM
  bool outputStays = false;                   // in SRAM only
  uint64_t weightBytes = 0, streamBytes = 0;  // weights as given, and encoded
};

/// Inputs and outputs of the result are in the order of the network's. Fails, with operation (as the place),
/// reason and remedy, on what the hardware cannot run or the compiler does not support, and if a stripe does
/// not fit SRAM. `passes`, if not null, receives the passes in order.
Result<CompiledNetwork> compileNetwork(const Network& network, const Target& target,
                                       std::vector<CompiledPass>* passes = nullptr);

}  // namespace carina::ethosn
