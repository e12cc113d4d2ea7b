// SPDX-License-Identifier: Apache-2.0
// Programs that write their inputs, buffers or constants: what that means for a program that is called again
// and again.
#pragma once

#include "pt2/exported_program.hpp"
#include "pt2/graph_builder.hpp"

namespace carina::pt2 {

/// Makes the graph functional. A written buffer that no result depends on (a counter of batches) loses its
/// write, as does a write to a program input: results stay the same, `warnings` says so. A written buffer
/// that results depend on, or that other programs share, is state: an error, or an extra input and output, as
/// `options` want. Fills in buffers and warnings of `exported`.
Status resolveWrites(BuiltProgram& program, const ReadOptions& options, ExportedProgram& exported);

}  // namespace carina::pt2
