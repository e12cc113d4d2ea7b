// SPDX-License-Identifier: Apache-2.0
// The rewrites into kernel form change operators but not values: the float executor computes the same before
// and after.
#include "cpu/kernel_form.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "aten/executor.hpp"
#include "aten/ops.hpp"
#include "cpu/cost.hpp"
#include "cpu/kernel_schema.hpp"
#include "support/graph_cases.hpp"
#include "support/require.hpp"

namespace carina::cpu {
namespace {

using ir::Ints;
using ir::Value;

Tensor ramp(const Shape& shape) {
  Tensor tensor = Tensor::uninitialized(DType::Float32, shape);
  const auto values = tensor.mutableAs<float>();
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i) * 1.7f) * 4.0f;
  return tensor;
}

std::vector<std::string> opNames(const ir::Graph& graph) {
  std::vector<std::string> names;
  for (const ir::Node* node : graph.nodes()) names.emplace_back(node->opName());
  return names;
}

void expectSame(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.shape(), b.shape());
  ASSERT_EQ(a.dtype(), b.dtype());
  double largest = 0;
  for (int64_t i = 0; i < a.numElements(); ++i) {
    if (std::isfinite(a.realAt(i))) largest = std::max(largest, std::abs(a.realAt(i)));
  }
  for (int64_t i = 0; i < a.numElements(); ++i) {
    if (a.realAt(i) == b.realAt(i)) continue;  // also infinities
    ASSERT_NEAR(a.realAt(i), b.realAt(i), 1e-5 * largest + 1e-6) << i;
  }
}

class KernelForm : public testing::TestWithParam<test::GraphCase> {};

TEST_P(KernelForm, ComputesTheSame) {
  const ir::Graph graph = test::graphOf(GetParam(), [](const Value& weight) { return ramp(weight.shape()); });
  ir::Graph form = graph.clone();
  const std::vector<std::string> before = opNames(graph);
  ASSERT_TRUE(toKernelForm(form).ok());
  EXPECT_NE(opNames(form), before) << "nothing was rewritten";
  const std::vector<Tensor> inputs{ramp(graph.inputs()[0]->shape())};
  expectSame(require(aten::execute(graph, inputs))[0], require(aten::execute(form, inputs))[0]);
}

/// Positions inside and outside of a volume, in every mode.
Value* sampledVolume(ir::Builder& b, Value* x, int64_t interpolation, int64_t padding, bool align) {
  Tensor scale = Tensor::uninitialized(DType::Float32, {1, 2, 5, 3, 3});
  const auto values = scale.mutableAs<float>();
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::cos(static_cast<float>(i) * 2.3f);
  // Not a constant: scaled by the largest element of x, which is 4.
  Value* grid =
      aten::MulTensor::create(b, b.constant(std::move(scale)), aten::Max::create(b, x).output()).output();
  return aten::GridSampler::create(b, x, grid, interpolation, padding, align).output();
}

class SampledVolumes : public testing::TestWithParam<std::tuple<int64_t, int64_t, bool>> {};

TEST_P(SampledVolumes, BecomeArithmeticAndGather) {
  const auto [interpolation, padding, align] = GetParam();
  ir::Graph graph;
  ir::Builder b(graph);
  const Shape shape{1, 2, 3, 4, 5};
  Value* x = graph.addInput({DType::Float32, shape}, "x");
  graph.setOutputs({sampledVolume(b, x, interpolation, padding, align)});
  ir::Graph form = graph.clone();
  ASSERT_TRUE(toKernelForm(form).ok());
  for (const std::string& name : opNames(form)) EXPECT_EQ(name.find("grid_sampler"), std::string::npos);
  const std::vector<Tensor> inputs{ramp(shape)};
  expectSame(require(aten::execute(graph, inputs))[0], require(aten::execute(form, inputs))[0]);
}
INSTANTIATE_TEST_SUITE_P(Modes, SampledVolumes,
                         testing::Combine(testing::Values<int64_t>(0, 1), testing::Values<int64_t>(0, 1, 2),
                                          testing::Bool()));

std::string caseName(const testing::TestParamInfo<test::GraphCase>& info) {
  return info.param.name;
}
INSTANTIATE_TEST_SUITE_P(All, KernelForm, testing::ValuesIn(test::graphCases("cpu/kernel_form.ir")),
                         caseName);

TEST(KernelSchema, SplitsArgumentsWithDefaultsAndOutputs) {
  const KernelSchema* schema = findKernelFor("aten.clamp.default");
  ASSERT_NE(schema, nullptr);
  EXPECT_EQ(schema->kernel, "aten::clamp.out");
  ASSERT_EQ(schema->arguments.size(), 4u);
  EXPECT_EQ(schema->arguments[1].name, "min");
  EXPECT_EQ(schema->arguments[1].defaultText, "None");
  EXPECT_FALSE(schema->arguments[2].output);
  EXPECT_TRUE(schema->arguments[3].output);
  EXPECT_EQ(findKernelFor("aten.nothing.default"), nullptr);
}

TEST(Cost, GrowsWithWorkAndIsZeroForReshapes) {
  ir::Graph graph;
  ir::Builder b(graph);
  Value* x = graph.addInput({DType::Float32, {4, 8}}, "x");
  const ir::Node* view = aten::View::create(b, x, Ints{32}).node();
  const ir::Node* relu = aten::Relu::create(b, x).node();
  const ir::Node* exp = aten::Exp::create(b, x).node();
  const ir::Node* linear = aten::Linear::create(b, x, b.constant(ramp({16, 8})), nullptr).node();
  EXPECT_EQ(estimateCycles(*view), 0);
  EXPECT_GT(estimateCycles(*relu), 0);
  EXPECT_GT(estimateCycles(*exp), estimateCycles(*relu));
  EXPECT_GT(estimateCycles(*linear), int64_t{4 * 16 * 8 * 2});
  EXPECT_LT(estimateCycles(*exp, Core::M85), estimateCycles(*exp, Core::M33));
}

}  // namespace
}  // namespace carina::cpu
