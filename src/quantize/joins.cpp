// SPDX-License-Identifier: Apache-2.0
#include "quantize/joins.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "aten/executor.hpp"
#include "aten/ops.hpp"
#include "quantize/ranges.hpp"
#include "quantize/recurrence.hpp"

namespace carina::quantize {
namespace {

/// A part that spans less than 1 / kNarrow (in int16, 1 / kNarrow16) of the whole range is unlike the others.
constexpr float kNarrow = 8, kNarrow16 = 64;
/// With fewer codes, a part is practically lost.
constexpr double kScarce = 16;

bool isConcatenation(const ir::Node& node) {
  return ir::isa<aten::Cat>(&node) || ir::isa<aten::Stack>(&node);
}

/// Whether the result holds unchanged elements of several operands.
bool putsTogether(const ir::Node& node) {
  return isConcatenation(node) || ir::isa<aten::WhereSelf>(&node) || ir::isa<aten::IndexPut>(&node) ||
         ir::isa<aten::SliceScatter>(&node) || ir::isa<aten::SelectScatter>(&node);
}

/// The operands whose elements the result holds.
std::vector<const ir::Value*> partsOf(const ir::Node& node, const Annotation& annotation) {
  std::vector<const ir::Value*> parts;
  for (size_t i = 0; i < node.operands().size(); ++i) {
    if (isConcatenation(node) || annotation.readIn.count({&node, i}) != 0)
      parts.push_back(node.operands()[i]);
  }
  return parts;
}

/// Sets of values that would share a range even without concatenations.
class Parts {
 public:
  Parts(const ir::Graph& graph, const Annotation& annotation) : annotation_(annotation) {
    // Steps of a recurrence share a range, whether or not they are concatenated.
    for (const auto& [one, other] : successiveValues(graph)) parent_[find(other)] = find(one);
    for (const ir::Node* node : graph.nodes()) {
      if (roleOf(*node) != Role::Shared || isConcatenation(*node)) continue;
      const ir::Value* first = nullptr;
      const auto join = [&](const ir::Value* value) {
        if (first) parent_[find(value)] = find(first);
        first = value;
      };
      for (size_t i = 0; i < node->operands().size(); ++i) {
        if (annotation.readIn.count({node, i}) != 0) join(node->operands()[i]);
      }
      for (const ir::Value* result : node->results()) {
        if (annotation.producedIn.count(result) != 0) join(result);
      }
    }
    for (const auto& [value, group] : annotation.producedIn) {
      const ir::Value* part = find(value);
      const auto& uses = value->uses();
      if (std::any_of(uses.begin(), uses.end(), [&](const ir::Use& use) { return computes(use); }))
        computedWith_.insert(part);
    }
  }

  const ir::Value* find(const ir::Value* value) {
    const ir::Value*& parent = parent_.try_emplace(value, value).first->second;
    if (parent == value) return value;
    const ir::Value* root = find(parent);
    return parent_[value] = root;
  }

  /// Whether an operator that computes new values reads values of the part.
  bool isComputedWith(const ir::Value* part) const { return computedWith_.count(part) != 0; }

 private:
  bool computes(const ir::Use& use) const {
    const Role role = roleOf(*use.node);
    return (role == Role::Own || role == Role::Compare) &&
           annotation_.readIn.count({use.node, use.operand}) != 0;
  }

