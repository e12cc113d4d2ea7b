// SPDX-License-Identifier: Apache-2.0
// The executor around the kernels: observers, freeing, writing in place, constants, diagnostics; and
// functional form.
#include "aten/executor.hpp"

#include "aten/one_op.hpp"
#include "decompose/functionalize.hpp"

namespace carina::aten::test {
namespace {

const ir::Type kVector{DType::Float32, {4}};
const Tensor kInput = floats({-2, -1, 1, 2});

ir::Value* unary(ir::Builder& builder, const ir::OpDef& def, ir::Value* value) {
  ir::NodeSpec spec;
  spec.def = &def;
  spec.operands = {{value}};
  return builder.create(std::move(spec))->result();
}

TEST(AtenExecutor, WritesInPlaceOnlyWhatNobodyNeeds) {
  ir::Graph graph;
  ir::Value* x = graph.addInput(kVector, "x");
  ir::Builder builder(graph);
  ir::Value* negative = unary(builder, Neg::def(), x);
  ir::Value* positive = unary(builder, Relu::def(), negative);  // negative is used again below
  ir::Value* again = AddTensor::create(builder, negative, positive, int64_t{1}).output();
  ir::Value* last = unary(builder, Abs::def(), again);
  graph.setOutputs({last, x});
  auto outputs = execute(graph, std::vector<Tensor>{kInput});
  ASSERT_TRUE(outputs.ok()) << outputs.error().str();
  EXPECT_EQ(values<float>((*outputs)[0]), (std::vector<float>{4, 2, 1, 2}));
  EXPECT_EQ(values<float>((*outputs)[1]), values<float>(kInput));
}

TEST(AtenExecutor, ObserverSeesEveryValueAndMayKeepIt) {
  ir::Graph graph;
  ir::Value* x = graph.addInput(kVector, "x");
  ir::Builder builder(graph);
  ir::Value* a = unary(builder, Relu::def(), x);
  ir::Value* b = unary(builder, Neg::def(), a);
  graph.setOutputs({b});
  auto executor = Executor::create(graph);
  ASSERT_TRUE(executor.ok());
  std::vector<std::pair<const ir::Value*, Tensor>> seen;
  auto outputs =
      executor->run(std::vector<Tensor>{kInput},
                    [&](const ir::Value& value, const Tensor& tensor) { seen.emplace_back(&value, tensor); });
  ASSERT_TRUE(outputs.ok());
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0].first, x);
  EXPECT_EQ(seen[1].first, a);
  EXPECT_EQ(values<float>(seen[1].second), (std::vector<float>{0, 0, 1, 2}));
  EXPECT_EQ(values<float>(seen[2].second), (std::vector<float>{-0.0f, -0.0f, -1, -2}));
}

TEST(AtenExecutor, ConstantsAreFoldedAndStillObserved) {
  ir::Graph graph;
  ir::Value* x = graph.addInput(kVector, "x");
  ir::Builder builder(graph);
  ir::Value* constant = unary(builder, Neg::def(), builder.constant(kInput));
  graph.setOutputs({AddTensor::create(builder, x, constant, int64_t{1}).output()});
  auto executor = Executor::create(graph);
  ASSERT_TRUE(executor.ok());
  for (int i = 0; i < 2; ++i) {
    size_t seen = 0;
    auto outputs = executor->run(std::vector<Tensor>{kInput},
                                 [&](const ir::Value& value, const Tensor&) { seen += &value == constant; });
    ASSERT_TRUE(outputs.ok());
    EXPECT_EQ(values<float>(outputs->front()), (std::vector<float>{0, 0, 0, 0}));
    EXPECT_EQ(seen, 1u);
  }
}

