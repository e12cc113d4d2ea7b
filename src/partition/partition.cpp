// SPDX-License-Identifier: Apache-2.0
// Places units on the NPU as long as they can be lowered and the target supports the result, then gathers
// them into parts.
#include "partition/partition.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "aten/control_flow.hpp"
#include "lower/lower.hpp"
#include "partition/units.hpp"

namespace carina::partition {

bool hasControlFlow(const ir::Graph& tosa) {
  for (const ir::Node* node : tosa.nodes()) {
    if (!node->regions().empty()) return true;
  }
  return false;
}

namespace {

struct Reason {
  std::string place;  // Node::where() of the node concerned; "" if unknown
  std::string text, remedy;
  Code code = Code::None;
};

/// Depths of the nodes with effects so far, by variable.
class EffectDepths {
 public:
  /// The depth that a node of the variable ("": of any, or of none) has to follow; -1: none.
  int before(std::string_view variable) const {
    if (variable.empty()) return deepest_;
    const auto last = ofVariable_.find(variable);
    return last == ofVariable_.end() ? ofAll_ : std::max(last->second, ofAll_);
  }
  void add(std::string_view variable, int depth) {
    int& last = variable.empty() ? ofAll_ : ofVariable_.emplace(variable, -1).first->second;
    last = std::max(last, depth);
    deepest_ = std::max(deepest_, depth);
  }

 private:
  std::unordered_map<std::string_view, int> ofVariable_;
  int ofAll_ = -1, deepest_ = -1;
};

class Partitioner {
 public:
  Partitioner(ir::Graph graph, const Options& options) : graph_(std::move(graph)), options_(options) {}

  Result<Partitioned> run() {
    CARINA_RETURN_IF_ERROR(separateDequantizes(graph_));
    units_ = findUnits(graph_, options_.dialect ? options_.dialect->divides : nullptr);
    onNpu_.assign(units_.units.size(), true);
    for (size_t u = 0; u < units_.units.size(); ++u) {
      Unit& unit = units_.units[u];
      if (options_.dialect && options_.dialect->converts)
        unit.boundary =
            unit.nodes.size() == 1 && (options_.dialect->converts(*unit.nodes[0]) || divides(*unit.nodes[0]));
      if (unit.boundary)
        onNpu_[u] = false;
      else if (auto other = isOther(unit))
        refuse(u, std::move(*other));
      else if (auto reason = keptOff(unit))
        refuse(u, std::move(*reason));
      else if (auto leaves = leavesInFloat(unit))
        refuse(u, std::move(*leaves));
    }
    std::vector<Placed> parts;
    while (!place(parts)) {
    }
    return rebuild(std::move(parts));
  }

 private:
  /// One NPU part: its nodes as a graph, and what that lowers to.
  struct Placed {
    Part part;  // without Options::keepParts, its graph is empty
    std::vector<ir::Type> inputs, outputs;
    std::vector<std::string> outputNames;
    ir::Graph tosa;
    std::optional<ir::Graph> whole;  // Delegate::placed
  };

  bool divides(const ir::Node& node) const {
    return options_.dialect && options_.dialect->divides && options_.dialect->divides(node);
  }

  std::string_view variableOf(const ir::Node& node) const {
    return options_.dialect && options_.dialect->variable ? options_.dialect->variable(node) : "";
  }

  void refuse(size_t unit, Reason reason) {
    onNpu_[unit] = false;
    reasons_[unit] = std::move(reason);
  }

  /// Whether the user wants the node on the CPU; records which requests matched.
  bool requested(const ir::Node& node) {
    const std::vector<const std::string*> found = options_.keepOff.matching(node);
    for (const std::string* request : found) matched_.insert(*request);
    return !found.empty();
  }

  bool requestedInside(const ir::Node& node) {
    if (!aten::isControlFlow(node)) return false;
    bool found = false;
    for (const auto& region : node.regions()) {
      aten::forEachNode(*region, [&](const ir::Node& inner) {
        if (!isQuantize(inner) && !isDequantize(inner)) found = requested(inner) || found;
      });
    }
    return found;
  }

