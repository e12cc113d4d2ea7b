// SPDX-License-Identifier: Apache-2.0
#include "quantize/wide_integers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "aten/control_flow.hpp"
#include "aten/executor.hpp"
#include "aten/operator_facts.hpp"
#include "aten/ops.hpp"
#include "quantize/annotate.hpp"

namespace carina::quantize {
namespace {

using aten::OpId;

constexpr double kInt32Low = -0x1p31, kInt32High = 0x1p31 - 1;

bool isWideInteger(int64_t number) {
  return number < integerMin(DType::Int32) || number > integerMax(DType::Int32);
}

/// A closed interval that contains the elements of a tensor.
struct Bounds {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();

  double magnitude() const { return std::max(std::abs(low), std::abs(high)); }
  bool fitsInt32() const { return low >= kInt32Low && high <= kInt32High; }
  static Bounds around(std::initializer_list<double> numbers) {
    const Bounds bounds{std::min(numbers), std::max(numbers)};
    return std::isnan(bounds.low) || std::isnan(bounds.high) ? Bounds() : bounds;  // 0 * infinity
  }
};

Bounds operator|(const Bounds& a, const Bounds& b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}
Bounds operator*(const Bounds& a, const Bounds& b) {
  if (std::isinf(a.magnitude()) || std::isinf(b.magnitude())) return {};
  return Bounds::around({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
}
Bounds operator+(const Bounds& a, const Bounds& b) {
  return {a.low + b.low, a.high + b.high};
}
Bounds within(double magnitude) {
  return {-magnitude, magnitude};
}

Bounds boundsOfElements(const Tensor& tensor) {
  if (tensor.numElements() == 0) return {0, 0};
  Bounds bounds{tensor.realAt(0), tensor.realAt(0)};
  for (int64_t i = 1; i < tensor.numElements(); ++i)
    bounds = bounds | Bounds{tensor.realAt(i), tensor.realAt(i)};
  return bounds;
}

Bounds boundsOfType(DType dtype) {
  if (dtype == DType::Bool) return {0, 1};
  if (isInteger(dtype) && dtypeSize(dtype) < 8)
    return {static_cast<double>(integerMin(dtype)), static_cast<double>(integerMax(dtype))};
  return {};
}

/// Bounds of the values of a graph, as far as they follow from the bounds of its inputs.
class KnownBounds {
 public:
  KnownBounds(const ir::Graph& graph, std::span<const Sample> samples) {
    for (size_t i = 0; i < graph.inputs().size(); ++i) {
      const ir::Value* input = graph.inputs()[i];
      if (isFloat(input->dtype()) || samples.empty()) continue;
      Bounds& bounds = known_.emplace(input, boundsOfElements(samples[0][i])).first->second;
      for (const Sample& sample : samples.subspan(1)) bounds = bounds | boundsOfElements(sample[i]);
    }
    for (const ir::Node* node : graph.nodes()) {
      for (const ir::Value* result : node->results()) known_[result] = ofResult(*node, *result);
    }
  }

  Bounds of(const ir::Value* value) {
    const auto [at, isNew] = known_.try_emplace(value);
    if (!isNew) return at->second;
    const bool isRead = value->isConstant() && (isInteger(value->dtype()) || value->numElements() == 1);
    return at->second = isRead ? boundsOfElements(value->constant()) : boundsOfType(value->dtype());
  }

 private:
  /// Results of operators on integers that wrap around have any value.
  Bounds ofResult(const ir::Node& node, const ir::Value& result) {
    const Bounds type = boundsOfType(result.dtype());
    if (result.dtype() == DType::Bool) return type;
    const Bounds computed = ofOperator(node, result);
    return computed.low >= type.low && computed.high <= type.high ? computed : type;
  }

  Bounds operandBounds(const ir::Node& node, size_t i) {
    return i < node.operands().size() && node.operands()[i] ? of(node.operands()[i]) : Bounds();
  }

  Bounds ofOperator(const ir::Node& node, const ir::Value& result) {
    if (!aten::isOperator(&node)) return ofCodes(node);
    const Bounds a = operandBounds(node, 0), b = operandBounds(node, 1);
    const auto alpha = [&] {
      const double factor = ir::scalarReal(node.attribute(0));
      return Bounds{factor, factor};
    };
    switch (aten::opId(&node)) {
      case OpId::AddTensor:
        return a + b * alpha();
      case OpId::SubTensor:
        return a + b * alpha() * Bounds{-1, -1};
      case OpId::MulTensor:
        return a * b;
      case OpId::DivTensorMode:
        return isFloat(result.dtype()) ? Bounds() : within(a.magnitude());
      case OpId::RemainderTensor:
      case OpId::FmodTensor:
        return within(b.magnitude());
      case OpId::BitwiseAndTensor:
      case OpId::BitwiseOrTensor:
      case OpId::BitwiseXorTensor:
        return (a | b).fitsInt32() ? boundsOfType(DType::Int32) : Bounds();
      case OpId::BitwiseNot:
        return Bounds{-a.high, -a.low} + Bounds{-1, -1};
      case OpId::BitwiseRightShiftTensorScalar:
        return a | Bounds{-1, 0};
      case OpId::WhereSelf:
        return b | operandBounds(node, 2);
      case OpId::Argmax:
      case OpId::Argmin:
        return {0, static_cast<double>(node.operands()[0]->numElements())};
      case OpId::Sum:
      case OpId::SumDimIntList:
      case OpId::Cumsum:
        return (a | Bounds{0, 0}) * Bounds{0, static_cast<double>(node.operands()[0]->numElements())};
      case OpId::ToDtype:
      case OpId::ToDtypeLayout:
      case OpId::ToOther:
      case OpId::PrivateToCopy:
      case OpId::TypeAs:
        return a;
      default:
        return ofOther(node, result);
    }
  }

  /// Operators that pass elements on, or a number among their attributes. Results beside the first one are
  /// positions.
  Bounds ofOther(const ir::Node& node, const ir::Value& result) {
    const Bounds a = operandBounds(node, 0);
    if (node.results().size() == 2 && &result == node.result(1) && result.dtype() == DType::Int64 &&
        a.low <= a.high)
      return {0, static_cast<double>(node.operands()[0]->numElements())};
    if (ir::isa<aten::Clamp>(&node) || ir::isa<aten::ClampMin>(&node) || ir::isa<aten::ClampMax>(&node))
      return clamped(node, a);
    if (roleOf(node) != Role::Shared || isClamp(node)) {
      const aten::Interval range = aten::factsOf(node).range;
      return {range.min, range.max};
    }
    Bounds all = a | Bounds{0, 0};
    for (const ir::Value* operand : node.operands()) {
      if (operand) all = all | of(operand);
    }
    for (size_t i = 0; i < node.def().attributes.size(); ++i) {
      if (node.def().attributes[i].kind != ir::AttributeKind::Scalar || isAbsent(node.attribute(i))) continue;
      const double number = ir::scalarReal(node.attribute(i));
      all = all | Bounds{number, number};
    }
    return all;
  }

  static bool isAbsent(const ir::Attribute& attribute) {
    return std::holds_alternative<std::monostate>(attribute);
  }

  static Bounds clamped(const ir::Node& node, Bounds bounds) {
    const bool both = ir::isa<aten::Clamp>(&node);
    const ir::Attribute& first = node.attribute(0);
    const ir::Attribute& second = node.attribute(both ? 1 : 0);
    if (!ir::isa<aten::ClampMax>(&node) && !isAbsent(first)) {
      const double least = ir::scalarReal(first);
      bounds = {std::max(bounds.low, least), std::max(bounds.high, least)};
    }
    if (!ir::isa<aten::ClampMin>(&node) && !isAbsent(second)) {
      const double most = ir::scalarReal(second);
      bounds = {std::min(bounds.low, most), std::min(bounds.high, most)};
    }
    return bounds;
  }

  static Bounds ofCodes(const ir::Node& node) {
    const auto dequantize = ir::dynCast<aten::DequantizePerTensor>(&node);
    if (!dequantize) return {};
    const auto real = [&](int64_t code) {
      return dequantize.scale() * static_cast<double>(code - dequantize.zeroPoint());
    };
    return {real(dequantize.quantMin()), real(dequantize.quantMax())};
  }

  std::unordered_map<const ir::Value*, Bounds> known_;
};

/// Collects the nodes at values that were seen.
class WideNodes {
 public:
  void add(const ir::Value& value, int64_t number) {
    if (value.producer()) nodes_.emplace(value.producer()->where(), number);
    for (const ir::Use& use : value.uses()) nodes_.emplace(use.node->where(), number);
  }
  WideIntegers take() { return std::move(nodes_); }

 private:
  WideIntegers nodes_;
};

std::optional<int64_t> wideElement(const Tensor& tensor) {
  const auto elements = tensor.as<int64_t>();
  const auto found = std::find_if(elements.begin(), elements.end(), isWideInteger);
  return found == elements.end() ? std::nullopt : std::optional(*found);
}

bool computesInt64(const ir::Graph& graph) {
  bool found = false;
  aten::forEachNode(graph, [&](const ir::Node& node) {
    for (const ir::Value* result : node.results()) found = found || result->dtype() == DType::Int64;
  });
  return found;
}

/// Values inside control flow are not bounded here.
bool computesInt64Inside(const ir::Node& node) {
  const auto& regions = node.regions();
  return std::any_of(regions.begin(), regions.end(),
                     [](const auto& region) { return computesInt64(*region); });
}

/// The part of a graph that computes the results of some of its nodes, with all inputs of the graph.
struct Cone {
  ir::Graph graph;
  std::unordered_map<const ir::Value*, const ir::Value*> sources;  // by value of `graph`
};

Result<Cone> coneOf(const ir::Graph& graph, const std::vector<const ir::Node*>& ends) {
  std::unordered_set<const ir::Node*> inside(ends.begin(), ends.end());
  std::vector<const ir::Node*> pending = ends;
  while (!pending.empty()) {
    const ir::Node* node = pending.back();
    pending.pop_back();
    for (const ir::Value* operand : node->operands()) {
      const ir::Node* producer = operand ? operand->producer() : nullptr;
      if (producer && inside.insert(producer).second) pending.push_back(producer);
    }
  }
  Cone cone;
  std::unordered_map<const ir::Value*, ir::Value*> mapping;
  for (const ir::Value* input : graph.inputs())
    mapping[input] = cone.graph.addInput(input->type, input->name);
  for (const ir::Node* node : graph.nodes()) {
    if (inside.count(node) == 0) continue;
    for (const ir::Value* operand : node->operands()) {
      if (operand && operand->isConstant() && mapping.count(operand) == 0)
        mapping[operand] = cone.graph.addConstant(operand->constant(), operand->name);
    }
    CARINA_TRY([[maybe_unused]] ir::Node* const copy, ir::cloneNode(*node, cone.graph, mapping));
  }
  std::vector<ir::Value*> outputs;
  for (const ir::Node* end : ends) {
    for (const ir::Value* result : end->results()) outputs.push_back(mapping.at(result));
  }
  cone.graph.setOutputs(std::move(outputs));
  for (const auto& [source, copy] : mapping) cone.sources.emplace(copy, source);
  return cone;
}

}  // namespace

Result<WideIntegers> wideIntegers(const ir::Graph& graph, std::span<const Sample> samples,
                                  WorkBudget* loops) {
  WideNodes wide;
  if (samples.empty()) return wide.take();
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    if (graph.inputs()[i]->dtype() != DType::Int64) continue;
    for (const Sample& sample : samples) {
      if (const auto number = wideElement(sample[i])) wide.add(*graph.inputs()[i], *number);
    }
  }
  if (!computesInt64(graph)) return wide.take();
  KnownBounds bounds(graph, samples);
  std::vector<const ir::Node*> doubtful;
  for (const ir::Node* node : graph.nodes()) {
    const bool fits =
        std::all_of(node->results().begin(), node->results().end(), [&](const ir::Value* result) {
          return result->dtype() != DType::Int64 || bounds.of(result).fitsInt32();
        });
    if (!fits || computesInt64Inside(*node)) doubtful.push_back(node);
  }
  if (doubtful.empty()) return wide.take();
  CARINA_TRY(const Cone cone, coneOf(graph, doubtful));
  CARINA_TRY(const aten::Executor executor,
             aten::Executor::create(cone.graph, aten::Folding::NothingThatGrows, loops));
  for (const Sample& sample : samples) {
    CARINA_TRY([[maybe_unused]] const auto results,
               executor.run(sample, [&](const ir::Value& value, const Tensor& tensor) {
                 if (value.dtype() != DType::Int64 || value.isConstant()) return;
                 const auto number = wideElement(tensor);
                 if (!number) return;
                 const auto source = cone.sources.find(&value);
                 wide.add(source == cone.sources.end() ? value : *source->second, *number);
               }));
  }
  return wide.take();
}

}  // namespace carina::quantize
