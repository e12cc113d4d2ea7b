// SPDX-License-Identifier: Apache-2.0
// Programs with control flow: each block is scheduled on its own, and branches lead from one to the next.
#pragma once

#include <functional>

#include "compiler/compiler.hpp"

namespace carina::compiler {

/// Produces the npu graph of a block, ready for scheduling.
using ToNpu = std::function<Result<ir::Graph>(const ir::Graph& tosa, const npu::Machine& machine)>;

/// compile() for a graph with COND_IF or WHILE_LOOP, on targets with branches.
Result<CompiledProgram> compileFlow(const ir::Graph& tosa, const npu::Machine& machine,
                                    const Options& options, const ToNpu& toNpu);

}  // namespace carina::compiler
