// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "base/shape.hpp"
#include "compiler/flow/flow.hpp"
#include "tosa/tosa.hpp"

namespace carina::compiler {
namespace {

std::optional<int64_t> numberOf(const ir::Value* value) {
  while (const auto reshape = ir::producerAs<tosa::Reshape>(value)) value = reshape.input1();
  if (!value->isConstant() || value->numElements() != 1) return std::nullopt;
  return value->constant().integerAt(0);
}

const ir::Value* behindReshapes(const ir::Value* value) {
  while (const auto reshape = ir::producerAs<tosa::Reshape>(value)) value = reshape.input1();
  return value;
}

/// The index of the input that a value is, -1 for others.
int64_t inputIndex(const ir::Graph& graph, const ir::Value* value) {
  value = behindReshapes(value);
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    if (graph.inputs()[i] == value) return static_cast<int64_t>(i);
  }
  return -1;
}

}  // namespace

int64_t turnsOf(const ir::Node& whileLoop) {
  const ir::Graph &test = whileLoop.region(0), &body = whileLoop.region(1);
  const auto more = ir::producerAs<tosa::Greater>(behindReshapes(test.outputs()[0]));
  if (!more) return -1;
  const auto limit = numberOf(more.input1());
  const int64_t counter = inputIndex(test, more.input2());
  if (!limit || counter < 0) return -1;
  const auto at = static_cast<size_t>(counter);
  const auto first = numberOf(whileLoop.operandGroup(0)[at]);
  const auto next = ir::producerAs<tosa::Add>(behindReshapes(body.outputs()[at]));
  if (!first || !next || body.inputs()[at]->numElements() != 1) return -1;
  const bool left = inputIndex(body, next.input1()) == counter;
  if (!left && inputIndex(body, next.input2()) != counter) return -1;
  const auto step = numberOf(left ? next.input2() : next.input1());
  // Beyond 32 bits the counter would wrap around.
  if (!step || *step <= 0 || *limit > INT32_MAX - *step) return -1;
  return *limit > *first ? ceilDiv(*limit - *first, *step) : 0;
}

}  // namespace carina::compiler
