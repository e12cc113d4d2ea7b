// SPDX-License-Identifier: Apache-2.0
#include "decompose/empty_tensors.hpp"

#include <algorithm>

#include "aten/ops.hpp"

namespace carina::decompose {

using namespace aten;
namespace {

constexpr size_t kMostErrors = 20;

bool isEmpty(const ir::Value* value) {
  return value && value->numElements() == 0;
}

bool hasEmptyOperand(const ir::Node& node) {
  return std::any_of(node.operands().begin(), node.operands().end(), isEmpty);
}

bool hasEmptyResult(const ir::Node& node) {
  return std::any_of(node.results().begin(), node.results().end(), isEmpty);
}

/// Concatenates only the non-empty operands; false if that does not give the same result.
Result<bool> joinOthers(ir::Node* node) {
  ir::NodeSpec spec;
  spec.def = &node->def();
  spec.location = node->location();
  auto& parts = spec.operands.emplace_back();
  for (ir::Value* part : node->operands()) {
    if (!isEmpty(part)) parts.push_back(part);
  }
  for (size_t i = 0; i < node->def().attributes.size(); ++i) spec.attributes.push_back(node->attribute(i));
  CARINA_TRY(ir::Node * joined, node->graph().create(std::move(spec), node));
  if (joined->result()->type != node->result()->type) return false;  // an empty part had a wider type
  joined->result()->name = std::move(node->result()->name);
  node->graph().replaceAllUses(node->result(), joined->result());
  return true;
}

/// The result of an operator that sums, multiplies or tests its elements if there are none; nothing for
/// others.
std::optional<int64_t> emptyReductionResult(const ir::Node& node) {
  switch (opId(&node)) {
    case OpId::Sum:
    case OpId::SumDimIntList:
    case OpId::Nansum:
    case OpId::CountNonzero:
    case OpId::CountNonzeroDimIntList:
    case OpId::Any:
    case OpId::AnyDim:
    case OpId::AnyDims:
    case OpId::Mm:
    case OpId::Bmm:
    case OpId::Mv:
    case OpId::Dot:
    case OpId::Matmul:
      return 0;
    case OpId::Prod:
    case OpId::ProdDimInt:
    case OpId::All:
    case OpId::AllDim:
    case OpId::AllDims:
      return 1;
    default:
      return std::nullopt;
  }
}

ir::Value* filled(ir::Graph& graph, const ir::Type& type, int64_t value) {
  return graph.addConstant(convert(
      Tensor::from(type.shape, std::vector<int64_t>(static_cast<size_t>(numElements(type.shape)), value)),
      type.dtype));
}

/// Whether an operator writes elements of others into its first operand: if there are none, that is its
/// result.
bool writesElements(const ir::Node& node) {
  switch (opId(&node)) {
    case OpId::SliceScatter:
    case OpId::IndexPut:
    case OpId::IndexAdd:
    case OpId::IndexCopy:
    case OpId::IndexFillIntScalar:
    case OpId::IndexFillIntTensor:
    case OpId::ScatterAdd:
    case OpId::ScatterReduceTwo:
    case OpId::ScatterSrc:
    case OpId::ScatterValue:
      return true;
    default:
      return false;
  }
}

/// Eliminates the empty operands of a node whose results have elements; false if that is not possible.
Result<bool> settle(ir::Node* node) {
  if (!isOperator(node)) return false;
  ir::Graph& graph = node->graph();
  switch (opId(node)) {
    case OpId::Cat:
      return joinOthers(node);
    case OpId::Linear: {  // over no features: the bias remains
      ir::Value* bias = ir::cast<Linear>(node).bias();
      if (isEmpty(bias)) return false;
      ir::Value* result = bias ? Expand::create(ir::Builder::beforeNode(node), bias, node->result()->shape())
                               : filled(graph, node->result()->type, 0);
      graph.replaceAllUses(node->result(), result);
      return true;
    }
    default:
      break;
  }
  if (writesElements(*node) && node->operand(0)->type == node->result()->type) {
    graph.replaceAllUses(node->result(), node->operand(0));
    return true;
  }
  const auto value = emptyReductionResult(*node);
  if (!value || node->results().size() != 1) return false;
  graph.replaceAllUses(node->result(), filled(graph, node->result()->type, *value));
  return true;
}

Diagnostic refusal(std::string place, std::string message) {
  return {std::move(message), "export the network with sizes of at least 1, or remove the operator", "",
          std::move(place), Code::UnsupportedForm};
}

}  // namespace

Status removeEmptyTensors(ir::Graph& graph) {
  std::vector<Diagnostic> problems;
  for (const ir::Value* input : graph.inputs()) {
    if (!isEmpty(input)) continue;
    problems.push_back(refusal("input " + input->name, fmt::format("a tensor of shape {} has no elements",
                                                                   shapeText(input->shape()))));
  }
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const ir::Value* output = graph.outputs()[i];
    if (!isEmpty(output)) continue;
    const std::string place = output->producer() ? output->producer()->where() : fmt::format("output {}", i);
    problems.push_back(refusal(place, fmt::format("the network's result {} of shape {} has no elements", i,
                                                  shapeText(output->shape()))));
  }
  if (!problems.empty()) return Error(std::move(problems));

  bool found = false;
  for (ir::Node* node : graph.nodes()) {
    if (!hasEmptyOperand(*node) && !hasEmptyResult(*node)) continue;
    found = true;
    const auto& results = node->results();
    if (results.empty()) {  // an assertion about an empty tensor
      graph.erase(node);
      continue;
    }
    if (std::all_of(results.begin(), results.end(),
                    [](const ir::Value* v) { return isEmpty(v) || v->unused(); }))
      continue;                             // dead at the end
    if (!hasEmptyOperand(*node)) continue;  // one of several results; its users have an empty operand
    CARINA_TRY(const bool settled, settle(node));
    if (!settled) {
      problems.push_back(
          refusal(node->where(), fmt::format("{} has an operand without elements", node->opName())));
    }
    if (problems.size() >= kMostErrors) break;
  }
  if (!problems.empty()) return Error(std::move(problems));
  if (found) graph.eraseDeadNodes();
  return {};
}

}  // namespace carina::decompose
