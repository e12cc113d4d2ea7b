// SPDX-License-Identifier: Apache-2.0
// How often the instructions of a method run, as far as the method itself determines it.
#pragma once

#include <vector>

#include "pte/program.hpp"

namespace carina::cpu {

/// For each instruction of a chain, how often one execution runs it: in a loop that repeats until a counter,
/// which starts at 0, has reached a constant, once per iteration; otherwise once. Branches count as taken.
std::vector<double> knownTripCounts(const pte::Method& method, const pte::Chain& chain);

}  // namespace carina::cpu
