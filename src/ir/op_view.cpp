// SPDX-License-Identifier: Apache-2.0
#include "ir/op_view.hpp"

namespace carina::ir {

Result<Node*> Builder::tryCreate(NodeSpec spec) {
  if (!spec.location) spec.location = location_;
  return graph_->create(std::move(spec), before_);
}

Node* Builder::create(NodeSpec spec) {
  auto node = tryCreate(std::move(spec));
  if (!node) checkFailed(node.error().str().c_str(), __FILE__, __LINE__, "a rewrite built an invalid node");
  return *node;
}

double scalarReal(const Attribute& value) {
  if (const auto* real = std::get_if<double>(&value)) return *real;
  return static_cast<double>(scalarInt(value));
}

int64_t scalarInt(const Attribute& value) {
  if (const auto* integer = std::get_if<int64_t>(&value)) return *integer;
  if (const auto* boolean = std::get_if<bool>(&value)) return *boolean ? 1 : 0;
  const auto* real = std::get_if<double>(&value);
  CARINA_CHECK(real, "attribute is not a number");
  return static_cast<int64_t>(*real);
}

}  // namespace carina::ir
