// SPDX-License-Identifier: Apache-2.0
// Composite aten operators into the small set that the quantizer annotates and lowerToTosa knows.
#pragma once

#include "ir/graph.hpp"

namespace carina::lower {

/// Rewrites in place; float results stay equal up to rounding. Identities are removed, constants folded,
/// in-place forms are expected to be gone. Operators it does not know are left alone (the partitioner will
/// say where they run).
Status decompose(ir::Graph& graph);

}  // namespace carina::lower
