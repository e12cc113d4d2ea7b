// SPDX-License-Identifier: Apache-2.0
#include "quantize/recurrence.hpp"

#include <map>
#include <set>
#include <unordered_map>

#include "aten/ops.hpp"
#include "quantize/annotate.hpp"

namespace carina::quantize {
namespace {

using Pair = std::pair<const ir::Value*, const ir::Value*>;

bool sameOperator(const ir::Node& a, const ir::Node& b) {
  if (&a.def() != &b.def() || a.results().size() != b.results().size()) return false;
  for (size_t i = 0; i < a.def().attributes.size(); ++i) {
    if (!(a.attribute(i) == b.attribute(i))) return false;
  }
  return true;
}

class Finder {
 public:
  explicit Finder(const ir::Graph& graph) : graph_(graph) {
    for (const ir::Node* node : graph.nodes()) order_.emplace(node, order_.size());
  }

  std::vector<Pair> run() {
    std::map<Pair, const ir::Node*> latest;  // of each weight and bias
    for (const ir::Node* node : graph_.nodes()) {
      const auto layer = asWeighted(*node);
      if (!layer) continue;
      const auto [it, isFirst] = latest.try_emplace({layer->weight, layer->bias}, node);
      if (isFirst) continue;
      const ir::Node* before = std::exchange(it->second, node);
      if (sameOperator(*before, *node) && partsOfOne(before->operands()[0], node->operands()[0])) {
        result_.emplace_back(before->result(), node->result());
        continue;
      }
      if (!sameOperator(*before, *node) || !dependsOn(*node, *before)) continue;
      result_.emplace_back(before->operands()[0], node->operands()[0]);
      follow(before->result(), node->result());
    }
    return std::move(result_);
  }

 private:
  /// Slices of one value: the input products of a long recurrence are computed in parts.
  static bool partsOfOne(const ir::Value* a, const ir::Value* b) {
    const auto one = ir::producerAs<aten::SliceTensor>(a), other = ir::producerAs<aten::SliceTensor>(b);
    return one && other && one.self() == other.self() && one.dim() == other.dim();
  }

  bool dependsOn(const ir::Node& node, const ir::Node& before) const {
    const size_t first = order_.at(&before);
    std::vector<const ir::Node*> open{&node};
    std::set<const ir::Node*> seen;
    while (!open.empty()) {
      const ir::Node* at = open.back();
      open.pop_back();
      for (const ir::Value* operand : at->operands()) {
        const ir::Node* producer = operand ? operand->producer() : nullptr;
        if (producer == &before) return true;
        if (producer && order_.at(producer) > first && seen.insert(producer).second) open.push_back(producer);
      }
    }
    return false;
  }

  /// Pairs the results of two steps, and what is computed from them as long as the operators are the same.
  void follow(const ir::Value* a, const ir::Value* b) {
    std::vector<Pair> open{{a, b}};
    while (!open.empty()) {
      const Pair pair = open.back();
      open.pop_back();
      if (pair.first == pair.second || !seen_.insert(pair).second) continue;
      result_.push_back(pair);
      const auto &ones = pair.first->uses(), &others = pair.second->uses();
      for (size_t u = 0; u < std::min(ones.size(), others.size()); ++u) {
        const ir::Node &one = *ones[u].node, &other = *others[u].node;
        if (ones[u].operand != others[u].operand || !sameOperator(one, other)) continue;
        for (size_t r = 0; r < one.results().size(); ++r) open.emplace_back(one.result(r), other.result(r));
      }
    }
  }

  const ir::Graph& graph_;
  std::unordered_map<const ir::Node*, size_t> order_;
  std::set<Pair> seen_;
  std::vector<Pair> result_;
};

}  // namespace

std::vector<Pair> successiveValues(const ir::Graph& graph) {
  return Finder(graph).run();
}

}  // namespace carina::quantize
