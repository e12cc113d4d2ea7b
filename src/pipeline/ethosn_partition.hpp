// SPDX-License-Identifier: Apache-2.0
// Parts of a network for an Ethos-N, compiled as they are found: a candidate is a part if it compiles.
#pragma once

#include "pipeline/partitioning.hpp"

namespace carina::pipeline {

/// The variant that a target names, with its default SRAM size. Fails, at "--target", if it is not a
/// supported target.
Result<ethosn::Target> chosenEthosN(const Options& options);

/// A TOSA graph as one part. Errors name the operators as ethosn::sourceName() does.
Result<EthosNPart> compileEthosNPart(const ir::Graph& tosa, const ethosn::Target& target);

/// Which operators of a TOSA graph cannot be placed if the graph is to be one part.
partition::Supports ethosNSupports(const ir::Graph& tosa, const ethosn::Target& target);

/// Places whole graphs by compiling them, into `part` unless it is null. `target` must outlive it.
partition::Place ethosNPlace(const ethosn::Target& target, std::optional<EthosNPart>* part = nullptr);

struct EthosNPartitioned {
  partition::Partitioned partitioned;
  std::vector<EthosNPart> parts;  // per delegate
};
/// Like partitionFor(). A part without convolution, vector product, pooling, mean, resize, sigmoid or tanh is
/// left to the CPU if the CPU computes something anyway: moving its feature maps takes longer than computing
/// them there. This does not apply to networks of TensorFlow Lite, for whose operators the CPU has few
/// kernels.
Result<EthosNPartitioned> partitionForEthosN(const Options& options, const ethosn::Target& target,
                                             Front& front, bool keepParts);

}  // namespace carina::pipeline
