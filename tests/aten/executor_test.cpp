// SPDX-License-Identifier: Apache-2.0
// The executor around the kernels: observers, freeing values, writing in place, constants, diagnostics; and
// functional form.
#include "aten/executor.hpp"

#include "aten/one_op.hpp"
#include "decompose/functionalize.hpp"
#include "support/graph_maker.hpp"
#include "support/require.hpp"

namespace carina::aten::test {
namespace {

const ir::Type kVector{DType::Float32, {4}};
const Tensor kInput = floats({-2, -1, 1, 2});

struct AtenExecutor : testing::Test, carina::test::GraphMaker {
  ir::Value* x = graph.addInput(kVector, "x");
};
struct AtenFunctionalize : AtenExecutor {};

TEST_F(AtenExecutor, WritesInPlaceOnlyWhereTheOperandIsDead) {
  ir::Value* negative = make<Neg>(x);
  ir::Value* positive = make<Relu>(negative);  // negative is used again below
  ir::Value* again = make<AddTensor>(negative, positive, int64_t{1});
  ir::Value* last = make<Abs>(again);
  graph.setOutputs({last, x});
  auto outputs = require(execute(graph, std::vector<Tensor>{kInput}));
  EXPECT_EQ(values<float>(outputs[0]), (std::vector<float>{4, 2, 1, 2}));
  EXPECT_EQ(values<float>(outputs[1]), values<float>(kInput));
}

TEST_F(AtenExecutor, ObserverSeesEveryValueAndMayKeepIt) {
  ir::Value* positive = make<Relu>(x);
  graph.setOutputs({make<Neg>(positive)});
  auto executor = require(Executor::create(graph));
  std::vector<std::pair<const ir::Value*, Tensor>> seen;
  require(executor.run(std::vector<Tensor>{kInput}, [&](const ir::Value& value, const Tensor& tensor) {
    seen.emplace_back(&value, tensor);
  }));
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0].first, x);
  EXPECT_EQ(seen[1].first, positive);
  EXPECT_EQ(values<float>(seen[1].second), (std::vector<float>{0, 0, 1, 2}));
  EXPECT_EQ(values<float>(seen[2].second), (std::vector<float>{-0.0f, -0.0f, -1, -2}));
}

TEST_F(AtenExecutor, ConstantsAreFoldedAndStillObserved) {
  ir::Value* constant = make<Neg>(b.constant(kInput));
  graph.setOutputs({make<AddTensor>(x, constant, int64_t{1})});
  auto executor = require(Executor::create(graph));
  for (int i = 0; i < 2; ++i) {
    size_t seen = 0;
    auto outputs =
        require(executor.run(std::vector<Tensor>{kInput},
                             [&](const ir::Value& value, const Tensor&) { seen += &value == constant; }));
    EXPECT_EQ(values<float>(outputs.front()), (std::vector<float>{0, 0, 0, 0}));
    EXPECT_EQ(seen, 1u);
  }
}

TEST_F(AtenExecutor, ConstantsThatGrowAreComputedWhereTheyAreRead) {
  const auto weights = [&](int8_t first) {
    const std::vector<int8_t> codes{first, 1, 2, 3};
    return make<DequantizePerTensor>(b.constant(Tensor::from(Shape{4}, codes)), 0.5, int64_t{0},
                                     int64_t{-128}, int64_t{127}, DType::Int8, std::nullopt);
  };
  ir::Value *a = weights(4), *c = weights(-4), *d = make<Neg>(c);  // of a value that grows
  ir::Value* small = make<Neg>(b.constant(kInput));                // does not grow
  ir::Value* first = make<AddTensor>(x, a, int64_t{1});
  ir::Value* second = make<AddTensor>(first, small, int64_t{1});
  ir::Value* third = make<AddTensor>(second, d, int64_t{1});
  ir::Value* unread = weights(8);
  graph.setOutputs({third, c, unread});
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
            (std::vector<const ir::Value*>{x, a, c, d, small, first, second, third, unread}));
  EXPECT_EQ(orderOf(Folding::NothingThatGrows, late),
            (std::vector<const ir::Value*>{x, small, a, first, second, c, d, third, unread}));
  EXPECT_EQ(folded, late);
}

