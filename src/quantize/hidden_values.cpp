// SPDX-License-Identifier: Apache-2.0
#include "quantize/hidden_values.hpp"

#include <algorithm>
#include <limits>

#include "aten/control_flow.hpp"
#include "aten/operator_facts.hpp"
#include "aten/ops.hpp"

namespace carina::quantize {
namespace {

constexpr float kRoom = 16;

bool containsHidden(const ir::Value& constant) {
  const auto values = constant.constant().as<float>();
  return std::any_of(values.begin(), values.end(), [](float x) { return isHidden(x); });
}

bool hasWeights(const ir::Node& node) {
  const aten::QuantizeRule rule = aten::factsOf(node).quantize;
  return rule == aten::QuantizeRule::Weighted || rule == aten::QuantizeRule::Norm;
}

/// Whether a function reads the value, possibly after sums, products or moves. A maximum of several elements
/// only has one of the others as its result.
bool reachesFunction(const ir::Value* value, std::unordered_set<const ir::Value*>& visited) {
  if (!visited.insert(value).second) return false;
  return std::any_of(value->uses().begin(), value->uses().end(), [&](const ir::Use& use) {
    const ir::Node& node = *use.node;
    if (!aten::isOperator(&node) || ir::isa<aten::Amax>(&node) || ir::isa<aten::MaxDim>(&node)) return false;
    if (isFunction(node)) return true;
    return std::any_of(node.results().begin(), node.results().end(), [&](const ir::Value* result) {
      return result->dtype() == DType::Float32 && reachesFunction(result, visited);
    });
  });
}

}  // namespace

HiddenValues::HiddenValues(const ir::Graph& graph) {
  aten::forEachNode(graph, [&](const ir::Node& node) {
    if (!aten::isOperator(&node) || hasWeights(node)) return;
    bool found = false;
    for (const ir::Value* operand : node.operands()) {
      if (!operand || operand->dtype() != DType::Float32) continue;
      if (operand->isConstant() && containsHidden(*operand)) values_.insert(operand);
      found = found || values_.contains(operand);
    }
    for (const ir::Value* result : node.results()) {
      if (found && result->dtype() == DType::Float32) values_.insert(result);
    }
  });
}

bool HiddenValues::canBeIn(const Group& group) const {
  return !values_.empty() && std::any_of(group.forms.begin(), group.forms.end(),
                                         [&](const Form& form) { return values_.contains(form.value); });
}

std::span<const float> HiddenValues::without(std::span<const float> values, std::vector<float>& memory,
                                             bool& found) {
  const auto hides = [](float x) { return isHidden(x); };
  if (std::none_of(values.begin(), values.end(), hides)) return values;
  found = true;
  memory.assign(values.begin(), values.end());
  std::replace_if(memory.begin(), memory.end(), hides, -std::numeric_limits<float>::infinity());
  return memory;
}

Range HiddenValues::withRoom(Range range, const Group& group) {
  if (range.empty()) range = {0, 0};
  std::unordered_set<const ir::Value*> visited;
  const bool reaches = std::any_of(group.forms.begin(), group.forms.end(),
                                   [&](const Form& form) { return reachesFunction(form.value, visited); });
  if (reaches) range.min -= kRoom;
  return range;
}

}  // namespace carina::quantize
