// SPDX-License-Identifier: Apache-2.0
#include "quantize/precision_units.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "aten/ops.hpp"
#include "quantize/insert.hpp"
#include "quantize/plan.hpp"

namespace carina::quantize {
namespace {

constexpr size_t kNone = std::numeric_limits<size_t>::max();

bool isReal(const ir::Value* value) {
  return value && value->dtype() == DType::Float32;
}

/// Finds the units: numbers every node, then joins and renumbers.
class Units {
 public:
  Units(const ir::Graph& graph, const Options& options, const Plan& plan) {
    Options wide = options;
    wide.precision = Precision::Int16x8;
    const Assignment raised = assign(graph, wide);
    for (const ir::Node* node : graph.nodes()) {
      const bool free = plan.assignment.of(*node).settings.precision == Precision::Int8 &&
                        raised.of(*node).settings.precision == Precision::Int16x8;
      if (free && roleOf(*node) != Role::Float) choose(*node);
    }
    chooseFirstMovers();
    joinFunctions();
  }

  /// At most `most` units, numbered in program order.
  void number(size_t most) {
    std::map<size_t, size_t> numbers;
    for (size_t name = 0; name < parents_.size(); ++name) numbers.try_emplace(root(name), numbers.size());
    const size_t together = (numbers.size() + most - 1) / std::max<size_t>(most, 1);
    for (auto& [name, number] : numbers) number /= std::max<size_t>(together, 1);
    count_ = numbers.empty() ? 0 : numbers.rbegin()->second + 1;
    for (auto& [node, unit] : of_) unit = numbers.at(root(unit));
  }

  size_t count() const { return count_; }
  size_t of(const ir::Node* node) const {
    const auto found = node ? of_.find(node) : of_.end();
    return found == of_.end() ? kNone : found->second;
  }
  /// The unit whose precision a value has: that of its producer, or of its first reader.
  size_t of(const ir::Value& value) const {
    if (value.producer()) return of(value.producer());
    for (const ir::Use& use : value.uses()) {
      if (const size_t unit = of(use.node); unit != kNone) return unit;
    }
    return kNone;
  }
  bool follows(const ir::Node& node) const { return moved(node) != nullptr; }

 private:
  static bool isNamed(const ir::Node& node) { return node.location() && !node.location()->name.empty(); }

  /// Averages and interpolations share the range of their operand, but produce values between its codes.
  static bool averages(const ir::Node& node) {
    return ir::isa<aten::AvgPool1d>(&node) || ir::isa<aten::AvgPool2d>(&node) ||
           ir::isa<aten::UpsampleBilinear2dVec>(&node);
  }

  /// The only float operand of an operator that moves or clamps it; null for others.
  static const ir::Value* moved(const ir::Node& node) {
    const Role role = roleOf(node);
    if ((role != Role::Shared && role != Role::Compare) || averages(node)) return nullptr;
    const ir::Value* only = nullptr;
    for (const ir::Value* operand : node.operands()) {
      if (!isReal(operand)) continue;
      if (only) return nullptr;
      only = operand;
    }
    return only;
  }

  void choose(const ir::Node& node) {
    if (const ir::Value* source = moved(node)) {
      const size_t unit = of(source->producer());
      if (unit != kNone)
        of_[&node] = unit;
      else
        waiting_.push_back(&node);
      return;
    }
    if (!isNamed(node)) return;
    const auto [name, isNew] = names_.try_emplace(node.location()->name, parents_.size());
    if (isNew) parents_.push_back(name->second);
    of_[&node] = name->second;
  }

  /// Operators that move program inputs, or values that stay in float, adopt the precision of their readers.
  void chooseFirstMovers() {
    for (auto node = waiting_.rbegin(); node != waiting_.rend(); ++node) {
      for (const ir::Value* result : (*node)->results()) {
        for (const ir::Use& use : result->uses()) {
          if (const size_t unit = of(use.node); unit != kNone) of_.try_emplace(*node, unit);
        }
      }
    }
  }

  /// In int8, functions of functions are one TABLE, and a scaling before a product is part of the product.
  void joinFunctions() {
    for (const auto& [node, unit] : of_) {
      if (node->results().size() != 1 || !node->result()->hasOneUse() || !isFunction(*node)) continue;
      const ir::Node& reader = *node->result()->uses()[0].node;
      const size_t other = of(&reader);
      if (other == kNone) continue;
      if (isFunction(reader) || (scalingOf(*node) && isProduct(reader)))
        parents_[std::max(root(unit), root(other))] = std::min(root(unit), root(other));
    }
  }

  size_t root(size_t name) const {
    while (parents_[name] != name) name = parents_[name];
    return name;
  }

