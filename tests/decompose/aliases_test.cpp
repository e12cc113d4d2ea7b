// SPDX-License-Identifier: Apache-2.0
#include "decompose/aliases.hpp"

#include <gtest/gtest.h>

#include "aten/ops.hpp"

namespace carina::decompose {

using namespace aten;
namespace {

ir::Node* create(ir::Graph& graph, const char* name, std::vector<std::vector<ir::Value*>> operands,
                 std::vector<ir::Attribute> attributes, ir::Type type) {
  ir::NodeSpec spec;
  spec.def = findOperator(name);
  spec.operands = std::move(operands);
  spec.attributes = std::move(attributes);
  spec.types = {std::move(type)};
  auto node = graph.create(std::move(spec));
  return node.ok() ? *node : nullptr;
}

TEST(Aliases, BecomeTheOperatorThatHasARow) {
  ir::Graph graph;
  ir::Value* x = graph.addInput({DType::Float32, {2, 6}}, "x");
  ir::Node* moved =
      create(graph, "aten.moveaxis.int", {{x}}, {int64_t{0}, int64_t{1}}, {DType::Float32, {6, 2}});
  ASSERT_TRUE(moved);
  ir::Node* product = create(graph, "aten.multiply.Tensor", {{moved->result()}, {moved->result()}}, {},
                             {DType::Float32, {6, 2}});
  ASSERT_TRUE(product);
  ir::Node* part = create(graph, "aten.slice_copy.Tensor", {{product->result()}},
                          {int64_t{0}, int64_t{1}, int64_t{5}, int64_t{2}}, {DType::Float32, {2, 2}});
  ASSERT_TRUE(part);
  part->result()->name = "part";
  graph.setOutputs({part->result()});
  ASSERT_TRUE(replaceAliases(graph, Copies::Replace).ok());
  std::vector<std::string> names;
  for (const ir::Node* node : graph.nodes()) names.emplace_back(node->opName());
  EXPECT_EQ(names, (std::vector<std::string>{"aten.movedim.int", "aten.mul.Tensor", "aten.slice.Tensor"}));
  EXPECT_EQ(graph.outputs()[0]->name, "part");
  EXPECT_EQ(graph.outputs()[0]->shape(), (Shape{2, 2}));
}

TEST(Aliases, OperatorsWithTheirOwnRowStay) {
  ir::Graph graph;
  ir::Value* x = graph.addInput({DType::Float32, {2}}, "x");
  ir::Builder builder(graph);
  graph.setOutputs({PrivateToCopy::create(builder, x, DType::Int32, {}, {}, {}, false, {}).output()});
  ASSERT_TRUE(replaceAliases(graph, Copies::Replace).ok());
  EXPECT_TRUE(ir::isa<PrivateToCopy>(graph.outputs()[0]->producer()));
}

TEST(Aliases, CopiesOfViewsStayWhileTensorsAreWritten) {
  ir::Graph graph;
  ir::Value* x = graph.addInput({DType::Float32, {4}}, "x");
  ir::Node* view =
      create(graph, "aten.swapdims.default", {{x}}, {int64_t{0}, int64_t{0}}, {DType::Float32, {4}});
  ASSERT_TRUE(view);
  ir::Node* copy = create(graph, "aten.unsqueeze_copy.default", {{view->result()}}, {int64_t{0}},
                          {DType::Float32, {1, 4}});
  ASSERT_TRUE(copy);
  graph.setOutputs({copy->result()});
  ASSERT_TRUE(replaceAliases(graph, Copies::Keep).ok());
  const ir::Node* last = graph.outputs()[0]->producer();
  EXPECT_EQ(last->opName(), "aten.unsqueeze_copy.default");
  EXPECT_EQ(last->operands()[0]->producer()->opName(), "aten.transpose.int");
  ASSERT_TRUE(replaceAliases(graph, Copies::Replace).ok());
  EXPECT_EQ(graph.outputs()[0]->producer()->opName(), "aten.unsqueeze.default");
}

}  // namespace
}  // namespace carina::decompose
