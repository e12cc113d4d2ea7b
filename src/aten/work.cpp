// SPDX-License-Identifier: Apache-2.0
#include "aten/work.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "aten/control_flow.hpp"
#include "aten/operator_facts.hpp"

namespace carina::aten {
namespace {

// Steps of the executor's kernels, measured on one core of a 2020s x86 machine and rounded up.
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

bool isAny(std::string_view name, std::initializer_list<std::string_view> beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view beginning) { return name.starts_with(beginning); });
}

/// Members of lists count each; null: absent.
const ir::Value* operandOf(const ir::Node& node, size_t i) {
  return i < node.operands().size() ? node.operands()[i] : nullptr;
}

double lastSize(const ir::Node& node, size_t operand) {
  if (operandOf(node, operand) == nullptr) return 1;
  const Shape& shape = operandOf(node, operand)->shape();
  return shape.empty() ? 1 : static_cast<double>(shape.back());
}

/// Weights are [out, in / groups, taps...]; of transposed convolutions, whose weights begin with the channels
/// of the input, every input is multiplied.
double convolution(const ir::Node& node, double out) {
  const ir::Value* weight = operandOf(node, 1);
  if (weight == nullptr || weight->shape().empty()) return 0;
  const double each = elementsOf(weight) / std::max(static_cast<double>(weight->shape()[0]), 1.0);
  const double products = std::max(out, elementsOf(operandOf(node, 0))) * each;
  return products * (weight->shape().size() > 1 && weight->shape()[1] == 1 ? kDepthwise : kProduct);
}

/// Weights once for each step of each sequence.
double recurrence(const ir::Node& node, double in) {
  const double steps = elementsOf(operandOf(node, 0)) / std::max(lastSize(node, 0), 1.0);
  return steps * (in - elementsOf(operandOf(node, 0)));
}

/// Attributes that are sizes of windows.
double taps(const ir::Node& node) {
  const int index = node.def().attributeIndex("kernel_size");
  if (index < 0) return 1;
  const auto* sizes = std::get_if<ir::Ints>(&node.attribute(static_cast<size_t>(index)));
  double product = 1;
  for (const int64_t size : sizes ? *sizes : ir::Ints())
    product *= static_cast<double>(std::max<int64_t>(size, 1));
  // One size may stand for both sides.
  return sizes && sizes->size() == 1 ? product * product : product;
}

/// Beyond what every element costs.
double products(const ir::Node& node, double in, double out) {
  const std::string_view name = node.opName();
  if (isAny(name, {"aten.conv", "aten.conv_transpose"})) return convolution(node, out);
  if (isAny(name, {"aten.linear", "aten.mm", "aten.bmm", "aten.matmul", "aten.mv", "aten.dot", "aten._cdist",
                   "aten.cdist", "aten.pdist", "aten._pdist"}))
    return out * lastSize(node, 0) * kProduct;
  if (isAny(name, {"aten.addmm", "aten.baddbmm", "aten.addmv", "aten.addbmm"}))
    return out * lastSize(node, 1) * kProduct * (name.starts_with("aten.addbmm") ? in : 1);
  if (isAny(name, {"aten.scaled_dot_product_attention"})) {
    const ir::Value* keys = operandOf(node, 1);
    const bool known = keys != nullptr && keys->shape().size() >= 2;
    const double length = known ? static_cast<double>(keys->shape()[keys->shape().size() - 2]) : 1;
    return out * length * (2 * kProduct + kFunction / std::max(lastSize(node, 0), 1.0));
  }
  if (isAny(name, {"aten.einsum"})) {
    // Every size of every operand at most once in the sum.
    double sizes = out;
    for (const ir::Value* operand : node.operands()) sizes = std::max(sizes, elementsOf(operand));
    return sizes * std::max(lastSize(node, 0), lastSize(node, 1));
  }
  if (isAny(name, {"aten.lstm", "aten.gru", "aten.rnn"})) return recurrence(node, in);
  if (name.find("pool") != std::string_view::npos) return std::max(out * taps(node), in) * kTap;
  if (isAny(name, {"aten.sort", "aten.argsort", "aten.topk", "aten.median", "aten.kthvalue",
                   "aten.searchsorted", "aten.bucketize"}))
    return (in + out) * kSorted;
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
  const double each = factsOf(node).cost == CostClass::Function ? kFunction : kElement;
  return kNode + out * each + in + products(node, in, out);
}

double workOf(const ir::Graph& graph) {
  double sum = 0;
  for (const ir::Node* node : graph.nodes()) sum += workOf(*node);
  return sum;
}

}  // namespace carina::aten
