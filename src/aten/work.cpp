// SPDX-License-Identifier: Apache-2.0
#include "aten/work.hpp"

#include <algorithm>

#include "aten/control_flow.hpp"
#include "aten/operator_facts.hpp"

namespace carina::aten {
namespace {

// Costs of the executor's kernels in steps, measured on one core of a 2020s x86 machine and rounded up.
constexpr double kNode = 2000;
constexpr double kElement = 4, kFunction = 20, kSorted = 200, kProduct = 1.0 / 16, kDepthwise = 0.5, kTap = 2;

double elementsOf(const ir::Value* value) {
  return value == nullptr ? 0 : static_cast<double>(value->numElements());
}

double elements(const std::vector<ir::Value*>& values) {
  double sum = 0;
  for (const ir::Value* value : values) sum += elementsOf(value);
  return sum;
}

/// Operands by flat index: each member of a list counts separately. Null: absent.
const ir::Value* operandOf(const ir::Node& node, size_t i) {
  return i < node.operands().size() ? node.operands()[i] : nullptr;
}

double lastSize(const ir::Node& node, size_t operand) {
  if (operandOf(node, operand) == nullptr) return 1;
  const Shape& shape = operandOf(node, operand)->shape();
  return shape.empty() ? 1 : static_cast<double>(shape.back());
}

/// Weights are [out, in / groups, taps...]; in transposed convolutions, whose weights start with the input
/// channels, every input is multiplied.
double convolution(const ir::Node& node, double out) {
  const ir::Value* weight = operandOf(node, 1);
  if (weight == nullptr || weight->shape().empty()) return 0;
  const double each = elementsOf(weight) / std::max(static_cast<double>(weight->shape()[0]), 1.0);
  const double products = std::max(out, elementsOf(operandOf(node, 0))) * each;
  return products * (weight->shape().size() > 1 && weight->shape()[1] == 1 ? kDepthwise : kProduct);
}

/// All weights once per time step of each sequence.
double recurrence(const ir::Node& node, double in) {
  const double steps = elementsOf(operandOf(node, 0)) / std::max(lastSize(node, 0), 1.0);
  return steps * (in - elementsOf(operandOf(node, 0)));
}

/// Elements per window, from the attribute with its sizes.
double taps(const ir::Node& node) {
  const int index = node.def().attributeIndex("kernel_size");
  if (index < 0) return 1;
  const auto* sizes = std::get_if<ir::Ints>(&node.attribute(static_cast<size_t>(index)));
  double product = 1;
  for (const int64_t size : sizes ? *sizes : ir::Ints())
    product *= static_cast<double>(std::max<int64_t>(size, 1));
  // A single size applies to both dimensions.
  return sizes && sizes->size() == 1 ? product * product : product;
}

/// The work beyond the fixed cost per element.
double products(const ir::Node& node, WorkClass work, double in, double out) {
  switch (work) {
    case WorkClass::Elements:
      return 0;
    case WorkClass::Convolution:
      return convolution(node, out);
    case WorkClass::Product:
      return out * lastSize(node, 0) * kProduct;
    case WorkClass::Addition: {
      const ir::Value* by = operandOf(node, 2);
      const double columns = by != nullptr && by->shape().size() > 1 ? lastSize(node, 2) : 1;
      return elementsOf(operandOf(node, 1)) * columns * kProduct;
    }
    case WorkClass::Attention: {
      const ir::Value* keys = operandOf(node, 1);
      const bool known = keys != nullptr && keys->shape().size() >= 2;
      const double length = known ? static_cast<double>(keys->shape()[keys->shape().size() - 2]) : 1;
      return out * length * (2 * kProduct + kFunction / std::max(lastSize(node, 0), 1.0));
    }
    case WorkClass::Einsum: {
      // Estimate: the largest tensor times the last dimension of an operand.
      double sizes = out;
      for (const ir::Value* operand : node.operands()) sizes = std::max(sizes, elementsOf(operand));
      return sizes * std::max(lastSize(node, 0), lastSize(node, 1));
    }
    case WorkClass::Recurrence:
      return recurrence(node, in);
    case WorkClass::Window:
      return std::max(out * taps(node), in) * kTap;
    case WorkClass::Order:
      return (in + out) * kSorted;
  }
  return 0;
}

}  // namespace

double workOf(const ir::Node& node) {
  double inside = 0;
  for (const auto& region : node.regions()) inside += workOf(*region);
  if (!node.regions().empty())
    return kNode +
           inside * (node.is(scanDef()) ? static_cast<double>(std::max<int64_t>(Scan(node).turns, 1)) : 1);
  const double in = elements(node.operands()), out = elements(node.results());
  const OperatorFacts& facts = factsOf(node);
  const double each = facts.cost == CostClass::Function ? kFunction : kElement;
  return kNode + out * each + in + products(node, facts.work, in, out);
}

double workOf(const ir::Graph& graph) {
  double sum = 0;
  for (const ir::Node* node : graph.nodes()) sum += workOf(*node);
  return sum;
}

}  // namespace carina::aten
