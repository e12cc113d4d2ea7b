// SPDX-License-Identifier: Apache-2.0
// Invariants of any network: it is refused with a reason, or it compiles to a program that passes the check,
// runs, and computes on the NPU the results of its TOSA graph.
#pragma once

#include <string>

#include "ir/graph.hpp"
#include "networks/choices.hpp"

namespace carina::fuzz {

struct Verdict {
  bool served = false;  // compiled and run
  std::string refusal;  // why not, if it was not
  std::string defect;   // error of the tool; empty if there is none
  std::string how;      // target and precision
};

/// Compiles `network` for a target and precision from the choices, and runs it on one sample.
Verdict tryNetwork(ir::Graph network, Choices& choices);

}  // namespace carina::fuzz
