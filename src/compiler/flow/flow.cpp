// SPDX-License-Identifier: Apache-2.0
// From graphs with regions to blocks and jumps (flow.hpp). Inputs of regions are other names for values of
// the surrounding graph; their outputs, and loop-carried values, have one place for all paths.
#include "compiler/flow/flow.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ir/op_view.hpp"
#include "ir/regions.hpp"
#include "tosa/tosa.hpp"

namespace carina::compiler {
namespace {

bool isControlFlow(const ir::Node& node) {
  return !node.regions().empty();
}

class FlowBuilder {
 public:
  Flow run(const ir::Graph& tosa) {
    const std::vector<const ir::Graph*> graphs = ir::graphsWithin(tosa);
    for (size_t i = 0; i < graphs.size(); ++i) graphs_[graphs[i]] = i;
    for (const ir::Value* input : tosa.inputs()) {
      places_[input] = newPlace(*input);
      flow_.inputs.push_back(places_[input]);
    }
    std::vector<int32_t> outputs;
    for (const ir::Value* output : tosa.outputs()) outputs.push_back(newPlace(*output));
    addGraph(tosa, outputs, flow_.steps);
    for (const int32_t place : outputs) touch(place);
    flow_.outputs = std::move(outputs);
    for (const int32_t place : flow_.inputs) touchAt(place, 0);
    assignAddresses();
    return std::move(flow_);
  }

 private:
  /// The value that this one is another name for.
  const ir::Value* resolve(const ir::Value* value) const {
    for (auto found = names_.find(value); found != names_.end(); found = names_.find(value))
      value = found->second;
    return value;
  }

  int32_t newPlace(const ir::Value& value) {
    Place place;
    place.name = value.name;
    place.live.bytes = value.numBytes();
    place.live.first = INT32_MAX;
    place.live.last = -1;
    flow_.places.push_back(std::move(place));
    return static_cast<int32_t>(flow_.places.size()) - 1;
  }

  void touchAt(int32_t place, int32_t time) {
    LiveRange& live = flow_.places[static_cast<size_t>(place)].live;
    live.first = std::min(live.first, time);
    live.last = std::max(live.last, time);
  }
  void touch(int32_t place) { touchAt(place, clock_); }
  void touch(const ir::Value* value) {
    value = resolve(value);
    if (!value->isConstant()) touch(places_.at(value));
  }

  /// Adds the steps of a graph, which leave its results in `outputs`.
  void addGraph(const ir::Graph& graph, const std::vector<int32_t>& outputs, FlowSteps& steps) {
    // A result of a node is written directly to its destination; anything else is copied there.
    std::vector<bool> copied(outputs.size(), true);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const ir::Value* value = sameElements(graph.outputs()[i]);
      if (outputs[i] < 0 || !value->producer() || names_.contains(value) || places_.contains(value)) continue;
      places_[value] = outputs[i];
      copied[i] = false;
    }
    std::vector<const ir::Node*> straight;
    for (const ir::Node* node : graph.nodes()) {
      if (isOtherName(*node, straight)) continue;
      if (!isControlFlow(*node)) {
        straight.push_back(node);
        continue;
      }
      addBlock(straight, steps);
      node->is(tosa::CondIf::def()) ? addChoice(*node, steps) : addLoop(*node, steps);
    }
    addBlock(straight, steps);
    CopyPlaces rest;
    for (size_t i = 0; i < outputs.size(); ++i) {
      // A result of control flow may have turned out to be another name for a value.
      const ir::Value* value = resolve(graph.outputs()[i]);
      if (outputs[i] < 0 || (!copied[i] && value == sameElements(graph.outputs()[i]))) continue;
      rest.copies.push_back(copyOf(value, outputs[i]));
    }
    addCopies(std::move(rest), steps);
  }

  /// The result of control flow behind reshapes that nothing else reads; other values are returned unchanged.
  static const ir::Value* sameElements(const ir::Value* value) {
    const ir::Value* root = value;
    while (const auto reshape = ir::producerAs<tosa::Reshape>(root)) {
      root = reshape.input1();
      if (root->uses().size() != 1 || root->isGraphOutput()) return value;
    }
    return root->producer() && isControlFlow(*root->producer()) ? root : value;
  }

  /// Whether the node is a reshape of a value in a place: then its result is recorded as another name for it.
  bool isOtherName(const ir::Node& node, const std::vector<const ir::Node*>& straight) {
    const auto reshape = ir::dynCast<tosa::Reshape>(&node);
    if (!reshape || places_.contains(reshape.output())) return false;
    const ir::Value* value = resolve(reshape.input1());
    const auto place = places_.find(value);
    const bool isComputed = place != places_.end() && (straight.empty() || value->producer() == nullptr ||
                                                       isControlFlow(*value->producer()));
    if (value->isConstant() || !isComputed) return false;
    names_[reshape.output()] = value;
    return true;
  }

