// SPDX-License-Identifier: Apache-2.0
#include "lower/single_precision.hpp"

#include <algorithm>
#include <unordered_set>
#include <variant>

#include "aten/ops.hpp"

namespace carina::lower {
namespace {

bool contains(const std::vector<DType>& types, DType type) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

/// The parameters of dynamic quantization are double in every network.
bool isAlwaysDouble(const ir::Node& node) {
  return ir::isa<aten::ChooseQparamsTensor>(&node) || ir::isa<aten::ChooseQparamsSymmetricTensor>(&node);
}

/// Values that depend on an input of the graph: all others are constants, computed before the program runs.
class Computed {
 public:
  explicit Computed(const ir::Graph& graph) : values_(graph.inputs().begin(), graph.inputs().end()) {}

  /// Whether the results of the next node are. Call it for all nodes, in order.
  bool add(const ir::Node& node) {
    const auto& operands = node.operands();
    const bool computed = std::any_of(operands.begin(), operands.end(),
                                      [&](const ir::Value* value) { return values_.count(value) != 0; });
    if (computed) values_.insert(node.results().begin(), node.results().end());
    return computed;
  }

 private:
  std::unordered_set<const ir::Value*> values_;
};

/// The float types other than float32 that determine the precision of the network: those of inputs and
/// weights, and of results, for which there are no kernels. Scalars do not count, nor do constants that are
/// computed in double.
std::vector<DType> typesOf(const ir::Graph& graph) {
  std::vector<DType> types;
  const auto note = [&](const ir::Value& value) {
    const DType type = value.dtype();
    if (isFloat(type) && type != DType::Float32 && !contains(types, type)) types.push_back(type);
  };
  for (const ir::Value* input : graph.inputs()) note(*input);
  for (const auto& constant : graph.constants()) {
    if (constant->rank() > 0 && !constant->unused()) note(*constant);
  }
  Computed computed(graph);
  for (const ir::Node* node : graph.nodes()) {
    const bool counts = computed.add(*node) && !isAlwaysDouble(*node);
    for (const ir::Value* result : node->results()) {
      if (result->dtype() != DType::Float64 || (counts && !result->unused())) note(*result);
    }
    for (const auto& region : node->regions()) {
      for (const DType type : typesOf(*region)) {
        if (!contains(types, type)) types.push_back(type);
      }
    }
  }
  return types;
}

/// Parameters of dynamic quantization remain double for quantize and dequantize; other readers get single
/// precision.
void convertOtherUses(ir::Value* parameter) {
  const std::vector<ir::Use> uses = parameter->uses();
  for (const ir::Use& use : uses) {
    if (use.node->opName().find("quantize_per") != std::string_view::npos) continue;
    ir::Builder builder = ir::Builder::beforeNode(use.node);
    use.node->setOperand(use.operand, aten::PrivateToCopy::create(builder, parameter, DType::Float32));
  }
}

void convertGraph(ir::Graph& graph, const std::vector<DType>& types) {
  const auto convertType = [&](ir::Value& value) {
    if (contains(types, value.dtype())) value.type.dtype = DType::Float32;
  };
  for (ir::Value* input : graph.inputs()) convertType(*input);
  for (const auto& constant : graph.constants()) {
    if (contains(types, constant->dtype()))
      constant->setConstant(convert(constant->constant(), DType::Float32));
  }
  for (ir::Node* node : graph.nodes()) {
    for (size_t i = 0; i < node->def().attributes.size(); ++i) {
      const auto* type = std::get_if<DType>(&node->attribute(i));
      if (type && contains(types, *type)) node->setAttribute(i, DType::Float32);
    }
    // softmax from half to single precision: its operand is no longer half.
    const int widens = node->def().attributeIndex("half_to_float");
    if (widens >= 0 && contains(types, DType::Float16))
      node->setAttribute(static_cast<size_t>(widens), false);
    if (isAlwaysDouble(*node)) {
      for (ir::Value* result : node->results()) {
        if (contains(types, result->dtype())) convertOtherUses(result);
      }
      continue;
    }
    for (ir::Value* result : node->results()) convertType(*result);
    for (const auto& region : node->regions()) convertGraph(*region, types);
  }
}

}  // namespace

std::vector<DType> toSinglePrecision(ir::Graph& graph) {
  std::vector<DType> types = typesOf(graph);
  if (!types.empty()) convertGraph(graph, types);
  return types;
}

}  // namespace carina::lower