  std::optional<Reason> isOther(const Unit& unit) const {
    if (!options_.whyOther) return std::nullopt;
    std::optional<Reason> reason;
    const auto ask = [&](const ir::Node& node) {
      if (reason) return;
      if (auto why = options_.whyOther(node))
        reason = Reason{node.where(), why->message, why->remedy, why->code};
    };
    for (const ir::Node* node : unit.nodes) {
      ask(*node);
      // A conditional or loop is on the NPU only with all of its regions.
      if (!aten::isControlFlow(*node)) continue;
      for (const auto& region : node->regions()) aten::forEachNode(*region, ask);
    }
    return reason;
  }

  std::optional<Reason> keptOff(const Unit& unit) {
    std::optional<Reason> reason;
    for (const ir::Node* node : unit.nodes) {
      if (aten::isControlFlow(*node) && !options_.placeControlFlow)
        return Reason{node->where(), "program instructions outside the NPU parts choose what runs", "",
                      Code::MissingCapability};
      if (isQuantize(*node) || isDequantize(*node)) continue;
      if (!requested(*node)) {
        // A conditional or loop is on the NPU only with all of its regions.
        if (requestedInside(*node))
          return Reason{node->where(), "an operator in its regions is kept off the NPU on request",
                        "drop the request", Code::OnRequest};
        continue;
      }
      if (!reason)
        reason = Reason{node->where(), "kept off the NPU on request", "drop the request", Code::OnRequest};
    }
    return reason;
  }

  /// A float result of the program that no dequantize node produces: lowering need not be tried.
  std::optional<Reason> leavesInFloat(const Unit& unit) const {
    const auto leaves = [](const ir::Value* result) {
      return isFloat(result->dtype()) && result->isGraphOutput();
    };
    for (const ir::Node* node : unit.nodes) {
      if (isDequantize(*node) || std::none_of(node->results().begin(), node->results().end(), leaves))
        continue;
      const auto part = partOf(unit.nodes, "part");
      if (part.ok()) continue;
      const Diagnostic& why = part.error().diagnostics().front();
      return Reason{node->where(), why.message, why.remedy, why.code};
    }
    return std::nullopt;
  }

  std::vector<std::string> unmatched() const {
    std::vector<std::string> list;
    for (const auto* requests : {&options_.keepOff.ops, &options_.keepOff.names, &options_.keepOff.modules}) {
      for (const std::string& wanted : *requests) {
        if (matched_.count(wanted) == 0) list.push_back(wanted);
      }
    }
    return list;
  }

  /// The number of times that a path to a node goes from the CPU to the NPU: units with the same depth are
  /// one part, and everything of depth d runs before the NPU part of depth d + 1. Nodes after a border are
  /// deeper than all nodes before it. Refuses a unit on a cycle and returns false.
  bool computeDepths() {
    const int limit = static_cast<int>(units_.units.size()) + 1;
    unitDepth_.assign(units_.units.size(), 0);
    cpuDepth_.clear();
    for (bool changed = true; changed;) {
      changed = false;
      EffectDepths effects;
      int deepest = -1, border = -1;  // of the nodes so far; of those before the last border
      for (const ir::Node* node : graph_.nodes()) {
        if (divides(*node)) border = deepest;
        const size_t unit = units_.unitOf.at(node);
        const bool ordered = !onNpu_[unit] && !node->def().has(ir::kPure);
        int depth = onNpu_[unit] ? border + 1
                    : ordered    ? std::max(effects.before(variableOf(*node)), border)
                                 : border;
        for (const ir::Value* operand : node->operands()) {
          const ir::Node* producer = operand ? operand->producer() : nullptr;
          if (!producer) continue;
          const size_t from = units_.unitOf.at(producer);
          if (onNpu_[from])
            depth = std::max(depth, unitDepth_[from]);
          else
            depth = std::max(depth, cpuDepth_[producer] + (onNpu_[unit] ? 1 : 0));
        }
        int& known = onNpu_[unit] ? unitDepth_[unit] : cpuDepth_.emplace(node, -1).first->second;
        if (depth > known) {
          known = depth;
          changed = true;
        }
        if (ordered) effects.add(variableOf(*node), known);
        deepest = std::max(deepest, known);
        if (known > limit) {
          refuse(unit, {node->where(), "its NPU part would depend on itself through the CPU", ""});
          return false;
        }
      }
    }
    return true;
  }

