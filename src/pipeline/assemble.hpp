// SPDX-License-Identifier: Apache-2.0
// From a partitioned graph and its compiled delegates to a program.
#pragma once

#include <span>

#include "partition/partition.hpp"
#include "pipeline/pipeline.hpp"
#include "pte/program.hpp"

namespace carina::pipeline {

/// The delegate of a part for an Ethos-N.
pte::Delegate delegateOf(const EthosNPart& part, const ethosn::Target& target);

/// What one method of a program is made of. `delegates[i]` belongs to partitioned.delegates[i], and is moved
/// into the program.
struct MethodParts {
  const partition::Partitioned& partitioned;
  std::span<pte::Delegate> delegates;
  const ir::State& state;
};

/// Appends a method to a program: quantize and dequantize become kernels, program.delegate_call a delegate.
/// State lies in `pool`; what is written to it is written when everything else is done, or by the delegate
/// that alone reads and makes it. Fails, with every place, on nodes that have no kernel in the runtime, and
/// on state that differs from that of the methods before.
Result<ProgramGraph> assembleMethod(const MethodParts& parts, const std::string& method,
                                    pte::Program& program, pte::StatePool& pool);

/// Appends options.constantMethods. Fails where another method has the name.
Status addConstantMethods(const Options& options, pte::Program& program);

}  // namespace carina::pipeline
