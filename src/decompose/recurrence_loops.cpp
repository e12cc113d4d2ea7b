// SPDX-License-Identifier: Apache-2.0
#include "decompose/recurrence_loops.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "aten/control_flow.hpp"
#include "aten/ops.hpp"
#include "decompose/rewrites.hpp"

namespace carina::decompose {
namespace {

// Enough that the calls and copies of an iteration cost little compared to its steps, and few enough that
// their commands are small.
constexpr int64_t kMinSteps = 16, kUsualSteps = 25, kMostSteps = 48;

/// Attributes of all recurrent layers, in the order of their tables.
enum Attribute : size_t { kHasBiases, kNumLayers, kDropout, kTrain, kBidirectional, kBatchFirst };

bool isRecurrent(const ir::Node& node) {
  return ir::isa<aten::LstmInput>(&node) || ir::isa<aten::GruInput>(&node) ||
         ir::isa<aten::RnnTanhInput>(&node) || ir::isa<aten::RnnReluInput>(&node);
}

/// Whether the value is a constant, possibly quantized and dequantized. `mostNodes` limits the recursion;
/// longer chains do not occur.
bool isWeight(const ir::Value* value, int mostNodes = 2) {
  if (!value || value->isConstant()) return true;
  const ir::Node* node = value->producer();
  if (!node || mostNodes == 0) return false;
  const bool converts = ir::isa<aten::QuantizePerTensor>(node) || ir::isa<aten::QuantizePerChannel>(node) ||
                        ir::isa<aten::DequantizePerTensor>(node) || ir::isa<aten::DequantizePerChannel>(node);
  return converts && std::all_of(node->operands().begin(), node->operands().end(),
                                 [&](const ir::Value* operand) { return isWeight(operand, mostNodes - 1); });
}

/// Copies the weight, with the nodes that compute it, into another graph.
ir::Value* broughtInto(ir::Graph& graph, const ir::Value* weight) {
  if (!weight) return nullptr;
  if (weight->isConstant()) return graph.addConstant(weight->constant(), weight->name);
  const ir::Node& node = *weight->producer();
  std::unordered_map<const ir::Value*, ir::Value*> mapping;
  for (const ir::Value* operand : node.operands()) mapping[operand] = broughtInto(graph, operand);
  const auto copy = ir::cloneNode(node, graph, mapping);
  CARINA_CHECK(copy.ok(), "a node that was valid is so in another graph");
  return (*copy)->result();
}

/// Whether the operator can be split between steps, and its weights moved into a loop.
bool canLoop(const ir::Node& node) {
  if (!isRecurrent(node) || isQuantizedAsUnit(node) || node.operand(0)->rank() != 3) return false;
  const auto weights = node.operandGroup(2);
  return std::all_of(weights.begin(), weights.end(),
                     [](const ir::Value* weight) { return isWeight(weight); }) &&
         !(node.attributeAs<bool>(kTrain) && node.attributeAs<double>(kDropout) > 0 &&
           node.attributeAs<int64_t>(kNumLayers) > 1);
}

ir::Value* cut(ir::Builder& b, ir::Value* x, int64_t dim, int64_t first, int64_t end) {
  return first == 0 && end == x->dim(dim) ? x : aten::SliceTensor::create(b, x, dim, first, end);
}

ir::Value* joined(ir::Builder& b, std::vector<ir::Value*> parts, int64_t dim) {
  return parts.size() == 1 ? parts[0] : aten::Cat::create(b, std::move(parts), dim);
}

/// The steps in the opposite order.
ir::Value* reversed(ir::Builder& b, ir::Value* x, int64_t dim) {
  std::vector<ir::Value*> steps;
  for (int64_t t = x->dim(dim); t-- > 0;) steps.push_back(cut(b, x, dim, t, t + 1));
  return joined(b, std::move(steps), dim);
}

/// The dimension of the steps.
int64_t stepsOf(const ir::Node& node) {
  return node.attributeAs<bool>(kBatchFirst) ? 1 : 0;
}

/// Consecutive layers of an operator that run in one direction.
struct Stack {
  const ir::Node* node = nullptr;  // the operator they belong to
  std::vector<ir::Value*> weights;
  int64_t layers = 1;
  bool reverse = false, unroll = false;
  bool outputs = true;  // whether the outputs of the steps are read

