// SPDX-License-Identifier: Apache-2.0
// How often the instructions of a method run, as far as it says so itself.
#pragma once

#include <vector>

#include "pte/program.hpp"

namespace carina::cpu {

/// For each instruction of a chain, how often one execution runs it: in a loop that goes back until a
/// counter, which begins at 0, has reached a number, so many times; otherwise once. Branches count as taken.
std::vector<double> knownTurns(const pte::Method& method, const pte::Chain& chain);

}  // namespace carina::cpu
