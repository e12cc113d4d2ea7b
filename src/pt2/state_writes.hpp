// SPDX-License-Identifier: Apache-2.0
// Programs that write their inputs, buffers or constants: how this affects later calls.
#pragma once

#include "pt2/exported_program.hpp"
#include "pt2/graph_builder.hpp"

namespace carina::pt2 {

/// Makes the graph functional. Writes to a buffer that no result depends on (a counter of batches) are
/// dropped, as are writes to program inputs: results stay the same, with a warning. A written buffer that
/// results depend on, or that other methods share, is state: an error, or an extra input and output,
/// depending on `options`. Fills in the buffers and warnings of `exported`.
Status resolveWrites(BuiltProgram& program, const ReadOptions& options, ExportedProgram& exported);

}  // namespace carina::pt2
