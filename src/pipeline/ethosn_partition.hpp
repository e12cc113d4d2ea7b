// SPDX-License-Identifier: Apache-2.0
// Parts of a network for an Ethos-N, compiled as they are found: a part is one when it compiles.
#pragma once

#include "pipeline/partitioning.hpp"

namespace carina::pipeline {

/// The variant that a target names, with its SRAM by default. Fails, at "--target", on what cannot be
/// compiled for.
Result<ethosn::Target> chosenEthosN(const Options& options);

/// A TOSA graph as one part. Errors name the operators as ethosn::sourceName() does.
Result<EthosNPart> compileEthosNPart(const ir::Graph& tosa, const ethosn::Target& target);

/// Which operators of a TOSA graph cannot be placed, when the graph is to be one part.
partition::Supports ethosNSupports(const ir::Graph& tosa, const ethosn::Target& target);

/// Places whole graphs by compiling them, into `part` unless it is null. `target` outlives it.
partition::Place ethosNPlace(const ethosn::Target& target, std::optional<EthosNPart>* part = nullptr);

struct EthosNPartitioned {
  partition::Partitioned partitioned;
  std::vector<EthosNPart> parts;  // per delegate
};
/// Like partitionFor(). A part without convolution, pooling, resize, sigmoid or vector product is left to the
/// CPU where the CPU has something to do anyway: moving its maps takes longer than computing them there. Not
/// so with networks of TensorFlow Lite, whose operators the CPU has few forms of.
Result<EthosNPartitioned> partitionForEthosN(const Options& options, const ethosn::Target& target,
                                             Front& front, bool keepParts);

}  // namespace carina::pipeline
