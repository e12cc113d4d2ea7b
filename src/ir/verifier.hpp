// SPDX-License-Identifier: Apache-2.0
// Structural and operator-level checks of a graph.
#pragma once

#include "ir/graph.hpp"

namespace carina::ir {

/// Every operand is defined before its use in the same graph, uses match, arities and attribute kinds fit the
/// table, recorded result types equal the inferred ones, operator verifiers agree; nested regions too.
/// Collects all errors, at most 20.
Status verify(const Graph& graph);

/// Whether graphs are verified after each pass and not only where one floor hands them to the next: in
/// sanitizer builds, and where the environment has CARINA_VERIFY_EACH_PASS (all tests).
bool verifiesEachPass();

/// What Carina's own passes leave must be valid: ends the program like a failed CARINA_CHECK, with the
/// errors. `pass`: who left the graph.
void checkVerified(const Graph& graph, std::string_view pass);

}  // namespace carina::ir
