// SPDX-License-Identifier: Apache-2.0
// Structural and operator-level checks of a graph.
#pragma once

#include "ir/graph.hpp"

namespace carina::ir {

/// Checks that every operand is defined before its use in the same graph, attribute kinds fit the table,
/// recorded result types are valid and equal the inferred ones, and operator verifiers succeed; includes
/// nested regions. Collects all errors, at most 20.
Status verify(const Graph& graph);

/// Whether graphs are verified after each pass and not only where one floor hands them to the next: in
/// sanitizer builds, and if the environment has CARINA_VERIFY_EACH_PASS (all tests).
bool verifiesEachPass();

/// Carina's own passes must leave valid graphs: otherwise ends the program like a failed CARINA_CHECK, with
/// the errors. `pass` names the one that left `graph`.
void checkVerified(const Graph& graph, std::string_view pass);

}  // namespace carina::ir