  CopyPlaces::Copy copyOf(const ir::Value* value, int32_t to) {
    value = resolve(value);
    if (value->isConstant()) return {to, -1, value};
    return {to, places_.at(value), nullptr};
  }

  void addCopies(CopyPlaces copies, FlowSteps& steps) {
    if (copies.copies.empty()) return;
    ++clock_;
    for (const CopyPlaces::Copy& copy : copies.copies) {
      touch(copy.to);
      if (copy.from >= 0) touch(copy.from);
    }
    steps.push_back({std::move(copies)});
  }

  /// Adds nodes in order, without control flow, as a block; empties the list.
  void addBlock(std::vector<const ir::Node*>& nodes, FlowSteps& steps) {
    if (nodes.empty()) return;
    ++clock_;
    const ir::Graph& from = nodes.front()->graph();
    Block block{ir::Graph(from.name), {}, {}, graphs_.at(&from)};
    const std::unordered_set<const ir::Node*> inside(nodes.begin(), nodes.end());
    std::unordered_map<const ir::Value*, ir::Value*> mapping;
    for (const ir::Node* node : nodes) {
      for (const ir::Value* operand : node->operands()) bring(operand, block, mapping);
      const auto copy = ir::cloneNode(*node, block.tosa, mapping);
      CARINA_CHECK(copy.ok(), "a node of a verified graph can be copied");
    }
    std::vector<ir::Value*> outputs;
    for (const ir::Node* node : nodes) {
      for (const ir::Value* result : node->results()) {
        const bool leaves = result->isGraphOutput() ||
                            std::any_of(result->uses().begin(), result->uses().end(),
                                        [&](const ir::Use& use) { return !inside.contains(use.node); });
        if (!leaves) continue;
        outputs.push_back(mapping.at(result));
        const auto [place, isNew] = places_.try_emplace(result, -1);
        if (isNew) place->second = newPlace(*result);
        block.outputs.push_back(place->second);
        touch(place->second);
      }
    }
    nodes.clear();
    if (outputs.empty()) return;  // nothing reads what it computes
    block.tosa.setOutputs(std::move(outputs));
    flow_.blocks.push_back(std::move(block));
    steps.push_back({RunBlock{static_cast<int32_t>(flow_.blocks.size()) - 1}});
  }

  void bring(const ir::Value* operand, Block& block,
             std::unordered_map<const ir::Value*, ir::Value*>& mapping) {
    if (!operand || mapping.contains(operand)) return;
    const ir::Value* value = resolve(operand);
    const auto known = mapping.find(value);
    if (known != mapping.end() && known->second->type == operand->type) {
      mapping[operand] = known->second;
      return;
    }
    ir::Value* copy = nullptr;
    if (value->isConstant()) {
      copy = block.tosa.addConstant(value->constant(), value->name);
    } else {
      copy = block.tosa.addInput(operand->type, operand->name);
      block.inputs.push_back(places_.at(value));
      touch(places_.at(value));
    }
    copy->quantization = operand->quantization;
    mapping.emplace(value, copy);
    mapping[operand] = copy;
  }

  /// A block that reads a predicate and writes it to a place of its own, with one operation on one element.
  int32_t flagBlock(int32_t predicate, const ir::Value& value) {
    touch(predicate);
    Block block{ir::Graph("flag"), {predicate}, {newPlace(value)}};
    touch(block.outputs[0]);
    ir::Value* input = block.tosa.addInput(value.type, value.name);
    const ir::Builder builder(block.tosa, nullptr, value.producer() ? value.producer()->location() : nullptr);
    block.tosa.setOutputs({tosa::LogicalOr::create(builder, input, input)});
    flow_.blocks.push_back(std::move(block));
    return static_cast<int32_t>(flow_.blocks.size()) - 1;
  }

  static std::string nameOf(const ir::Node& node) {
    if (node.location() && !node.location()->name.empty()) return node.location()->name;
    return node.results().empty() ? std::string(node.opName()) : node.result()->name;
  }

  void addChoice(const ir::Node& node, FlowSteps& steps) {
    const ir::Value* predicate = resolve(node.operand(0));
    const auto operands = node.operandGroup(1);
    if (predicate->isConstant()) {  // the other side never runs
      const ir::Graph& taken = node.region(predicate->constant().integerAt(0) != 0 ? 0 : 1);
      takeOperands(taken, operands);
      addGraph(taken, resultPlaces(node), steps);
      return;
    }
    ++clock_;
    Choose choice;
    choice.name = nameOf(node);
    choice.predicate = places_.at(predicate);
    choice.flagBlock = flagBlock(choice.predicate, *predicate);
    for (const auto& region : node.regions()) takeOperands(*region, operands);
    const std::vector<int32_t> results = resultPlaces(node);
    // In stream order: the false side comes first.
    addGraph(node.region(1), results, choice.whenFalse);
    addGraph(node.region(0), results, choice.whenTrue);
    ++clock_;
    for (const int32_t place : results) touch(place);
    steps.push_back({std::move(choice)});
  }

