// SPDX-License-Identifier: Apache-2.0
// Compiles a network to a compiled network for an Ethos-N78.
#pragma once

#include "ethosn/stream/compiled_network.hpp"
#include "ethosn/targets/variant.hpp"
#include "pipeline/pipeline.hpp"

namespace carina::pipeline {

/// An input or output as 8-bit codes, with their meaning if the network records it.
struct EthosNPort {
  std::string name;
  ir::Type type;
  std::optional<ir::Quantization> quantization;
};

/// Inputs and outputs are in the order of the source network.
struct EthosNBuild {
  ethosn::Target target;
  ir::Graph tosa;
  ethosn::CompiledNetwork network;
  std::vector<EthosNPort> inputs, outputs;
  std::vector<size_t> graphInputs, graphOutputs;  // indices in `tosa`, for each input and output
  std::vector<Diagnostic> warnings;
  std::vector<StageTime> times;
};

/// Rejects options that have no meaning for an Ethos-N.
Status checkEthosNOptions(const Options& options);

/// The whole network must run on the NPU, with 8-bit inputs and outputs; otherwise the error names the
/// operators that cannot.
Result<EthosNBuild> buildEthosN(const Options& options);

/// `output` must end in .encn. Written together with the other files, or not at all.
Status addEthosNOutput(const EthosNBuild& build, const std::filesystem::path& output, OutputFiles& files);
Status checkEthosNOutput(const std::filesystem::path& output);

}  // namespace carina::pipeline
