// SPDX-License-Identifier: Apache-2.0
// Plans of all passes: what stays in SRAM between them, and which weights are loaded together.
#pragma once

#include "ethosn/compiler/plan.hpp"

namespace carina::ethosn::compiler {

struct PlannedPasses {
  PassList list;  // with copies to bricks where a pass must be cut in channels
  std::vector<Plan> plans;
};

/// A feature map in NHWC cannot be cut in channels; a pass that requires it works on copies in bricks.
Result<PlannedPasses> planPasses(PassList list, const Target& target);

}  // namespace carina::ethosn::compiler