  const Annotation& annotation_;
  std::unordered_map<const ir::Value*, const ir::Value*> parent_;
  std::unordered_set<const ir::Value*> computedWith_;
};

struct Candidate {
  const ir::Node* node;
  size_t operand;
  const ir::Value* part;
  size_t group;
};

std::vector<Candidate> candidates(const ir::Graph& graph, const Annotation& annotation, Parts& parts) {
  std::vector<Candidate> result;
  for (const ir::Node* node : graph.nodes()) {
    const auto whole =
        isConcatenation(*node) ? annotation.producedIn.find(node->result()) : annotation.producedIn.end();
    if (whole == annotation.producedIn.end() || annotation.groups[whole->second].precision != Precision::Int8)
      continue;
    for (size_t i = 0; i < node->operands().size(); ++i) {
      const auto made = annotation.producedIn.find(node->operands()[i]);
      if (made == annotation.producedIn.end() || made->second != whole->second) continue;
      const ir::Value* part = parts.find(node->operands()[i]);
      if (parts.isComputedWith(part) && part != parts.find(node->result()))
        result.push_back({node, i, part, whole->second});
    }
  }
  return result;
}

/// The width that codes for the range have to cover, which always includes 0.
float span(const Range& range) {
  return range.empty() ? 0 : std::max(range.max, 0.0f) - std::min(range.min, 0.0f);
}

Range wholeOf(const ir::Node& node, const RangesOf& ranges) {
  Range whole;
  for (const ir::Value* operand : node.operands()) whole = unite(whole, ranges.at(operand));
  return whole;
}

/// The nodes that only move elements of float results to the program's results.
std::unordered_set<const ir::Node*> movesToResults(const ir::Graph& graph, const Annotation& annotation,
                                                   size_t states) {
  // State keeps its codes.
  const std::unordered_set<const ir::Value*> kept(graph.outputs().end() - static_cast<std::ptrdiff_t>(states),
                                                  graph.outputs().end());
  std::unordered_set<const ir::Node*> moves;
  for (const ir::Node* node = graph.lastNode(); node; node = node->previous()) {
    if (roleOf(*node) != Role::Shared || (!isConcatenation(*node) && !node->def().has(ir::kView))) continue;
    const auto& results = node->results();
    const bool leaves = std::all_of(results.begin(), results.end(), [&](const ir::Value* result) {
      const auto& uses = result->uses();
      return annotation.producedIn.count(result) != 0 && kept.count(result) == 0 &&
             std::all_of(uses.begin(), uses.end(),
                         [&](const ir::Use& use) { return moves.count(use.node) != 0; });
    });
    if (leaves) moves.insert(node);
  }
  return moves;
}

/// Whether the concatenation is in the original network, rather than part of a decomposed operator.
bool isOfTheNetwork(const ir::Node& node, const SourceOps& sources) {
  const auto source = sources.find(node.location());
  if (source == sources.end()) return true;
  const auto names = {"aten.cat.", "aten.concat", "aten.stack.", "aten.hstack.", "aten.vstack."};
  return std::any_of(names.begin(), names.end(),
                     [&](const char* name) { return source->second.starts_with(name); });
}

/// Concatenations of unlike parts whose result is returned as float, and the operators after them.
std::vector<const ir::Node*> joinedWidely(const ir::Graph& graph, const Assignment& assignment,
                                          const Annotation& annotation, const Options& options,
                                          const Joins& joins, Parts& parts) {
  std::vector<const ir::Node*> result;
  if (options.outputs && options.outputs->precision) return result;
  const std::unordered_set<const ir::Node*> moves = movesToResults(graph, annotation, options.states);
  std::unordered_set<const ir::Node*> widely;
  const auto joinsUnlike = [&](const ir::Node& node) {
    if (!isConcatenation(node) || assignment.of(node).named || !isOfTheNetwork(node, options.sourceOps))
      return false;
    const Precision precision = annotation.groups[annotation.producedIn.at(node.result())].precision;
    const float narrow = precision == Precision::Int8 ? kNarrow : kNarrow16;
    const float whole = span(wholeOf(node, joins.ranges));
    const ir::Value* widest = *std::max_element(node.operands().begin(), node.operands().end(),
                                                [&](const ir::Value* a, const ir::Value* b) {
                                                  return span(joins.ranges.at(a)) < span(joins.ranges.at(b));
                                                });
    return std::any_of(node.operands().begin(), node.operands().end(), [&](const ir::Value* operand) {
      const float part = span(joins.ranges.at(operand));
      return part > 0 && part * narrow < whole && parts.find(operand) != parts.find(widest);
    });
  };
  for (const ir::Node* node : graph.nodes()) {
    if (moves.count(node) == 0) continue;
    const bool behind = std::any_of(
        node->operands().begin(), node->operands().end(),
        [&](const ir::Value* operand) { return operand && widely.count(operand->producer()) != 0; });
    if (!behind && !joinsUnlike(*node)) continue;
    widely.insert(node);
    result.push_back(node);
  }
  return result;
}

}  // namespace

Result<Joins> joinsOf(const ir::Graph& graph, const Assignment& assignment, const Annotation& annotation,
                      const Options& options, const Sample& sample, const aten::Observer& show) {
  Joins joins;
  for (const ir::Node* node : graph.nodes()) {
    if (!putsTogether(*node) || annotation.producedIn.count(node->result()) == 0) continue;
    for (const ir::Value* part : partsOf(*node, annotation))
      joins.ranges[part] = part->isConstant() ? rangeOf(part->constant().as<float>()) : Range{};
  }
  if (joins.ranges.empty()) return joins;
  Parts parts(graph, annotation);
  const std::vector<Candidate> found = candidates(graph, annotation, parts);
  std::unordered_map<const ir::Value*, Range> ofPart;
  std::unordered_map<size_t, Range> ofGroup;
  for (const Candidate& candidate : found) ofPart[candidate.part], ofGroup[candidate.group];
  CARINA_TRY(const aten::Executor executor,
             aten::Executor::create(graph, aten::Folding::All, options.loops.get()));
  CARINA_TRY(joins.outputs, executor.run(sample, [&](const ir::Value& value, const Tensor& tensor) {
    if (show) show(value, tensor);
    const auto operand = value.isConstant() ? joins.ranges.end() : joins.ranges.find(&value);
    const auto made = annotation.producedIn.find(&value);
    const auto group = made == annotation.producedIn.end() ? ofGroup.end() : ofGroup.find(made->second);
    if (operand == joins.ranges.end() && group == ofGroup.end()) return;
    const Range seen = rangeOf(tensor.as<float>());
    if (operand != joins.ranges.end()) operand->second = seen;
    if (group == ofGroup.end()) return;
    group->second = unite(group->second, seen);
    if (const auto part = ofPart.find(parts.find(&value)); part != ofPart.end())
      part->second = unite(part->second, seen);
  }));
  joins.widely = joinedWidely(graph, assignment, annotation, options, joins, parts);
  const std::unordered_set<const ir::Node*> widely(joins.widely.begin(), joins.widely.end());
  for (const Candidate& candidate : found) {
    if (widely.count(candidate.node) == 0 &&
        span(ofPart[candidate.part]) * kNarrow < span(ofGroup[candidate.group]))
      joins.apart.insert({candidate.node, candidate.operand});
  }
  return joins;
}

std::vector<Diagnostic> scarceParts(const ir::Graph& graph, const Annotation& annotation,
                                    const std::vector<QParams>& params, const Joins& joins) {
  std::vector<Diagnostic> warnings;
  for (const ir::Node* node : graph.nodes()) {
    const auto made =
        putsTogether(*node) ? annotation.producedIn.find(node->result()) : annotation.producedIn.end();
    if (made == annotation.producedIn.end()) continue;
    const QParams& q = params[made->second];
    const std::vector<const ir::Value*> parts = partsOf(*node, annotation);
    const ir::Value* least = nullptr;
    size_t scarce = 0;
    for (const ir::Value* operand : parts) {
      const auto seen = joins.ranges.find(operand);
      if (seen == joins.ranges.end() || span(seen->second) == 0 || span(seen->second) >= kScarce * q.scale)
        continue;
      ++scarce;
      if (!least || span(seen->second) < span(joins.ranges.at(least))) least = operand;
    }
    if (!least) continue;
    const Range& range = joins.ranges.at(least);
    std::string name = least->name.empty() ? "a constant" : least->name;
    if (scarce > 1) name += fmt::format(" and {} more", scarce - 1);
    warnings.push_back(
        {fmt::format("leaves {} of its {} parts few codes: {} ({:.3g} to {:.3g}) has {:.1f} of {}, because "
                     "other values need a scale of {:.3g}",
                     scarce, parts.size(), name, range.min, range.max, span(range) / q.scale,
                     q.codes.max - q.codes.min + 1, q.scale),
         fmt::format("{}scale the parts to similar magnitudes first, or return them separately",
                     annotation.groups[made->second].precision == Precision::Int8
                         ? "give it and its readers precision int16x8 in a --quantize-config file, "
                         : ""),
         "", node->where()});
  }
  return warnings;
}

}  // namespace carina::quantize
