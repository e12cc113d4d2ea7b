// SPDX-License-Identifier: Apache-2.0
// Operators that are decomposed into others before lowering: mixed types, windows, indexing, masks.
#include <cmath>

#include "decompose/composites.hpp"
#include "decomposed_case.hpp"
#include "support/require.hpp"

namespace carina::lower::test {
namespace {

class Decomposed : public testing::TestWithParam<Case> {};

TEST_P(Decomposed, EqualsFakeQuantInInt8) {
  check(GetParam(), {});
}

TEST_P(Decomposed, KeepsTheResult) {
  checkKeepsTheResult(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Scatters, Decomposed, testing::ValuesIn(casesIn("scatters")), nameOf);
INSTANTIATE_TEST_SUITE_P(Functions, Decomposed, testing::ValuesIn(casesIn("functions")), nameOf);
INSTANTIATE_TEST_SUITE_P(Types, Decomposed, testing::ValuesIn(casesIn("types")), nameOf);

INSTANTIATE_TEST_SUITE_P(Windows, Decomposed, testing::ValuesIn(casesIn("windows")), nameOf);

INSTANTIATE_TEST_SUITE_P(Indexing, Decomposed, testing::ValuesIn(casesIn("indexing")), nameOf);

/// A mask selects the positions of one value; the float executor has no such indexing, so the expected result
/// is written out here.
TEST(Masks, PutOneValueWhereTheyAreTrue) {
  Network n;
  Value* x = n.input({2, 3});
  Value* mask = n.input({2}, DType::Bool);
  n.graph.setOutputs(
      {aten::IndexPut::create(n.b, x, {mask}, n.graph.addConstant(Tensor::scalar(7.0f)), false).output()});
  ASSERT_TRUE(decompose::forNpu(n.graph).ok());
  Tensor keep = Tensor::zeros(DType::Bool, {2});
  keep.setIntegerAt(1, 1);
  const auto result = require(aten::execute(
      n.graph, std::vector<Tensor>{Tensor::from({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6}), keep}));
  const std::vector<double> expected{1, 2, 3, 7, 7, 7};
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(result[0].realAt(i), expected[static_cast<size_t>(i)]);
}

/// The CPU has one kernel for a softmax: what the user keeps there stays whole.
TEST(KeptOperators, StayWhole) {
  Network n;
  Value* x = n.input({3, 5});
  n.graph.setOutputs({n.make<aten::SoftmaxInt>(x, int64_t{1}), n.make<aten::SoftmaxInt>(x, int64_t{0})});
  const ir::Node* kept = n.graph.outputs()[0]->producer();
  ASSERT_TRUE(decompose::forNpu(n.graph, [&](const ir::Node& node) { return &node == kept; }).ok());
  EXPECT_EQ(n.graph.outputs()[0]->producer(), kept);
  EXPECT_FALSE(ir::isa<aten::SoftmaxInt>(n.graph.outputs()[1]->producer()));
}

/// Extrema with their indices: both are used, so both are computed.
TEST(Extremes, WithIndicesAreTwoReductions) {
  Network n;
  const aten::MinDim op = aten::MinDim::create(n.b, n.input({3, 5}), int64_t{1}, false);
  n.graph.setOutputs({op.node()->result(0), op.node()->result(1)});
  ASSERT_TRUE(decompose::forNpu(n.graph).ok());
  const auto result = require(
      aten::execute(n.graph, std::vector<Tensor>{Tensor::from(
                                 {3, 5}, std::vector<float>{4, 2, 2, 9, 3, 0, 1, 2, 3, 4, 5, 4, 3, 2, 1})}));
  const std::vector<double> values{2, 0, 1}, indices{1, 0, 4};
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(result[0].realAt(i), values[static_cast<size_t>(i)]);
    EXPECT_EQ(result[1].realAt(i), indices[static_cast<size_t>(i)]);
  }
}

INSTANTIATE_TEST_SUITE_P(Einsum, Decomposed, testing::ValuesIn(casesIn("einsum")), nameOf);

INSTANTIATE_TEST_SUITE_P(ManyDimensions, Decomposed, testing::ValuesIn(casesIn("many_dimensions")), nameOf);

TEST(Recurrent, GatesWithTheSameFunctionAreOneOperation) {
  Network n;
  Value* zeros = n.graph.addConstant(Tensor::zeros(DType::Float32, {1, 2, 4}));
  const std::vector<Value*> params{n.weight({16, 3}), n.weight({16, 4}), n.weight({16}), n.weight({16})};
  const auto lstm = aten::LstmInput::create(n.b, n.input({5, 2, 3}), {zeros, zeros}, params, true, int64_t{1},
                                            0.0, false, false, false);
  n.graph.setOutputs({lstm.node()->result(0)});
  ASSERT_TRUE(decompose::forNpu(n.graph).ok());
  std::map<std::string_view, int> count;
  for (const ir::Node* node : n.graph.nodes()) ++count[node->opName()];
  EXPECT_EQ(count["aten.sigmoid.default"], 5);   // input, forget and output gate of a step
  EXPECT_EQ(count["aten.tanh.default"], 2 * 5);  // candidate and cell
  EXPECT_EQ(count["aten.add.Tensor"], 3 * 5);    // two sums of gates, the cell
  EXPECT_EQ(count["aten.linear.default"],
            1 + 4);  // one of the input for all steps, four of states; that of the zeros is a constant
}

TEST(WeightNorm, BecomesAConstant) {
  const ir::OpDef* def = aten::findOperator("aten._weight_norm.default");
  for (const int64_t dim : {0, 1, -1}) {
    Network n;
    Value* v = n.weight({3, 4, 2});
    Value* g = n.weight(dim == 0 ? Shape{3, 1, 1} : dim == 1 ? Shape{1, 4, 1} : Shape{});
    ir::NodeSpec spec;
    spec.def = def;
    spec.operands = {{v}, {g}};
    spec.attributes = {dim};
    spec.types = {v->type};
    const auto node = require(n.graph.create(std::move(spec)));
    n.graph.setOutputs({node->result()});
    const Tensor directions = v->constant(), lengths = g->constant();
    ASSERT_TRUE(decompose::replaceComposites(n.graph).ok());
    ASSERT_TRUE(decompose::forNpu(n.graph).ok());
    ASSERT_TRUE(n.graph.outputs()[0]->isConstant());
    const Tensor& weight = n.graph.outputs()[0]->constant();
    const auto group = [&](int64_t i) { return dim == 0 ? i / 8 : dim == 1 ? i / 2 % 4 : 0; };
    for (int64_t i = 0; i < 24; ++i) {
      double squares = 0;
      for (int64_t k = 0; k < 24; ++k) {
        if (group(k) == group(i)) squares += directions.realAt(k) * directions.realAt(k);
      }
      EXPECT_NEAR(weight.realAt(i), directions.realAt(i) * lengths.realAt(group(i)) / std::sqrt(squares),
                  1e-6);
    }
  }
}

/// x / max(|x|, 1e-12), as F.normalize exports it: a row of zeros stays zero and does not widen the range of
/// the others.
TEST(Normalize, ARowOfZerosCostsNoAccuracy) {
  Network n;
  Value* x = n.input({4, 16});
  Value* squares = n.make<aten::MulTensor>(x, x);
  Value* sum = n.make<aten::SumDimIntList>(squares, Ints{-1}, true, std::nullopt);
  Value* length = n.make<aten::ClampMin>(n.make<aten::Sqrt>(sum), 1e-12);
  Value* wide = n.make<aten::Expand>(length, Ints{4, 16}, false);
  n.graph.setOutputs({n.make<aten::DivTensor>(x, wide)});
  Tensor rows = randomFloats({4, 16}, 3);
  for (size_t i = 0; i < 16; ++i) rows.mutableAs<float>()[i] = 0;
  const auto expected = require(aten::execute(n.graph, {{rows}}));
  ASSERT_TRUE(decompose::forNpu(n.graph).ok());
  const std::vector<quantize::Sample> samples{{rows}};
  const auto quantized = require(quantize::quantize(std::move(n.graph), {}, samples));
  const auto simulated = require(aten::execute(quantized.graph, {{rows}}));
  for (int64_t i = 0; i < 64; ++i) EXPECT_NEAR(simulated[0].realAt(i), expected[0].realAt(i), 0.03) << i;
}

}  // namespace
}  // namespace carina::lower::test