  int64_t dim() const { return stepsOf(*node); }

  /// Applies the same operator to other steps x and returns its results.
  std::vector<ir::Value*> apply(ir::Builder& b, ir::Value* x, std::vector<ir::Value*> state,
                                std::vector<ir::Value*> params) const {
    ir::NodeSpec spec;
    spec.def = &node->def();
    spec.operands = {{x}, std::move(state), std::move(params)};
    for (size_t i = 0; i <= kBatchFirst; ++i) spec.attributes.push_back(node->attribute(i));
    spec.attributes[kNumLayers] = layers;
    spec.attributes[kBidirectional] = false;
    spec.location = node->location();
    return b.create(std::move(spec))->results();
  }
};

/// Results of a stack: output (null if not read), then the final state.
using Results = std::vector<ir::Value*>;

/// The stack over a chunk of the steps, as the body of a loop: it carries the state.
ir::Graph bodyOf(const Stack& stack, const ir::Type& chunk, std::span<ir::Value* const> state) {
  ir::Graph body("steps");
  std::vector<ir::Value*> before, params;
  for (const ir::Value* value : state) before.push_back(body.addInput(value->type));
  ir::Value* x = body.addInput(chunk);
  for (const ir::Value* weight : stack.weights) params.push_back(broughtInto(body, weight));
  ir::Builder b(body, nullptr, stack.node->location());
  const Results made = stack.apply(b, stack.reverse ? reversed(b, x, stack.dim()) : x, before, params);
  std::vector<ir::Value*> outputs(made.begin() + 1, made.end());
  if (stack.outputs) outputs.push_back(stack.reverse ? reversed(b, made[0], stack.dim()) : made[0]);
  body.setOutputs(std::move(outputs));
  return body;
}

/// Runs x through a loop with `steps` steps per iteration.
Results loop(ir::Builder& b, const Stack& stack, ir::Value* x, const std::vector<ir::Value*>& state,
             int64_t steps) {
  const auto dim = static_cast<size_t>(stack.dim());
  ir::Type chunk = x->type;
  chunk.shape[dim] = steps;
  ir::Graph body = bodyOf(stack, chunk, state);
  ir::NodeSpec spec;
  spec.def = &aten::scanDef();
  spec.operands = {state, {x}, {}};
  spec.attributes = {stack.dim(), steps, stack.reverse, stack.unroll};
  for (const ir::Value* value : state) spec.types.push_back(value->type);
  if (stack.outputs) {
    spec.types.push_back(body.outputs().back()->type);
    spec.types.back().shape[dim] = x->shape()[dim];
  }
  spec.location = stack.node->location();
  ir::Node* scan = b.create(std::move(spec));
  scan->setRegion(0, std::move(body));
  Results results{stack.outputs ? scan->result(state.size()) : nullptr};
  for (size_t i = 0; i < state.size(); ++i) results.push_back(scan->result(i));
  return results;
}

/// The stack over all steps of x: a loop, and the remaining steps.
Results run(ir::Builder& b, const Stack& stack, ir::Value* x, const std::vector<ir::Value*>& state) {
  const int64_t dim = stack.dim(), steps = x->dim(dim), each = stepsPerIteration(steps), rest = steps % each;
  const int64_t first = stack.reverse ? rest : 0;
  Results results = loop(b, stack, cut(b, x, dim, first, first + steps - rest), state, each);
  if (rest == 0) return results;
  const std::vector<ir::Value*> between(results.begin() + 1, results.end());
  Results last;
  if (stack.reverse) {
    last = stack.apply(b, reversed(b, cut(b, x, dim, 0, rest), dim), between, stack.weights);
    last[0] = joined(b, {reversed(b, last[0], dim), results[0]}, dim);
  } else {
    last = stack.apply(b, cut(b, x, dim, steps - rest, steps), between, stack.weights);
    if (stack.outputs) last[0] = joined(b, {results[0], last[0]}, dim);
  }
  return last;
}

/// The output of the last step is part of the final state: users that only read it do not need the other
/// steps.
void readLastState(ir::Node* node) {
  if (node->attributeAs<bool>(kBidirectional)) return;
  const ir::Value* output = node->result(0);
  const int64_t dim = stepsOf(*node), last = output->dim(dim) - 1;
  const std::vector<ir::Use> uses = output->uses();
  for (const ir::Use& use : uses) {
    const auto select = ir::dynCast<aten::SelectInt>(use.node);
    if (!select || (select.dim() != dim && select.dim() != dim - output->rank()) ||
        (select.index() != last && select.index() != -1))
      continue;
    ir::Builder b = ir::Builder::beforeNode(use.node);
    const int64_t top = node->attributeAs<int64_t>(kNumLayers) - 1;
    ir::Value* state = aten::SelectInt::create(b, node->result(1), int64_t{0}, top);
    node->graph().replaceAllUses(select.output(), state);
    node->graph().erase(use.node);
  }
}

void replaceByLoops(ir::Node* node, bool unroll) {
  readLastState(node);
  ir::Builder b = ir::Builder::beforeNode(node);
  const int64_t layers = node->attributeAs<int64_t>(kNumLayers);
  const bool bothWays = node->attributeAs<bool>(kBidirectional);
  const auto weights = node->operandGroup(2), states = node->operandGroup(1);
  // Unidirectional layers are one loop: a chunk passes through all of them.
  const int64_t stacks = bothWays ? layers : 1, directions = bothWays ? 2 : 1;
  const int64_t layersEach = bothWays ? 1 : layers;
  const size_t weightsEach = weights.size() / static_cast<size_t>(stacks * directions);
  ir::Value* x = node->operand(0);
  std::vector<std::vector<ir::Value*>> last(states.size());
  for (int64_t s = 0; s < stacks; ++s) {
    std::vector<ir::Value*> outputs;
    for (int64_t direction = 0; direction < directions; ++direction) {
      const int64_t cell = s * directions + direction;
      const auto own = weights.subspan(static_cast<size_t>(cell) * weightsEach, weightsEach);
      const Stack stack{node,       {own.begin(), own.end()},
                        layersEach, direction == 1,
                        unroll,     bothWays || !node->result(0)->unused()};
      std::vector<ir::Value*> state;
      for (ir::Value* all : states)
        state.push_back(cut(b, all, 0, cell * layersEach, (cell + 1) * layersEach));
      const Results results = run(b, stack, x, state);
      outputs.push_back(results[0]);
      for (size_t i = 0; i < last.size(); ++i) last[i].push_back(results[i + 1]);
    }
    x = outputs[0] ? joined(b, std::move(outputs), -1) : nullptr;
  }
  std::vector<ir::Value*> results{x};
  for (std::vector<ir::Value*>& each : last) results.push_back(joined(b, std::move(each), 0));
  ir::Graph& graph = node->graph();
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i]) graph.replaceAllUses(node->result(i), results[i]);
  }
  graph.erase(node);
}

}  // namespace

