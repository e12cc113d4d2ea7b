// SPDX-License-Identifier: Apache-2.0
// Tensors without elements, and operators in uncommon forms.
#include "decompose/empty_tensors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aten/compare.hpp"
#include "aten/one_op.hpp"
#include "decompose/composites.hpp"
#include "support/require.hpp"

namespace carina::aten::test {
namespace {

using testing::HasSubstr;

ir::Value* floats(ir::Graph& graph, const Shape& shape) {
  return graph.addInput({DType::Float32, shape}, "x" + std::to_string(graph.inputs().size()));
}

TEST(EmptyTensors, ReduceToTheNeutralElement) {
  ir::Graph graph;
  ir::Value* x = floats(graph, {2, 3});
  ir::Builder b(graph);
  ir::Value* rows = SliceTensor::create(b, x, 0, int64_t{2}, int64_t{2}, 1).output();
  ir::Value* columns = TransposeInt::create(b, rows, 0, 1).output();
  ir::Value* bias = SelectInt::create(b, x, 0, 0).output();
  const Tensor none = Tensor::zeros(DType::Float32, {3, 0});
  graph.setOutputs({SumDimIntList::create(b, rows, ir::Ints{0}, false, std::nullopt).output(),
                    ProdDimInt::create(b, rows, 0, false, std::nullopt).output(),
                    Mm::create(b, columns, rows).output(),
                    Linear::create(b, columns, b.constant(none), bias).output()});
  ASSERT_TRUE(decompose::removeEmptyTensors(graph).ok());
  const auto results = require(
      execute(graph, std::vector<Tensor>{Tensor::from<float>({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6})}));
  EXPECT_EQ(results[0], Tensor::zeros(DType::Float32, {3}));
  EXPECT_EQ(results[1], Tensor::from<float>({3}, std::vector<float>{1, 1, 1}));
  EXPECT_EQ(results[2], Tensor::zeros(DType::Float32, {3, 3}));
  EXPECT_EQ(results[3], Tensor::from<float>({3, 3}, std::vector<float>{1, 2, 3, 1, 2, 3, 1, 2, 3}));
}

TEST(EmptyTensors, AreRefusedWhereTheyMatter) {
  ir::Graph ends;
  ends.setOutputs({floats(ends, {1, 0, 4})});
  const Status both = decompose::removeEmptyTensors(ends);
  ASSERT_FALSE(both.ok());
  EXPECT_EQ(both.error().diagnostics().size(), 2u);  // as input and as result
  EXPECT_THAT(both.error().str(), HasSubstr("[1,0,4] has no elements"));

  ir::Graph mean;
  ir::Value* x = floats(mean, {2, 3});
  ir::Builder b(mean, nullptr, std::make_shared<const ir::Location>(ir::Location{"mean_1", "", ""}));
  ir::Value* nothing = SliceTensor::create(b, x, 1, int64_t{3}, int64_t{3}, 1).output();
  mean.setOutputs({MeanDim::create(b, nothing, ir::Ints{1}, false, std::nullopt).output()});
  EXPECT_THAT(errorOf(decompose::removeEmptyTensors(mean)),
              HasSubstr("mean_1: aten.mean.dim has an operand without elements"));
}

/// Expects the same result before and after the graph's composites are replaced.
void expectSameComposed(ir::Graph graph, const std::vector<Tensor>& inputs, bool changes = true) {
  const auto before = require(execute(graph, inputs));
  const size_t nodes = graph.numNodes();
  ASSERT_TRUE(decompose::replaceComposites(graph).ok());
  EXPECT_EQ(graph.numNodes() != nodes, changes);
  EXPECT_TRUE(close(require(execute(graph, inputs))[0], before[0]));
}

Tensor ramp(const Shape& shape) {
  Tensor tensor = Tensor::uninitialized(DType::Float32, shape);
  float next = -1;
  for (float& value : tensor.mutableAs<float>())
    value = next += 0.37f, value = value > 3 ? next = -2.3f : value;
  return tensor;
}

TEST(OddForms, LinearAcceptsAnyBiasThatBroadcasts) {
  for (const Shape& bias : {Shape{}, Shape{1}, Shape{2, 3}, Shape{2, 1}}) {
    const std::vector<Tensor> inputs{ramp({2, 4}), ramp({3, 4}), ramp(bias)};
    auto graph = require(oneOp("aten.linear.default", {{inputs[0]}, {inputs[1]}, {inputs[2]}}, {}));
    ASSERT_TRUE(decompose::replaceComposites(graph).ok());
    const auto result = require(execute(graph, inputs));
    const Tensor& b = inputs[2];
    for (int64_t r = 0; r < 2; ++r) {
      for (int64_t o = 0; o < 3; ++o) {
        const int64_t at = bias.size() == 2 ? r * bias[1] + (bias[1] > 1 ? o : 0) : 0;
        double sum = b.realAt(at);
        for (int64_t i = 0; i < 4; ++i) sum += inputs[0].realAt(r * 4 + i) * inputs[1].realAt(o * 4 + i);
        EXPECT_NEAR(result[0].realAt(r * 3 + o), sum, 1e-5);
      }
    }
  }
}

TEST(OddForms, ConvolutionsThatMostlyReadPadding) {
  const Groups operands{{ramp({1, 3, 5, 6})}, {ramp({4, 3, 2, 3})}, {ramp({4})}};
  std::vector<Tensor> inputs;
  for (const auto& group : operands) inputs.push_back(*group[0]);
  const auto check = [&](const Attributes& attributes, bool changes) {
    SCOPED_TRACE(attributes[0].second + attributes[1].second);
    auto graph = require(oneOp("aten.conv2d.default", operands, attributes));
    expectSameComposed(std::move(graph), inputs, changes);
  };
  check({{"padding", "[40,1]"}, {"stride", "[1,1]"}}, true);
  check({{"padding", "[40,30]"}, {"stride", "[3,2]"}, {"dilation", "[2,2]"}}, true);
  check({{"padding", "[9,9]"}, {"stride", "[20,20]"}}, true);  // no window reads the input
  check({{"padding", "[1,1]"}, {"stride", "[1,100000]"}}, true);
  check({{"padding", "[1,1]"}, {"stride", "[2,1]"}}, false);
}

TEST(OddForms, WrongArgumentsAreRefused) {
  const Tensor x = ramp({5, 6}), indices = Tensor::zeros(DType::Int64, {2});
  EXPECT_THAT(errorOf(oneOp("aten.index_put.default", {{x}, {indices}, {ramp({15, 6})}}, {})),
              HasSubstr("values of shape [15,6] do not match the shape [2,6]"));
  EXPECT_TRUE(oneOp("aten.index_put.default", {{x}, {indices}, {ramp({6})}}, {}).ok());
  EXPECT_FALSE(oneOp("aten.roll.default", {{x}}, {{"shifts", "[1,2]"}, {"dims", "[0]"}}).ok());
  EXPECT_FALSE(oneOp("aten.roll.default", {{x}}, {{"shifts", "[1]"}, {"dims", "[2]"}}).ok());
  EXPECT_TRUE(oneOp("aten.roll.default", {{x}}, {{"shifts", "[1]"}, {"dims", "[-1]"}}).ok());
  const auto codes = [&](const char* low, const char* high) {
    return oneOp(
        "quantized_decomposed.quantize_per_tensor.default", {{x}},
        {{"scale", "0.1"}, {"zero_point", "0"}, {"quant_min", low}, {"quant_max", high}, {"dtype", "i8"}});
  };
  EXPECT_TRUE(codes("-127", "127").ok());
  EXPECT_FALSE(codes("-128", "128").ok());
  EXPECT_FALSE(codes("5", "-5").ok());
  EXPECT_TRUE(oneOp("aten.take.default", {{x}, {indices}}, {}).ok());
  EXPECT_FALSE(oneOp("aten.take.default", {{x}, {ramp({2})}}, {}).ok());
}

}  // namespace
}  // namespace carina::aten::test
