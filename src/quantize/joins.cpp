// SPDX-License-Identifier: Apache-2.0
#include "quantize/joins.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "aten/executor.hpp"
#include "aten/ops.hpp"
#include "quantize/ranges.hpp"

namespace carina::quantize {
namespace {

/// Less than a thirty-second of the codes.
constexpr float kNarrow = 8;

bool isConcatenation(const ir::Node& node) {
  if (!aten::isOperator(&node)) return false;
  switch (aten::opId(&node)) {
    case aten::OpId::Cat:
    case aten::OpId::Concat:
    case aten::OpId::Concatenate:
    case aten::OpId::Stack:
      return true;
    default:
      return false;
  }
}

/// The values of one range, were it not for concatenations.
class Parts {
 public:
  Parts(const ir::Graph& graph, const Annotation& annotation) : annotation_(annotation) {
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
        if (annotation.madeIn.count(result) != 0) join(result);
      }
    }
    for (const auto& [value, group] : annotation.madeIn) {
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

  /// Whether an operator that makes other numbers reads values of the part.
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
        isConcatenation(*node) ? annotation.madeIn.find(node->result()) : annotation.madeIn.end();
    if (whole == annotation.madeIn.end() || annotation.groups[whole->second].precision != Precision::Int8)
      continue;
    for (size_t i = 0; i < node->operands().size(); ++i) {
      const auto made = annotation.madeIn.find(node->operands()[i]);
      if (made == annotation.madeIn.end() || made->second != whole->second) continue;
      const ir::Value* part = parts.find(node->operands()[i]);
      if (parts.isComputedWith(part) && part != parts.find(node->result()))
        result.push_back({node, i, part, whole->second});
    }
  }
  return result;
}

/// How much of the real numbers codes for the range have to span: 0 is always one of them.
float span(const Range& range) {
  return range.empty() ? 0 : std::max(range.max, 0.0f) - std::min(range.min, 0.0f);
}

}  // namespace

Result<Reads> narrowOperands(const ir::Graph& graph, const Annotation& annotation, const Sample& sample) {
  Reads narrow;
  Parts parts(graph, annotation);
  const std::vector<Candidate> found = candidates(graph, annotation, parts);
  if (found.empty()) return narrow;

  std::unordered_map<const ir::Value*, Range> ofPart;
  std::unordered_map<size_t, Range> ofGroup;
  for (const Candidate& candidate : found) ofPart[candidate.part], ofGroup[candidate.group];
  CARINA_TRY(const aten::Executor executor, aten::Executor::create(graph));
  CARINA_TRY(const auto outputs, executor.run(sample, [&](const ir::Value& value, const Tensor& tensor) {
    const auto made = annotation.madeIn.find(&value);
    if (made == annotation.madeIn.end()) return;
    const auto group = ofGroup.find(made->second);
    if (group == ofGroup.end()) return;
    const Range seen = rangeOf(tensor.as<float>());
    group->second = unite(group->second, seen);
    if (const auto part = ofPart.find(parts.find(&value)); part != ofPart.end())
      part->second = unite(part->second, seen);
  }));
  for (const Candidate& candidate : found) {
    if (span(ofPart[candidate.part]) * kNarrow < span(ofGroup[candidate.group]))
      narrow.insert({candidate.node, candidate.operand});
  }
  return narrow;
}

}  // namespace carina::quantize