TEST(AtenExecutor, WhatGrowsIsComputedWhereItIsRead) {
  ir::Graph graph;
  ir::Value* x = graph.addInput(kVector, "x");
  ir::Builder builder(graph);
  const auto weights = [&](int8_t first) {
    const std::vector<int8_t> codes{first, 1, 2, 3};
    return DequantizePerTensor::create(builder, builder.constant(Tensor::from(Shape{4}, codes)), 0.5,
                                       int64_t{0}, int64_t{-128}, int64_t{127}, DType::Int8, std::nullopt)
        .output();
  };
  ir::Value *a = weights(4), *b = weights(-4), *c = unary(builder, Neg::def(), b);  // of what grows
  ir::Value* small = unary(builder, Neg::def(), builder.constant(kInput));          // does not grow
  ir::Value* first = AddTensor::create(builder, x, a, int64_t{1}).output();
  ir::Value* second = AddTensor::create(builder, first, small, int64_t{1}).output();
  ir::Value* third = AddTensor::create(builder, second, c, int64_t{1}).output();
  ir::Value* unread = weights(8);
  graph.setOutputs({third, b, unread});
  const auto orderOf = [&](Folding folding, std::vector<std::vector<float>>& outputs) {
    const auto executor = Executor::create(graph, folding);
    std::vector<const ir::Value*> order;
    for (int run = 0; run < 2; ++run) {
      order.clear();
      const auto given =
          executor->run(std::vector<Tensor>{kInput},
                        [&](const ir::Value& value, const Tensor&) { order.push_back(&value); });
      outputs.clear();
      for (const Tensor& output : *given) outputs.push_back(values<float>(output));
    }
    return order;
  };
  std::vector<std::vector<float>> folded, late;
  EXPECT_EQ(orderOf(Folding::All, folded),
            (std::vector<const ir::Value*>{x, a, b, c, small, first, second, third, unread}));
  EXPECT_EQ(orderOf(Folding::NothingThatGrows, late),
            (std::vector<const ir::Value*>{x, small, a, first, second, b, c, third, unread}));
  EXPECT_EQ(folded, late);
}

/// relu(-x) + |-x|, where values may stand for the relu and the |.|.
struct Rerun : testing::Test {
  ir::Graph graph;
  ir::Value* x = graph.addInput(kVector, "x");
  ir::Builder builder{graph};
  ir::Value* negative = unary(builder, Neg::def(), x);
  ir::Value* positive = unary(builder, Relu::def(), negative);
  ir::Value* magnitude = unary(builder, Abs::def(), negative);
  ir::Value* sum = AddTensor::create(builder, positive, magnitude, int64_t{1}).output();

  std::vector<float> rerun(const StandIns& before, const StandIns& now) {
    graph.setOutputs({sum});
    const auto executor = Executor::create(graph);
    const auto kept = executor->keepRun(std::vector<Tensor>{kInput}, before);
    EXPECT_TRUE(kept.ok()) << kept.error().str();
    const auto outputs = executor->rerun(*kept, now);
    EXPECT_TRUE(outputs.ok()) << outputs.error().str();
    return values<float>(outputs->front());
  }
};

TEST_F(Rerun, StandInsTakeThePlaceOfResults) {
  const StandIns none, one{{positive->producer(), negative}},
      both{{positive->producer(), negative}, {magnitude->producer(), x}};
  const std::vector<float> plain{4, 2, 1, 2}, raw{4, 2, 0, 0}, other{0, 0, 0, 0};
  for (const StandIns& before : {none, one, both}) {
    EXPECT_EQ(rerun(before, none), plain);
    EXPECT_EQ(rerun(before, one), raw);
    EXPECT_EQ(rerun(before, both), other);
  }
}

TEST_F(Rerun, StandInsForWhatWasFolded) {
  ir::Value* constant = builder.constant(floats({1, 2, 3, 4}));
  ir::Value* folded = unary(builder, Neg::def(), constant);
  sum = AddTensor::create(builder, sum, unary(builder, Neg::def(), folded), int64_t{1}).output();
  const StandIns none, instead{{folded->producer(), constant}};
  EXPECT_EQ(rerun(none, none), (std::vector<float>{5, 4, 4, 6}));
  EXPECT_EQ(rerun(none, instead), (std::vector<float>{3, 0, -2, -2}));
  EXPECT_EQ(rerun(instead, none), (std::vector<float>{5, 4, 4, 6}));
}

TEST(AtenExecutor, WrongInputsAreRefused) {
  ir::Graph graph;
  graph.setOutputs({graph.addInput(kVector, "x")});
  EXPECT_FALSE(execute(graph, {}).ok());
  EXPECT_FALSE(execute(graph, std::vector<Tensor>{floats({1})}).ok());
  EXPECT_FALSE(execute(graph, std::vector<Tensor>{longs({1, 2, 3, 4})}).ok());
}

