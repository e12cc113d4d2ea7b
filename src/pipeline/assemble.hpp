// SPDX-License-Identifier: Apache-2.0
// From a partitioned graph and its compiled delegates to a program.
#pragma once

#include <span>

#include "compiler/compiler.hpp"
#include "partition/partition.hpp"
#include "pipeline/pipeline.hpp"
#include "pte/delegate_blob.hpp"

namespace carina::pipeline {

/// The delegate blob of a compiled part. Fails beyond 16 MiB of commands or 4 GiB of arena.
Result<pte::DelegateBlob> delegateBlob(const compiler::CompiledProgram& compiled);

struct Assembled {
  pte::Program program;
  ProgramGraph computed;
};

/// A program of one method "forward": quantize and dequantize become kernels, program.delegate_call a
/// delegate. `compiled[i]` belongs to partitioned.delegates[i]. Fails, with every place, on nodes that have
/// no kernel in the runtime.
Result<Assembled> assembleProgram(const partition::Partitioned& partitioned,
                                  std::span<const compiler::CompiledProgram> compiled, bool integerIo);

}  // namespace carina::pipeline
