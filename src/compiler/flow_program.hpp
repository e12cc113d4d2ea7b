// SPDX-License-Identifier: Apache-2.0
// Programs with control flow: every block is scheduled by itself, and branches lead from one to the next.
#pragma once

#include <functional>

#include "compiler/compiler.hpp"

namespace carina::compiler {

/// What makes the npu graph of a block, ready for a schedule.
using ToNpu = std::function<Result<ir::Graph>(const ir::Graph& tosa, const npu::Machine& machine)>;

/// compile() of a graph with COND_IF or WHILE_LOOP, for targets that branch.
Result<CompiledProgram> compileFlow(const ir::Graph& tosa, const npu::Machine& machine,
                                    const Options& options, const ToNpu& toNpu);

}  // namespace carina::compiler
