// SPDX-License-Identifier: Apache-2.0
#include "quantize/assign.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "aten/op_pattern.hpp"
#include "quantize/annotate.hpp"
#include "quantize/loops.hpp"

namespace carina::quantize {
namespace {

std::string nameOf(const ir::Node& node) {
  return node.location() && !node.location()->name.empty() ? node.location()->name
                                                           : std::string(node.opName());
}

/// The settings that two rules set to different values; "" if they agree.
std::string disagreement(const Overrides& a, const Overrides& b) {
  std::string text;
  const auto add = [&](bool differs, const char* name) {
    if (differs) text += (text.empty() ? "" : ", ") + std::string(name);
  };
  add(a.precision && b.precision && *a.precision != *b.precision, "precision");
  add(a.perChannelWeights && b.perChannelWeights && *a.perChannelWeights != *b.perChannelWeights, "weights");
  add(a.weightBits && b.weightBits && *a.weightBits != *b.weightBits, "weight_bits");
  add(a.observer && b.observer && *a.observer != *b.observer, "observer");
  add(a.scheme && b.scheme && *a.scheme != *b.scheme, "activations");
  return text;
}

/// Whether the node adopts the precision of its data: it has no arithmetic for which precision matters.
bool followsItsInput(const ir::Node& node) {
  const Role role = roleOf(node);
  return role == Role::Shared || role == Role::Compare;
}

/// Comparisons of floats, and conversions of floats to integers.
bool findsSteps(const ir::Node& node) {
  return isTruncation(node) || (roleOf(node) == Role::Compare && node.operands().size() == 2 &&
                                node.operands()[0] && node.operands()[0]->dtype() == DType::Float32);
}

class Assigner {
 public:
  Assigner(const ir::Graph& graph, const Options& options)
      : nodes_(nodesWithLoops(graph)), options_(options) {}

  Assignment run() {
    for (const ir::Node* node : nodes_) applyRules(*node);
    keepWholeSourcesFloat();
    followInputs();
    followReaders();
    widenInputsOfSteps();
    reportRules();
    return std::move(result_);
  }

 private:
  void applyRules(const ir::Node& node) {
    NodeSettings& entry = result_.nodes[&node];
    entry.settings = options_;
    std::vector<size_t> matched;
    for (size_t r = 0; r < options_.rules.size(); ++r) {
      if (!matches(options_.rules[r], node)) continue;
      options_.rules[r].overrides.apply(entry.settings);
      entry.named = true;
      matchCount_[r]++;
      if (asWeighted(node)) haveWeights_.insert(r);
      for (size_t earlier : matched) noteConflict(earlier, r, node);
      matched.push_back(r);
    }
  }

  bool matches(const Rule& rule, const ir::Node& node) const {
    const ir::Location* location = node.location().get();
    switch (rule.by) {
      case Rule::By::Operator: {
        if (aten::matchesOperator(rule.pattern, node.opName())) return true;
        const auto source = options_.sourceOps.find(node.location());
        return location && source != options_.sourceOps.end() &&
               aten::matchesOperator(rule.pattern, source->second);
      }
      case Rule::By::Node:
        return location && aten::matchesGlob(rule.pattern, location->name);
      case Rule::By::Module:
        return location && aten::matchesModule(rule.pattern, location->modulePath);
      case Rule::By::ModuleType:
        return location && liesInClass(rule.pattern, location->modulePath);
    }
    CARINA_UNREACHABLE("rule kind");
  }

  /// Whether the module at `path`, or one that contains it, is of a class that matches.
  bool liesInClass(const std::string& pattern, const std::string& path) const {
    for (const auto& [module, type] : options_.moduleClasses) {
      const bool inside =
          module.empty() || path == module ||
          (path.size() > module.size() && path.starts_with(module) && path[module.size()] == '.');
      if (inside && aten::matchesClass(pattern, type)) return true;
    }
    return false;
  }

  void noteConflict(size_t earlier, size_t later, const ir::Node& node) {
    const std::string what = disagreement(options_.rules[earlier].overrides, options_.rules[later].overrides);
    if (what.empty()) return;
    Conflict& conflict = conflicts_[{earlier, later}];
    conflict.settings = what;
    conflict.nodes.insert(nameOf(node));
  }

  void keepWholeSourcesFloat() {
    std::set<const ir::Location*> kept;
    for (const ir::Node* node : nodes_) {
      if (result_.nodes[node].settings.precision == Precision::Float && roleOf(*node) != Role::Float &&
          node->location()) {
        kept.insert(node->location().get());
      }
    }
    std::set<std::string> names;
    for (const ir::Node* node : nodes_) {
      if (kept.count(node->location().get()) == 0) continue;
      NodeSettings& entry = result_.nodes[node];
      entry.settings.precision = Precision::Float;
      entry.named = true;
      if (names.insert(node->location()->name).second) result_.keptFloat.push_back(node->location()->name);
    }
  }

