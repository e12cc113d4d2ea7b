// SPDX-License-Identifier: Apache-2.0
// Networks compiled for Ethos-N78 (.encn): inspection, checking, execution.
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
/// The commands as text; with the constants, as `assemble` needs them, or without.
Result<std::string> ethosNCommands(ByteSpan bytes, bool constants);

struct EthosNCheck {
  size_t words = 0;  // of the command stream
  std::vector<std::string> findings;
};
/// Walks the command lists without computing: waits, memory, registers, weight streams. Whatever ends the
/// walk is a finding, including an exhausted budget.
Result<EthosNCheck> checkEthosN(ByteSpan bytes, WorkBudget& budget);

struct EthosNProgram {
  ethosn::CompiledNetwork network;
  const ethosn::Variant* variant = nullptr;  // null: the network only moves data, and runs on any variant
};
/// `target` empty or the variant to run on; fails when the network is for another one.
Result<EthosNProgram> readEthosN(ByteSpan bytes, std::string_view target);

/// The container records only the size in bytes of an input: its shape is that of the array among `in0, in1,
/// ...` if there is one with as many elements, else one axis. Unsigned, unless arrays are i8. Fails on
/// floating-point arrays: the container does not record what codes represent.
Result<std::vector<Port>> ethosNPorts(const EthosNProgram& program, const NamedTensors& arrays);
Result<ethosn::RunResult> runEthosN(const EthosNProgram& program, std::span<const Tensor> inputs, bool check,
                                    WorkBudget& budget);
/// Outputs have one axis, and the type of the inputs.
std::vector<Tensor> ethosNOutputs(const std::vector<std::vector<uint8_t>>& outputs,
                                  std::span<const Port> inputs);

}  // namespace carina::pipeline
