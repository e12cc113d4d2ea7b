// SPDX-License-Identifier: Apache-2.0
// Networks compiled for Ethos-N78 (.encn): what is in them, whether they are sound, runs.
#pragma once

#include <string>
#include <vector>

#include "base/npy.hpp"
#include "base/result.hpp"
#include "ethosn/model/run.hpp"
#include "ethosn/stream/compiled_network.hpp"
#include "pipeline/batch.hpp"

namespace carina::pipeline {

/// A few lines: variant, buffers, layers, commands.
Result<std::string> ethosNSummary(ByteSpan bytes);
/// The commands as text; with the constants, as `assemble` needs it, or without.
Result<std::string> ethosNCommands(ByteSpan bytes, bool constants);

struct EthosNCheck {
  size_t words = 0;  // of the command stream
  std::vector<std::string> findings;
};
/// Walks the command lists without computing: waits, memory, registers, weight streams. What ends the walk is
/// a finding, also that the budget does.
Result<EthosNCheck> checkEthosN(ByteSpan bytes, WorkBudget& budget);

struct EthosNProgram {
  ethosn::CompiledNetwork network;
  const ethosn::Variant* variant = nullptr;  // null: the network only moves data, and runs on any
};
/// `target` empty or the variant to run on; fails when the network is for another one.
Result<EthosNProgram> readEthosN(ByteSpan bytes, std::string_view target);

/// The container says only how many bytes an input has: its shape is that of `in0, in1, ...` where an array
/// is given that has as many elements, else one axis. Unsigned, unless arrays are i8. Fails on arrays of real
/// numbers: the container does not say what codes stand for.
Result<std::vector<Port>> ethosNPorts(const EthosNProgram& program, const NamedTensors& arrays);
Result<ethosn::RunResult> runEthosN(const EthosNProgram& program, std::span<const Tensor> inputs, bool check,
                                    WorkBudget& budget);
/// Outputs have one axis, and the type of the inputs.
std::vector<Tensor> ethosNOutputs(const std::vector<std::vector<uint8_t>>& outputs,
                                  std::span<const Port> inputs);

}  // namespace carina::pipeline
