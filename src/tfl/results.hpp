// SPDX-License-Identifier: Apache-2.0
// The last step of a check: compares the results in the file with what follows from the operands.
#pragma once

#include "ir/graph.hpp"

namespace carina::tfl::check {

inline Status resultShape(const ir::Node& node, const Shape& shape, size_t i = 0) {
  if (i >= node.results().size()) return fail(Code::InvalidOperator, "result {} is missing", i);
  const ir::Value* result = node.result(i);
  if (result->shape() == shape) return {};
  return fail(Code::InvalidOperator, "result '{}' has shape {} in the file, but its operands imply {}",
              result->name, shapeText(result->shape()), shapeText(shape));
}

inline Status resultCount(const ir::Node& node, size_t count) {
  if (node.results().size() == count) return {};
  return fail(Code::InvalidOperator, "the operator has {} results, but its operands imply {}",
              node.results().size(), count);
}

inline Status rankIs(const ir::Value* value, int64_t rank, std::string_view what) {
  if (value->rank() == rank) return {};
  return fail(Code::InvalidOperator, "{} has shape {}, expected {} dimensions", what,
              shapeText(value->shape()), rank);
}

}  // namespace carina::tfl::check