/// relu(-x) + |-x|, in which other values may replace the relu and the absolute value.
struct Rerun : AtenExecutor {
  ir::Value* negative = make<Neg>(x);
  ir::Value* positive = make<Relu>(negative);
  ir::Value* magnitude = make<Abs>(negative);
  ir::Value* sum = make<AddTensor>(positive, magnitude, int64_t{1});

  std::vector<float> rerun(const Replacements& before, const Replacements& now) {
    graph.setOutputs({sum});
    const auto executor = Executor::create(graph);
    const auto kept = require(executor->keepRun(std::vector<Tensor>{kInput}, before));
    const auto outputs = require(executor->rerun(kept, now));
    return values<float>(outputs.front());
  }
};

TEST_F(Rerun, ReplacementsTakeThePlaceOfResults) {
  const Replacements none, one{{positive->producer(), negative}},
      both{{positive->producer(), negative}, {magnitude->producer(), x}};
  const std::vector<float> plain{4, 2, 1, 2}, raw{4, 2, 0, 0}, other{0, 0, 0, 0};
  for (const Replacements& before : {none, one, both}) {
    EXPECT_EQ(rerun(before, none), plain);
    EXPECT_EQ(rerun(before, one), raw);
    EXPECT_EQ(rerun(before, both), other);
  }
}

TEST_F(Rerun, ReplacementsOfFoldedValues) {
  ir::Value* constant = b.constant(floats({1, 2, 3, 4}));
  ir::Value* folded = make<Neg>(constant);
  sum = make<AddTensor>(sum, make<Neg>(folded), int64_t{1});
  const Replacements none, instead{{folded->producer(), constant}};
  EXPECT_EQ(rerun(none, none), (std::vector<float>{5, 4, 4, 6}));
  EXPECT_EQ(rerun(none, instead), (std::vector<float>{3, 0, -2, -2}));
  EXPECT_EQ(rerun(instead, none), (std::vector<float>{5, 4, 4, 6}));
}

TEST_F(AtenExecutor, WrongInputsAreRefused) {
  graph.setOutputs({x});
  EXPECT_FALSE(execute(graph, {}).ok());
  EXPECT_FALSE(execute(graph, std::vector<Tensor>{floats({1})}).ok());
  EXPECT_FALSE(execute(graph, std::vector<Tensor>{longs({1, 2, 3, 4})}).ok());
}

TEST_F(AtenExecutor, NamesEveryNodeItCannotRun) {
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

TEST_F(AtenFunctionalize, LaterUsesSeeTheWrite) {
  ir::Value* fresh = make<Neg>(x);
  make<ReluInplace>(fresh);
  graph.setOutputs({fresh});
  ASSERT_TRUE(decompose::functionalize(graph).ok());
  ASSERT_TRUE(ir::verify(graph).ok());
  auto outputs = require(execute(graph, std::vector<Tensor>{kInput}));
  EXPECT_EQ(values<float>(outputs.front()), (std::vector<float>{2, 1, 0, 0}));
}

/// y = x.clone(); y.view(2, 2)[:, 0].fill_(9) changes y, and a view of y taken before sees it.
TEST_F(AtenFunctionalize, WritesThroughViewsReachTheBaseAndOtherViews) {
  ir::Value* y = make<Neg>(x);
  ir::Value* other = make<SliceTensor>(y, 0, 2, 4, 1);
  ir::Value* square = make<View>(y, ir::Ints{2, 2});
  ir::Value* turned = make<TransposeInt>(square, 0, 1);
  ir::Value* row = make<SelectInt>(turned, 0, 0);
  FillScalarInplace::create(b, row, 9.0);
  graph.setOutputs({y, other});
  ASSERT_TRUE(decompose::functionalize(graph).ok());
  require(ir::verify(graph));
  for (const ir::Node* node : graph.nodes()) EXPECT_FALSE(node->def().has(ir::kInPlace));
  auto outputs = require(execute(graph, std::vector<Tensor>{kInput}));
  EXPECT_EQ(values<float>(outputs[0]), (std::vector<float>{9, 1, 9, -2}));
  EXPECT_EQ(values<float>(outputs[1]), (std::vector<float>{9, -2}));
}

TEST_F(AtenFunctionalize, RefusesWritesThroughExpand) {
  ir::Value* wide = make<Expand>(make<Neg>(input({1})), ir::Ints{4}, false);
  graph.setOutputs({make<ReluInplace>(wide)});
  EXPECT_FALSE(decompose::functionalize(graph).ok());
}

}  // namespace
}  // namespace carina::aten::test
