// SPDX-License-Identifier: Apache-2.0
// Profiles for an Ethos-N, for the commands that show them.
#pragma once

#include "pipeline/ethosn_profile.hpp"
#include "pipeline/gates.hpp"

namespace carina::app {

struct EthosNMeasured {
  pipeline::EthosNProfile profile;
  pipeline::Measured measured;  // for gates
};

/// Whether the target, or a finished program given as the model, is for an Ethos-N.
bool isForEthosN(const pipeline::Options& options);
/// For a network, which is compiled, or for a finished program.
Result<EthosNMeasured> measureEthosN(const pipeline::Options& options);

}  // namespace carina::app