  const NodeSettings* settingsOfFirstInput(const ir::Node& node) const {
    for (const ir::Value* operand : node.operands()) {
      if (operand && operand->dtype() == DType::Float32 && operand->producer()) {
        return &result_.nodes.at(operand->producer());
      }
    }
    return nullptr;
  }

  void take(const ir::Node& node, const NodeSettings& from) {
    if (from.settings.precision == Precision::Float) return;
    NodeSettings& entry = result_.nodes[&node];
    entry.settings.precision = from.settings.precision;
    settled_.insert(&node);
  }

  void followInputs() {
    for (const ir::Node* node : nodes_) {
      if (result_.nodes[node].named || !followsItsInput(*node)) {
        settled_.insert(node);
        continue;
      }
      const NodeSettings* from = settingsOfFirstInput(*node);
      if (from && settled_.count(firstInputProducer(*node)) != 0) take(*node, *from);
    }
  }

  static const ir::Node* firstInputProducer(const ir::Node& node) {
    for (const ir::Value* operand : node.operands()) {
      if (operand && operand->dtype() == DType::Float32 && operand->producer()) return operand->producer();
    }
    return nullptr;
  }

  /// Chains that begin at a program input, starting from their end.
  void followReaders() {
    for (size_t i = nodes_.size(); i-- > 0;) {
      const ir::Node* node = nodes_[i];
      if (settled_.count(node) != 0) continue;
      for (const ir::Value* result : node->results()) {
        if (result->uses().empty() || settled_.count(node) != 0) continue;
        take(*node, result_.nodes.at(result->uses().front().node));
      }
    }
  }

  /// A comparison cannot distinguish values with the same code. Float program inputs that are only compared
  /// get 16-bit codes.
  void widenInputsOfSteps() {
    if ((options_.inputs && options_.inputs->precision) || !options_.inputPrecisions.empty()) return;
    const auto compares = [&](const ir::Node& node) {
      const NodeSettings& entry = result_.nodes.at(&node);
      return findsSteps(node) && !entry.named && entry.settings.precision == Precision::Int8;
    };
    const auto isOnlyCompared = [&](const ir::Value* value) {
      const auto& uses = value->uses();
      return value->isConstant() ||
             (value->isInput() && value->dtype() == DType::Float32 && !value->isGraphOutput() &&
              std::all_of(uses.begin(), uses.end(), [&](const ir::Use& use) { return compares(*use.node); }));
    };
    std::vector<const ir::Node*> widened;
    for (const ir::Node* node : nodes_) {
      const auto& operands = node->operands();
      if (compares(*node) && std::all_of(operands.begin(), operands.end(), isOnlyCompared))
        widened.push_back(node);
    }
    for (const ir::Node* node : widened) result_.nodes.at(node).settings.precision = Precision::Int16x8;
  }

  void reportRules() {
    for (size_t r = 0; r < options_.rules.size(); ++r) {
      const Rule& rule = options_.rules[r];
      if (matchCount_.count(r) != 0) {
        if (rule.overrides.weightBits && haveWeights_.count(r) == 0)
          result_.warnings.push_back(
              {fmt::format("weight_bits changes nothing: no operator that '{}' matches has weights",
                           rule.pattern),
               "only convolutions and linear layers have weights; leave it out of other rules", "",
               rule.place});
        continue;
      }
      const char* kind = rule.by == Rule::By::Operator ? "operator type"
                         : rule.by == Rule::By::Node   ? "node"
                         : rule.by == Rule::By::Module ? "module"
                                                       : "module type";
      result_.warnings.push_back(
          {fmt::format("no {} of the network matches '{}'", kind, rule.pattern),
           "'carina compile --dump-after read' lists operators and nodes, --report modules", "", rule.place});
    }
    for (const auto& [rules, conflict] : conflicts_) {
      const Rule& earlier = options_.rules[rules.first];
      const Rule& later = options_.rules[rules.second];
      result_.warnings.push_back(
          {fmt::format("overrides {} ({}) at {} operator{}, first {}", earlier.place, conflict.settings,
                       conflict.nodes.size(), conflict.nodes.size() == 1 ? "" : "s", *conflict.nodes.begin()),
           "", "", later.place});
    }
  }

  struct Conflict {
    std::string settings;
    std::set<std::string> nodes;
  };

  const std::vector<ir::Node*> nodes_;
  const Options& options_;
  Assignment result_;
  std::map<size_t, size_t> matchCount_;
  std::set<size_t> haveWeights_;  // rules that match a layer
  std::map<std::pair<size_t, size_t>, Conflict> conflicts_;
  std::set<const ir::Node*> settled_;
};

}  // namespace

Assignment assign(const ir::Graph& graph, const Options& options) {
  return Assigner(graph, options).run();
}

}  // namespace carina::quantize