int64_t stepsPerIteration(int64_t steps) {
  if (steps < 2 * kMinSteps) {
    // Few steps: the largest divisor that gives at least two iterations.
    for (int64_t each = steps / 2; each > 1; --each) {
      if (steps % each == 0) return each;
    }
    return 1;
  }
  const auto isBetter = [&](int64_t a, int64_t b) {
    if (steps % a != steps % b) return steps % a < steps % b;
    return std::abs(a - kUsualSteps) < std::abs(b - kUsualSteps);
  };
  int64_t best = kMinSteps;
  for (int64_t each = kMinSteps; each <= std::min(kMostSteps, steps / 2); ++each) {
    if (isBetter(each, best)) best = each;
  }
  return best;
}

Status loopRecurrences(ir::Graph& graph, const LoopOptions& options) {
  std::vector<std::pair<ir::Node*, bool>> found;  // collected first: loop bodies contain the same operator
  CARINA_RETURN_IF_ERROR(aten::forEachGraph(graph, [&](ir::Graph& inner) -> Status {
    for (ir::Node* node : inner.nodes()) {
      if (!canLoop(*node)) continue;
      const int64_t steps = node->operand(0)->dim(stepsOf(*node));
      const bool unroll = steps <= options.mostUnrolled;
      if (steps > 1 && (!unroll || (options.unrollLater && steps >= kLongRecurrence)))
        found.emplace_back(node, unroll);
    }
    return {};
  }));
  for (const auto& [node, unroll] : found) replaceByLoops(node, unroll);
  return {};
}

}  // namespace carina::decompose