  std::unordered_map<const ir::Node*, size_t> of_;
  std::map<std::string, size_t> names_;
  std::vector<size_t> parents_;  // of names
  std::vector<const ir::Node*> waiting_;
  size_t count_ = 0;
};

void describe(const ir::Graph& graph, const Units& units, SwitchedNetwork& result) {
  result.units.resize(units.count());
  std::map<std::pair<size_t, size_t>, int64_t> edges;
  for (const ir::Node* node : graph.nodes()) {
    const size_t unit = units.of(node);
    if (unit == kNone) continue;
    PrecisionUnit& entry = result.units[unit];
    if (node->location()) {
      if (entry.nodes.empty()) entry.modulePath = node->location()->modulePath;
      const bool follows = units.follows(*node);
      const Role role = roleOf(*node);
      entry.joins = entry.joins || (!follows && (role == Role::Shared || role == Role::Compare));
      auto& names = follows ? entry.followers : entry.nodes;
      const std::string& name = node->location()->name;
      if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    for (const ir::Value* operand : node->operands()) {
      const size_t from = isReal(operand) ? units.of(operand->producer()) : kNone;
      if (from != kNone && from != unit) edges[{from, unit}] += operand->numElements();
    }
  }
  for (PrecisionUnit& unit : result.units) {
    std::erase_if(unit.followers, [&](const std::string& name) {
      return std::find(unit.nodes.begin(), unit.nodes.end(), name) != unit.nodes.end();
    });
  }
  for (const auto& [ends, elements] : edges) result.edges.push_back({ends.first, ends.second, elements});
}

/// Inserts quantize and dequantize nodes around every form of a value (those that are made come first) and
/// before every reader of another unit.
class SwitchInserter {
 public:
  SwitchInserter(const Plan& plan, const Units& units, SwitchedNetwork& result)
      : plan_(plan), units_(units), result_(result) {
    for (size_t e = 0; e < result.edges.size(); ++e)
      edges_[{result.edges[e].from, result.edges[e].to}] = result.units.size() + e;
  }

  void run() {
    for (const bool made : {true, false}) {
      for (size_t g = 0; g < plan_.annotation.groups.size(); ++g) {
        for (const Form& form : plan_.annotation.groups[g].forms) {
          if (form.made != made) continue;
          if (made && !form.value->unused()) insertMade(form, plan_.params[g]);
          if (!made && !form.readers.empty()) insertRead(form, plan_.params[g]);
        }
      }
    }
  }

 private:
  using Readers = std::map<size_t, std::vector<ir::Use>>;  // by unit

  void insertMade(const Form& form, const QParams& params) {
    const auto [quantized, rounded] = insertPair(result_.graph, form.value, form.value->producer(), params);
    result_.graph.replaceAllUses(form.value, rounded);
    quantized->setOperand(0, form.value);
    producedAs_[form.value] = rounded;
    const size_t unit = units_.of(*form.value);
    add(rounded, form.value, unit);
    Readers others;
    for (const ir::Use& use : rounded->uses()) {
      const size_t reader = units_.of(use.node);
      if (reader != unit && edges_.count({unit, reader}) != 0) others[reader].push_back(use);
    }
    for (const auto& [reader, uses] : others) {
      ir::Value* again = insertPair(result_.graph, rounded, rounded->producer(), params).second;
      for (const ir::Use& use : uses) use.node->setOperand(use.operand, again);
      add(again, rounded, edges_.at({unit, reader}));
    }
  }

  /// Constants, inputs and results of float operators are rounded separately for each unit that reads them.
  void insertRead(const Form& form, const QParams& params) {
    const auto made = producedAs_.find(form.value);
    ir::Value* from = made == producedAs_.end() ? form.value : made->second;
    Readers readers;
    for (const ir::Use& use : form.readers) readers[units_.of(use.node)].push_back(use);
    for (const auto& [unit, uses] : readers) {
      ir::Value* rounded = insertPair(result_.graph, from, from->producer(), params).second;
      for (const ir::Use& use : uses) use.node->setOperand(use.operand, rounded);
      add(rounded, from, unit);
    }
  }

  void add(const ir::Value* rounded, const ir::Value* real, size_t site) {
    if (site != kNone) result_.switches.push_back({rounded->producer(), real, site});
  }

  const Plan& plan_;
  const Units& units_;
  SwitchedNetwork& result_;
  std::map<std::pair<size_t, size_t>, size_t> edges_;  // sites by producing and reading unit
  std::unordered_map<const ir::Value*, ir::Value*> producedAs_;
};

}  // namespace

Result<SwitchedNetwork> switchedNetwork(ir::Graph graph, const Options& options,
                                        std::span<const Sample> samples, size_t mostUnits) {
  CARINA_RETURN_IF_ERROR(prepareGraph(graph, options, samples, Precision::Int16x8));
  CARINA_TRY(const Plan plan, makePlan(graph, options, samples, {}));
  Units units(graph, options, plan);
  units.number(mostUnits);
  SwitchedNetwork result;
  describe(graph, units, result);
  result.graph = std::move(graph);
  SwitchInserter(plan, units, result).run();
  return result;
}

}  // namespace carina::quantize