  /// Lowers all parts. If a part cannot go to the NPU, refuses at least one more unit and returns false.
  bool place(std::vector<Placed>& parts) {
    parts.clear();
    if (!computeDepths()) return false;
    std::map<int, std::vector<ir::Node*>> byDepth;
    for (ir::Node* node : graph_.nodes()) {
      const size_t unit = units_.unitOf.at(node);
      if (onNpu_[unit]) byDepth[unitDepth_[unit]].push_back(node);
    }
    for (const auto& [depth, nodes] : byDepth) {
      const std::string name = "npu" + std::to_string(parts.size());
      auto placed = tryPlace(nodes, name);
      if (placed.ok()) {
        parts.push_back(std::move(*placed));
        continue;
      }
      refuseCulprits(nodes, placed.error());
      return false;
    }
    return true;
  }

  Result<Part> partOf(const std::vector<ir::Node*>& nodes, const std::string& name) const {
    return extract(nodes, name, !options_.dialect);
  }

  Result<Placed> tryPlace(const std::vector<ir::Node*>& nodes, const std::string& name) const {
    CARINA_TRY(Part part, partOf(nodes, name));
    CARINA_TRY(ir::Graph tosa,
               options_.dialect ? options_.dialect->lower(part.graph) : lower::lowerToTosa(part.graph));
    Placed placed;
    for (const ir::Value* input : part.graph.inputs()) placed.inputs.push_back(input->type);
    for (const ir::Value* output : part.graph.outputs()) {
      placed.outputs.push_back(output->type);
      placed.outputNames.push_back(output->name);
    }
    if (!options_.keepParts) part.graph = ir::Graph(name);
    std::optional<ir::Graph> whole;
    const bool branches = hasControlFlow(tosa);
    if (branches && !options_.placeControlFlow) {
      // An operator that is a loop in TOSA, such as a recurrence over many steps.
      return fail(Code::NoIntegerForm, "it is a loop, but this NPU has no command that branches")
          .withRemedy("compile for an Ethos-U85, which can loop in its command stream");
    }
    if (branches) {
      CARINA_RETURN_IF_ERROR(options_.placeControlFlow(tosa));
    } else if (options_.placeWhole) {
      whole = options_.placeWhole(tosa);
    }
    if (options_.supports && !whole && !branches) {
      std::vector<Diagnostic> problems;
      for (const ir::Node* op : tosa.nodes()) {
        if (const auto why = options_.supports(*op))
          problems.push_back({why->message, why->remedy, "", op->where(), why->code});
      }
      if (!problems.empty()) return Error(std::move(problems));
    }
    placed.part = std::move(part);
    placed.tosa = std::move(tosa);
    placed.whole = std::move(whole);
    return placed;
  }

  /// Tries the units of a failed part one by one; if each succeeds alone, refuses those that the messages
  /// name.
  void refuseCulprits(const std::vector<ir::Node*>& nodes, const Error& whole) {
    std::set<size_t> units;
    for (const ir::Node* node : nodes) units.insert(units_.unitOf.at(node));
    bool found = false;
    for (size_t u : units) {
      const auto alone = tryPlace(units_.units[u].nodes, "part");
      if (alone.ok()) continue;
      const Diagnostic& why = alone.error().diagnostics().front();
      refuse(u, {why.place, why.message, why.remedy, why.code});
      found = true;
    }
    for (const Diagnostic& why : whole.diagnostics()) {
      if (found) break;
      for (size_t u : units) {
        const auto& members = units_.units[u].nodes;
        const bool named = std::any_of(members.begin(), members.end(),
                                       [&](const ir::Node* n) { return n->where() == why.place; });
        if (!named) continue;
        refuse(u, {why.place, why.message, why.remedy, why.code});
        found = true;
      }
    }
    if (found) return;
    const Diagnostic& why = whole.diagnostics().front();
    for (size_t u : units) refuse(u, {why.place, why.message, why.remedy, why.code});
  }

