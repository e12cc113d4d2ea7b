// SPDX-License-Identifier: Apache-2.0
// hstack, vstack, dstack and column_stack as a concatenation of reshaped operands.
#pragma once

#include "ir/graph.hpp"

namespace carina::aten {

struct JoinPlan {
  std::vector<Shape> parts;  // shape of each operand as it is concatenated
  int64_t dim = 0;
  Shape output;
};
Result<JoinPlan> joinPlan(const ir::Node& node);

}  // namespace carina::aten
