// SPDX-License-Identifier: Apache-2.0
#include "quantize/whole_values.hpp"

#include <algorithm>
#include <cmath>

#include "aten/operator_facts.hpp"
#include "aten/ops.hpp"
#include "quantize/annotate.hpp"
#include "quantize/loops.hpp"

namespace carina::quantize {
namespace {

bool isWhole(double number) {
  return number == std::floor(number);
}

bool isWhole(const Tensor& tensor) {
  const auto numbers = tensor.as<float>();
  return std::all_of(numbers.begin(), numbers.end(),
                     [](float number) { return isWhole(static_cast<double>(number)); });
}

/// Whether the operator makes integers of integers, as far as its numbers decide.
bool keepsIntegers(const ir::Node& node) {
  const auto areWhole = [](const auto&... numbers) { return (isWhole(ir::scalarReal(numbers)) && ...); };
  if (const auto add = ir::dynCast<aten::AddScalar>(&node)) return areWhole(add.other(), add.alpha());
  if (const auto sub = ir::dynCast<aten::SubScalar>(&node)) return areWhole(sub.other(), sub.alpha());
  if (const auto rsub = ir::dynCast<aten::RsubScalar>(&node)) return areWhole(rsub.other(), rsub.alpha());
  if (const auto mul = ir::dynCast<aten::MulScalar>(&node)) return areWhole(mul.other());
  if (const auto add = ir::dynCast<aten::AddTensor>(&node)) return areWhole(add.alpha());
  if (const auto sub = ir::dynCast<aten::SubTensor>(&node)) return areWhole(sub.alpha());
  if (const auto clamp = ir::dynCast<aten::Clamp>(&node)) {
    const auto allows = [&](const ir::Attribute& limit) {
      return std::holds_alternative<std::monostate>(limit) || areWhole(limit);
    };
    return allows(clamp.min()) && allows(clamp.max());
  }
  if (ir::isa<aten::MulTensor>(&node) || ir::isa<aten::Maximum>(&node) || ir::isa<aten::Minimum>(&node) ||
      ir::isa<aten::Relu>(&node) || ir::isa<aten::Neg>(&node) || ir::isa<aten::Abs>(&node))
    return true;
  return node.def().has(ir::kView) || ir::isa<aten::Cat>(&node) || ir::isa<aten::Stack>(&node) ||
         ir::isa<aten::Expand>(&node);
}

bool roundsToIntegers(const ir::Node& node) {
  return ir::isa<aten::Floor>(&node) || ir::isa<aten::Ceil>(&node) || ir::isa<aten::Round>(&node) ||
         ir::isa<aten::Trunc>(&node);
}

}  // namespace

std::unordered_set<const ir::Value*> wholeValues(const ir::Graph& graph) {
  std::unordered_set<const ir::Value*> whole;
  for (const ir::Node* node : nodesWithLoops(graph)) {
    const auto isInteger = [&](const ir::Value* operand) {
      if (!operand || !isFloat(operand->dtype())) return true;
      return operand->isConstant() ? operand->dtype() == DType::Float32 && isWhole(operand->constant())
                                   : whole.count(operand) != 0;
    };
    const auto& operands = node->operands();
    const bool converts = aten::factsOf(*node).quantize == aten::QuantizeRule::Conversion;
    if (!roundsToIntegers(*node) &&
        !((converts || keepsIntegers(*node)) && std::all_of(operands.begin(), operands.end(), isInteger)))
      continue;
    for (const ir::Value* result : node->results()) {
      if (result->dtype() == DType::Float32) whole.insert(result);
    }
  }
  return whole;
}

}  // namespace carina::quantize
