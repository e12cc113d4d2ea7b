// SPDX-License-Identifier: Apache-2.0
// Builds a program from a partitioned graph and its compiled delegates.
#pragma once

#include <span>

#include "partition/partition.hpp"
#include "pipeline/pipeline.hpp"
#include "pte/program.hpp"

namespace carina::pipeline {

/// The delegate of a part for an Ethos-N.
pte::Delegate delegateOf(const EthosNPart& part, const ethosn::Target& target);

/// The components of one method of a program. `delegates[i]` belongs to partitioned.delegates[i] and is moved
/// into the program.
struct MethodParts {
  const partition::Partitioned& partitioned;
  std::span<pte::Delegate> delegates;
  const ir::State& state;
};

/// Appends a method to a program: quantize and dequantize become kernels, program.delegate_call a delegate.
/// State is kept in `pool`. It is updated when everything else is done, or in place by the delegate that
/// produces the new contents if only delegates up to that one read the old. Fails, listing every location, on
/// nodes that have no kernel in the runtime, and on state that differs from that of earlier methods.
Result<ProgramGraph> assembleMethod(const MethodParts& parts, const std::string& method,
                                    pte::Program& program, pte::StatePool& pool);

/// Appends options.constantMethods. Fails if another method has the same name.
Status addConstantMethods(const Options& options, pte::Program& program);

}  // namespace carina::pipeline