TEST(AtenExecutor, NamesEveryNodeItCannotRun) {
  ir::Graph graph;
  ir::Value* x = graph.addInput(kVector, "x");
  for (const char* name : {"first", "second"}) {
    ir::NodeSpec spec;
    spec.def = findOperator("aten.nonzero.default");
    spec.operands = {{x}};
    spec.types = {{DType::Int64, {4, 1}}};
    spec.location = std::make_shared<ir::Location>(ir::Location{name, "net.layer", ""});
    ASSERT_TRUE(graph.create(std::move(spec)).ok());
  }
  auto executor = Executor::create(graph);
  ASSERT_FALSE(executor.ok());
  const auto& diagnostics = executor.error().diagnostics();
  ASSERT_EQ(diagnostics.size(), 2u);
  EXPECT_NE(diagnostics[0].message.find("aten.nonzero.default"), std::string::npos);
  EXPECT_NE(diagnostics[1].place.find("second"), std::string::npos);
  EXPECT_NE(diagnostics[1].place.find("net.layer"), std::string::npos);
  EXPECT_FALSE(diagnostics[0].remedy.empty());
}

TEST(AtenFunctionalize, LaterUsesSeeTheWrite) {
  ir::Graph graph;
  ir::Value* x = graph.addInput(kVector, "x");
  ir::Builder builder(graph);
  ir::Value* fresh = unary(builder, Neg::def(), x);
  unary(builder, ReluInplace::def(), fresh);
  graph.setOutputs({fresh});
  ASSERT_TRUE(decompose::functionalize(graph).ok());
  ASSERT_TRUE(ir::verify(graph).ok());
  auto outputs = execute(graph, std::vector<Tensor>{kInput});
  ASSERT_TRUE(outputs.ok()) << outputs.error().str();
  EXPECT_EQ(values<float>(outputs->front()), (std::vector<float>{2, 1, 0, 0}));
}

/// y = x.clone(); y.view(2, 2)[:, 0].fill_(9) changes y, and a view of y taken before sees it.
TEST(AtenFunctionalize, WritesThroughViewsReachTheBaseAndOtherViews) {
  ir::Graph graph;
  ir::Value* x = graph.addInput(kVector, "x");
  ir::Builder builder(graph);
  ir::Value* y = unary(builder, Neg::def(), x);
  ir::Value* other = SliceTensor::create(builder, y, 0, 2, 4, 1).output();
  ir::Value* square = View::create(builder, y, {2, 2}).output();
  ir::Value* turned = TransposeInt::create(builder, square, 0, 1).output();
  ir::Value* row = SelectInt::create(builder, turned, 0, 0).output();
  FillScalarInplace::create(builder, row, 9.0);
  graph.setOutputs({y, other});
  ASSERT_TRUE(decompose::functionalize(graph).ok());
  auto verified = ir::verify(graph);
  ASSERT_TRUE(verified.ok()) << verified.error().str();
  for (const ir::Node* node : graph.nodes()) EXPECT_FALSE(node->def().has(ir::kInPlace));
  auto outputs = execute(graph, std::vector<Tensor>{kInput});
  ASSERT_TRUE(outputs.ok()) << outputs.error().str();
  EXPECT_EQ(values<float>((*outputs)[0]), (std::vector<float>{9, 1, 9, -2}));
  EXPECT_EQ(values<float>((*outputs)[1]), (std::vector<float>{9, -2}));
}

TEST(AtenFunctionalize, RefusesWritesThroughExpand) {
  ir::Graph graph;
  ir::Value* x = graph.addInput({DType::Float32, {1}}, "x");
  ir::Builder builder(graph);
  ir::Value* wide = Expand::create(builder, unary(builder, Neg::def(), x), {4}, false).output();
  graph.setOutputs({unary(builder, ReluInplace::def(), wide)});
  EXPECT_FALSE(decompose::functionalize(graph).ok());
}

}  // namespace
}  // namespace carina::aten::test
