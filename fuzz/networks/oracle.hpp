// SPDX-License-Identifier: Apache-2.0
// What must hold for any network: it is refused with a reason, or it becomes a program that checks, runs, and
// computes on the NPU what its TOSA graph says.
#pragma once

#include <string>

#include "ir/graph.hpp"
#include "networks/choices.hpp"

namespace carina::fuzz {

struct Verdict {
  bool served = false;  // compiled and run
  std::string refusal;  // why not, where it was not
  std::string defect;   // what is wrong with the tool; empty: nothing
  std::string how;      // target and precision
};

/// Compiles `network` for a target and precision of the choices, and runs it on one sample.
Verdict tryNetwork(ir::Graph network, Choices& choices);

}  // namespace carina::fuzz