  /// The program graph: CPU nodes and delegate calls in an order that the depths allow.
  Result<Partitioned> rebuild(std::vector<Placed> parts) {
    Partitioned result;
    result.graph = ir::Graph(graph_.name);
    const auto isOnNpu = [this](const ir::Use& use) { return onNpu_[units_.unitOf.at(use.node)]; };
    std::unordered_map<const ir::Value*, ir::Value*> mapping;
    for (const ir::Value* input : graph_.inputs()) {
      mapping[input] = result.graph.addInput(input->type, input->name);
      mapping[input]->quantization = input->quantization;
    }
    for (const auto& constant : graph_.constants()) {
      if (!constant->isGraphOutput() &&
          std::all_of(constant->uses().begin(), constant->uses().end(), isOnNpu))
        continue;
      ir::Value* copy = result.graph.addConstant(constant->constant(), constant->name);
      copy->quantization = constant->quantization;
      mapping.emplace(constant.get(), copy);
    }
    std::map<int, std::vector<const ir::Node*>> cpuNodes;
    int last = -1;
    for (const ir::Node* node : graph_.nodes()) {
      const size_t unit = units_.unitOf.at(node);
      const int depth = onNpu_[unit] ? unitDepth_[unit] : cpuDepth_.at(node);
      last = std::max(last, depth);
      if (!onNpu_[unit]) cpuNodes[depth].push_back(node);
    }
    std::set<int> npuDepths;
    for (size_t u = 0; u < units_.units.size(); ++u) {
      if (onNpu_[u]) npuDepths.insert(unitDepth_[u]);
    }
    size_t next = 0;
    for (int depth = -1; depth <= last; ++depth) {
      if (npuDepths.count(depth) != 0) {
        CARINA_TRY(Delegate delegate, addCall(result.graph, mapping, std::move(parts[next++])));
        result.delegates.push_back(std::move(delegate));
      }
      for (const ir::Node* node : cpuNodes[depth]) {
        CARINA_TRY([[maybe_unused]] ir::Node* const copy, ir::cloneNode(*node, result.graph, mapping));
      }
    }
    std::vector<ir::Value*> outputs;
    for (const ir::Value* output : graph_.outputs()) {
      outputs.push_back(mapping.at(output));
      if (output->quantization) outputs.back()->quantization = output->quantization;
    }
    result.graph.setOutputs(std::move(outputs));
    result.graph.eraseUnusedConstants();
    explain(result);
    result.unmatched = unmatched();
    return result;
  }

  Result<Delegate> addCall(ir::Graph& graph, std::unordered_map<const ir::Value*, ir::Value*>& mapping,
                           Placed placed) {
    ir::Builder builder(graph);
    const auto cast = [&](ir::Value* value, DType to) {
      return value->dtype() == to ? value : converted(builder, value, to);
    };
    ir::NodeSpec spec;
    spec.def = &delegateCallDef();
    spec.operands.emplace_back();
    for (size_t i = 0; i < placed.inputs.size(); ++i) {
      spec.operands[0].push_back(cast(mapping.at(placed.part.inputs[i]), placed.inputs[i].dtype));
    }
    spec.types = std::move(placed.outputs);
    CARINA_TRY(ir::Node* const call, graph.create(std::move(spec)));
    for (size_t i = 0; i < placed.outputNames.size(); ++i) {
      call->result(i)->name = placed.outputNames[i];
      call->result(i)->quantization = placed.part.outputs[i]->quantization;
      mapping[placed.part.outputs[i]] = cast(call->result(i), placed.part.outputs[i]->dtype());
    }
    call->setRegion(0, std::move(placed.part.graph));
    return Delegate{call, std::move(placed.tosa), std::move(placed.whole)};
  }

