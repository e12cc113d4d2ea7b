// SPDX-License-Identifier: Apache-2.0
#include "toy_support.hpp"

namespace carina::toy {

Result<std::vector<ir::Type>> infer::same(const ir::Node& node) {
  if (node.operands().empty()) return fail(Code::InvalidOperator, "nothing to infer from");
  return std::vector<ir::Type>{node.operands().front()->type};
}

Status check::sameShapes(const ir::Node& node) {
  if (node.operand(0)->shape() == node.operand(1)->shape()) return {};
  return fail(Code::InvalidOperator, "shapes {} and {} differ", shapeText(node.operand(0)->shape()),
              shapeText(node.operand(1)->shape()));
}

}  // namespace carina::toy
