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

/// The index of the graph input that a value is, -1 for other values.
int64_t inputIndex(const ir::Graph& graph, const ir::Value* value) {
  value = behindReshapes(value);
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    if (graph.inputs()[i] == value) return static_cast<int64_t>(i);
  }
  return -1;
}

/// A loop counter: starts at `first` and is incremented by `step` in each iteration, while below `limit`.
struct Counter {
  size_t at = 0;  // index among the loop-carried values
  int64_t first = 0, step = 1, limit = 0;
};

/// A constant operand in a region: a constant of its own, or an operand that the loop does not change.
std::optional<int64_t> numberIn(const ir::Node& whileLoop, const ir::Graph& region, const ir::Value* value) {
  const int64_t input = inputIndex(region, value);
  if (input < 0) return numberOf(value);
  const auto at = static_cast<size_t>(input);
  const ir::Graph& body = whileLoop.region(1);
  if (body.outputs()[at] != body.inputs()[at]) return std::nullopt;
  return numberOf(whileLoop.operandGroup(0)[at]);
}

std::optional<Counter> counterOf(const ir::Node& whileLoop) {
  const ir::Graph &test = whileLoop.region(0), &body = whileLoop.region(1);
  const auto more = ir::producerAs<tosa::Greater>(behindReshapes(test.outputs()[0]));
  if (!more) return std::nullopt;
  const auto limit = numberIn(whileLoop, test, more.input1());
  const int64_t index = inputIndex(test, more.input2());
  if (!limit || index < 0) return std::nullopt;
  const auto at = static_cast<size_t>(index);
  const auto first = numberOf(whileLoop.operandGroup(0)[at]);
  const auto next = ir::producerAs<tosa::Add>(behindReshapes(body.outputs()[at]));
  if (!first || !next || body.inputs()[at]->numElements() != 1) return std::nullopt;
  const bool left = inputIndex(body, next.input1()) == index;
  if (!left && inputIndex(body, next.input2()) != index) return std::nullopt;
  const auto step = numberIn(whileLoop, body, left ? next.input2() : next.input1());
  // Beyond 32 bits the counter would wrap around.
  if (!step || *step <= 0 || *limit > INT32_MAX - *step) return std::nullopt;
  return Counter{at, *first, *step, *limit};
}

}  // namespace

int64_t tripCountOf(const ir::Node& whileLoop) {
  const auto counter = counterOf(whileLoop);
  if (!counter) return -1;
  return counter->limit > counter->first ? ceilDiv(counter->limit - counter->first, counter->step) : 0;
}

bool writesEveryRow(const ir::Node& whileLoop, size_t i) {
  const ir::Graph& body = whileLoop.region(1);
  const auto scatter = ir::producerAs<tosa::Scatter>(body.outputs()[i]);
  const auto counter = counterOf(whileLoop);
  if (!scatter || !counter || scatter->operand(0) != body.inputs()[i] || !body.inputs()[i]->hasOneUse() ||
      !whileLoop.region(0).inputs()[i]->unused())
    return false;
  const Shape& shape = body.inputs()[i]->shape();
  if (shape[0] != 1 || counter->first != 0 || counter->step != 1 || counter->limit != shape[1]) return false;
  // The rows in order, or from the last one to the first.
  const ir::Value* index = behindReshapes(scatter->operand(1));
  const auto at = static_cast<int64_t>(counter->at);
  if (inputIndex(body, index) == at) return true;
  const auto down = ir::producerAs<tosa::Sub>(index);
  return down && inputIndex(body, down.input2()) == at &&
         numberIn(whileLoop, body, down.input1()) == shape[1] - 1;
}

}  // namespace carina::compiler