  /// Lists every operator outside with its reason; quantize nodes and integer conversions at the border are
  /// expected there.
  void explain(Partitioned& result) const {
    bool clean = true;
    for (size_t u = 0; u < units_.units.size(); ++u) {
      if (onNpu_[u] || units_.units[u].boundary) continue;
      const auto reason = reasons_.find(u);
      for (const ir::Node* node : units_.units[u].nodes) {
        if (isQuantize(*node) || isDequantize(*node) || isIntegerCast(*node)) continue;
        clean = false;
        Refusal refusal{std::string(node->opName()), "", "", "", ""};
        if (node->location()) {
          refusal.node = node->location()->name;
          refusal.modulePath = node->location()->modulePath;
        }
        if (reason != reasons_.end()) {
          const bool own = reason->second.place.empty() || reason->second.place == node->where();
          refusal.reason = own ? reason->second.text
                           : aten::isControlFlow(*node)
                               ? fmt::format("it is decided outside NPU parts: {}: {}", reason->second.place,
                                             reason->second.text)
                               : fmt::format("not quantized between it and {}: {}", reason->second.place,
                                             reason->second.text);
          refusal.remedy = reason->second.remedy;
          refusal.code = reason->second.code;
        }
        result.refusals.push_back(std::move(refusal));
      }
    }
    result.wholly = clean && result.delegates.size() == 1;
  }

  ir::Graph graph_;
  const Options& options_;
  Units units_;
  std::vector<bool> onNpu_;
  std::map<size_t, Reason> reasons_;
  std::set<std::string> matched_;  // requests of the options
  std::vector<int> unitDepth_;
  std::unordered_map<const ir::Node*, int> cpuDepth_;
};

}  // namespace

namespace {

Result<Partitioned> partitionGraph(ir::Graph graph, const Options& options) {
  CARINA_TRY(Partitioned whole, Partitioner(std::move(graph), options).run());
  for (ir::Node* node : whole.graph.nodes()) {
    if (!aten::isControlFlow(*node)) continue;
    for (size_t i = 0; i < node->regions().size(); ++i) {
      CARINA_TRY(Partitioned inner, partitionGraph(std::move(node->region(i)), options));
      node->setRegion(i, std::move(inner.graph));
      std::move(inner.delegates.begin(), inner.delegates.end(), std::back_inserter(whole.delegates));
      whole.refusals.insert(whole.refusals.end(), inner.refusals.begin(), inner.refusals.end());
      std::erase_if(whole.unmatched, [&](const std::string& request) {
        return std::find(inner.unmatched.begin(), inner.unmatched.end(), request) == inner.unmatched.end();
      });
    }
  }
  return whole;
}

/// Sorts delegates by the order of their calls, regions at their node's position.
void orderDelegates(Partitioned& partitioned) {
  std::unordered_map<const ir::Node*, size_t> position;
  aten::forEachNode(partitioned.graph, [&](const ir::Node& node) {
    if (node.is(delegateCallDef())) position.emplace(&node, position.size());
  });
  std::sort(partitioned.delegates.begin(), partitioned.delegates.end(),
            [&](const Delegate& a, const Delegate& b) { return position.at(a.call) < position.at(b.call); });
  for (size_t i = 0; i < partitioned.delegates.size(); ++i)
    partitioned.delegates[i].tosa.name = "npu" + std::to_string(i);
}

}  // namespace

Result<Partitioned> partition(ir::Graph graph, const Options& options) {
  CARINA_TRY(Partitioned partitioned, partitionGraph(std::move(graph), options));
  orderDelegates(partitioned);
  return partitioned;
}

}  // namespace carina::partition
