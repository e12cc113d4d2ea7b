// SPDX-License-Identifier: Apache-2.0
#include "tfl/shape_values.hpp"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "tfl/geometry.hpp"
#include "tfl/ops.hpp"

namespace carina::tfl {
namespace {

constexpr int64_t kMaxElements = 64;

bool isList(const ir::Value& value) {
  const bool whole = value.dtype() == DType::Int32 || value.dtype() == DType::Int64;
  return whole && !value.quantization && value.rank() <= 1 && value.numElements() <= kMaxElements;
}

using Lists = std::vector<ir::Ints>;
/// The result computed from the operands, all of them lists; nothing if there is none.
using Evaluate = std::optional<ir::Ints> (*)(const ir::Node& node, const Lists& operands);

std::optional<ir::Ints> first(const ir::Node&, const Lists& operands) {
  return operands[0];
}

/// Concatenates the operands.
std::optional<ir::Ints> joined(const ir::Node&, const Lists& operands) {
  ir::Ints all;
  for (const ir::Ints& one : operands) all.insert(all.end(), one.begin(), one.end());
  return all;
}

std::optional<ir::Ints> gathered(const ir::Node&, const Lists& operands) {
  ir::Ints picked;
  const auto size = static_cast<int64_t>(operands[0].size());
  for (const int64_t index : operands[1]) {
    if (index < 0 || index >= size) return std::nullopt;
    picked.push_back(operands[0][static_cast<size_t>(index)]);
  }
  return picked;
}

std::optional<ir::Ints> strided(const ir::Node& node, const Lists& operands) {
  const auto ranges = stridedRanges(ir::cast<StridedSlice>(&node));
  if (!ranges || ranges->ranges.size() != 1) return std::nullopt;
  const Range& range = ranges->ranges.front();
  ir::Ints picked;
  for (int64_t i = 0; i < range.count; ++i)
    picked.push_back(operands[0][static_cast<size_t>(range.start + i * range.step)]);
  return picked;
}

template <typename Compute>
std::optional<ir::Ints> pairwise(const Lists& operands, const Compute& compute) {
  const ir::Ints &a = operands[0], &b = operands[1];
  const size_t count = std::max(a.size(), b.size());
  if (a.empty() || b.empty() || (a.size() != count && a.size() != 1) || (b.size() != count && b.size() != 1))
    return std::nullopt;
  ir::Ints results;
  for (size_t i = 0; i < count; ++i) results.push_back(compute(a[i % a.size()], b[i % b.size()]));
  return results;
}

bool isActivated(const ir::Node& node) {
  return static_cast<Activation>(node.attributeAs<int64_t>(0)) != Activation::NONE;
}

// Elements have 32 bits (constantInts): none of these overflows.
std::optional<ir::Ints> sum(const ir::Node& node, const Lists& operands) {
  if (isActivated(node)) return std::nullopt;
  return pairwise(operands, [](int64_t a, int64_t b) { return a + b; });
}
std::optional<ir::Ints> difference(const ir::Node& node, const Lists& operands) {
  if (isActivated(node)) return std::nullopt;
  return pairwise(operands, [](int64_t a, int64_t b) { return a - b; });
}
std::optional<ir::Ints> product(const ir::Node& node, const Lists& operands) {
  if (isActivated(node)) return std::nullopt;
  return pairwise(operands, [](int64_t a, int64_t b) { return a * b; });
}
std::optional<ir::Ints> larger(const ir::Node&, const Lists& operands) {
  return pairwise(operands, [](int64_t a, int64_t b) { return std::max(a, b); });
}
std::optional<ir::Ints> smaller(const ir::Node&, const Lists& operands) {
  return pairwise(operands, [](int64_t a, int64_t b) { return std::min(a, b); });
}

const std::unordered_map<const ir::OpDef*, Evaluate>& evaluators() {
  static const std::unordered_map<const ir::OpDef*, Evaluate> kEvaluators = {
      {&Reshape::def(), first},   {&Squeeze::def(), first},        {&ExpandDims::def(), first},
      {&Cast::def(), first},      {&Pack::def(), joined},          {&Concatenation::def(), joined},
      {&Gather::def(), gathered}, {&StridedSlice::def(), strided}, {&Add::def(), sum},
      {&Sub::def(), difference},  {&Mul::def(), product},          {&Maximum::def(), larger},
      {&Minimum::def(), smaller},
  };
  return kEvaluators;
}

std::optional<ir::Ints> evaluate(const ir::Node& node) {
  if (ir::isa<ShapeOf>(&node)) return ir::Ints(node.operand(0)->shape());
  const auto evaluator = evaluators().find(&node.def());
  if (evaluator == evaluators().end()) return std::nullopt;
  Lists operands;
  for (const ir::Value* operand : node.operands()) {
    if (!operand || !operand->isConstant() || !isList(*operand)) return std::nullopt;
    auto values = constantInts(operand, "elements");
    if (!values) return std::nullopt;
    operands.push_back(std::move(*values));
  }
  return evaluator->second(node, operands);
}

}  // namespace

std::optional<Tensor> shapeValue(const ir::Node& node) {
  if (node.results().size() != 1 || !isList(*node.result())) return std::nullopt;
  const auto values = evaluate(node);
  const ir::Value& result = *node.result();
  if (!values || static_cast<int64_t>(values->size()) != result.numElements()) return std::nullopt;
  if (result.dtype() == DType::Int64) return Tensor::from(result.shape(), *values);
  std::vector<int32_t> narrow;
  for (const int64_t value : *values) {
    if (value != static_cast<int32_t>(value)) return std::nullopt;
    narrow.push_back(static_cast<int32_t>(value));
  }
  return Tensor::from(result.shape(), narrow);
}

}  // namespace carina::tfl
