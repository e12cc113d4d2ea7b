// SPDX-License-Identifier: Apache-2.0
// Graphs of one operator, with attributes as text.
#pragma once

#include <gtest/gtest.h>

#include "aten/executor.hpp"
#include "aten/ops.hpp"
#include "ir/verifier.hpp"

namespace carina::aten::test {

using Attributes = std::vector<std::pair<std::string, std::string>>;
/// Operand groups in table order; an empty group is an absent optional operand.
using Groups = std::vector<std::vector<std::optional<Tensor>>>;

/// A graph of the operator with its operands as inputs; attributes that are not named take their defaults.
inline Result<ir::Graph> oneOp(const std::string& op, const Groups& groups, const Attributes& attributes) {
  const ir::OpDef* def = findOperator(op);
  if (!def) return fail(Code::UnknownOperator, "no operator {}", op);
  ir::Graph graph;
  ir::NodeSpec spec;
  spec.def = def;
  for (const auto& group : groups) {
    auto& operands = spec.operands.emplace_back();
    for (const auto& tensor : group)
      operands.push_back(tensor ? graph.addInput({tensor->dtype(), tensor->shape()}) : nullptr);
  }
  spec.operands.resize(def->operands.size());
  for (const ir::AttributeDef& attribute : def->attributes) {
    std::string text(attribute.defaultText);
    for (const auto& [name, value] : attributes) {
      if (name == attribute.name) text = value;
    }
    if (text.empty() && attribute.optional) text = "None";
    CARINA_TRY(ir::Attribute value, ir::parseAttribute(attribute, text));
    spec.attributes.push_back(std::move(value));
  }
  CARINA_TRY(ir::Node* const node, graph.create(std::move(spec)));
  graph.setOutputs(node->results());
  CARINA_RETURN_IF_ERROR(ir::verify(graph));
  return graph;
}

inline Result<std::vector<Tensor>> runGroups(const std::string& op, const Groups& groups,
                                             const Attributes& attributes = {}) {
  CARINA_TRY(const ir::Graph graph, oneOp(op, groups, attributes));
  std::vector<Tensor> inputs;
  for (const auto& group : groups) {
    for (const auto& tensor : group) {
      if (tensor) inputs.push_back(*tensor);
    }
  }
  return execute(graph, inputs);
}

/// One operand per group; fails the test if the operator fails.
inline Tensor run(const std::string& op, const std::vector<Tensor>& operands,
                  const Attributes& attributes = {}) {
  Groups groups;
  for (const Tensor& operand : operands) groups.push_back({operand});
  auto outputs = runGroups(op, groups, attributes);
  EXPECT_TRUE(outputs.ok()) << op << ": " << (outputs.ok() ? "" : outputs.error().str());
  return outputs.ok() && !outputs->empty() ? outputs->front() : Tensor();
}

template <typename T>
std::vector<T> values(const Tensor& tensor) {
  const auto span = tensor.as<T>();
  return {span.begin(), span.end()};
}
inline Tensor floats(const std::vector<float>& list) {
  const auto n = static_cast<int64_t>(list.size());
  return Tensor::from<float>({n}, list);
}
inline Tensor longs(const std::vector<int64_t>& list) {
  const auto n = static_cast<int64_t>(list.size());
  return Tensor::from<int64_t>({n}, list);
}

}  // namespace carina::aten::test