  void takeOperands(const ir::Graph& region, std::span<ir::Value* const> operands) {
    for (size_t i = 0; i < operands.size(); ++i) names_[region.inputs()[i]] = operands[i];
  }

  /// The places for the results of a node, which are created if necessary.
  std::vector<int32_t> resultPlaces(const ir::Node& node) {
    std::vector<int32_t> places;
    for (const ir::Value* result : node.results()) {
      const auto [place, isNew] = places_.try_emplace(result, -1);
      if (isNew) place->second = newPlace(*result);
      places.push_back(place->second);
    }
    return places;
  }

  void addLoop(const ir::Node& node, FlowSteps& steps) {
    const ir::Graph &test = node.region(0), &body = node.region(1);
    const auto operands = node.operandGroup(0);
    CopyPlaces first, next;
    std::vector<int32_t> news(operands.size(), -1);  // of the body's results; -1: unchanged
    for (size_t i = 0; i < operands.size(); ++i) {
      if (body.outputs()[i] == body.inputs()[i]) {
        names_[test.inputs()[i]] = names_[body.inputs()[i]] = names_[node.result(i)] = operands[i];
        continue;
      }
      names_[test.inputs()[i]] = names_[body.inputs()[i]] = node.result(i);
      const int32_t state = statePlace(*node.result(i), *operands[i]);
      if (!isHandedOn(*operands[i], state) && !writesEveryRow(node, i))
        first.copies.push_back(copyOf(operands[i], state));
      if (isWrittenInPlace(body, i)) {
        news[i] = state;
      } else {
        news[i] = newPlace(*node.result(i));
        next.copies.push_back({state, news[i], nullptr});
      }
    }
    addCopies(std::move(first), steps);
    ++clock_;
    Repeat loop;
    loop.name = nameOf(node);
    loop.turns = tripCountOf(node);
    const auto touchStates = [&] {
      for (const ir::Value* result : node.results()) touch(result);
    };
    touchStates();
    addGraph(body, news, loop.body);
    addCopies(std::move(next), loop.body);
    ++clock_;
    const ir::Value* more = test.outputs()[0];
    loop.predicate = newPlace(*more);
    addGraph(test, {loop.predicate}, loop.test);
    loop.flagBlock = flagBlock(loop.predicate, *more);
    ++clock_;
    touchStates();
    steps.push_back({std::move(loop)});
  }

  /// The place where a loop keeps a value: that of the initial value if nothing else reads it.
  int32_t statePlace(const ir::Value& result, const ir::Value& operand) {
    const auto wanted = places_.find(&result);
    if (wanted != places_.end()) return wanted->second;
    const ir::Value* from = resolve(&operand);
    if (from == &operand && from->producer() && operand.hasOneUse()) {
      places_[&result] = places_.at(from);
    } else {
      places_[&result] = newPlace(result);
    }
    return places_[&result];
  }

  bool isHandedOn(const ir::Value& operand, int32_t state) const {
    const ir::Value* from = resolve(&operand);
    return !from->isConstant() && places_.at(from) == state;
  }

  /// Whether the body only writes some rows of a value that it carries, and reads it nowhere else.
  static bool isWrittenInPlace(const ir::Graph& body, size_t i) {
    const auto scatter = ir::producerAs<tosa::Scatter>(body.outputs()[i]);
    const ir::Value* before = body.inputs()[i];
    return before->hasOneUse() && scatter && scatter->operand(0) == before &&
           body.outputs()[i]->uses().empty() &&
           std::count(body.outputs().begin(), body.outputs().end(), body.outputs()[i]) == 1;
  }

  void assignAddresses() {
    std::vector<LiveRange> ranges;
    for (Place& place : flow_.places) {
      if (place.live.last < 0) place.live = {};
      ranges.push_back(place.live);
    }
    const Packing packing = pack(ranges);
    for (size_t i = 0; i < ranges.size(); ++i) flow_.places[i].address = packing.addresses[i];
    flow_.bytes = roundUp(packing.bytes, 16);
  }

  Flow flow_;
  int32_t clock_ = 0;
  std::unordered_map<const ir::Value*, int32_t> places_;
  std::unordered_map<const ir::Value*, const ir::Value*> names_;
  std::unordered_map<const ir::Graph*, size_t> graphs_;  // index of each graph among all
};

}  // namespace

bool hasControlFlow(const ir::Graph& tosa) {
  for (const ir::Node* node : tosa.nodes()) {
    if (isControlFlow(*node)) return true;
  }
  return false;
}

Flow flowOf(const ir::Graph& tosa) {
  return FlowBuilder().run(tosa);
}

}  // namespace carina::compiler
