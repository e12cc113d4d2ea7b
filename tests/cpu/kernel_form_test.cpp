// SPDX-License-Identifier: Apache-2.0
// The rewrites into kernel form change nothing but the names: the float executor gives the same before and
// after.
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

namespace carina::cpu {
namespace {

using ir::Ints;
using ir::Value;

/// A graph of one float input and what `make` computes of it.
struct Case {
  const char* name;
  Shape shape;
  std::function<Value*(ir::Builder&, Value*)> make;
};

Tensor ramp(const Shape& shape) {
  Tensor tensor = Tensor::uninitialized(DType::Float32, shape);
  const auto values = tensor.mutableAs<float>();
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i) * 1.7f) * 4.0f;
  return tensor;
}

Value* weight(ir::Builder& b, const Shape& shape) {
  return b.constant(ramp(shape));
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
    if (a.realAt(i) == b.realAt(i)) continue;  // infinite ones
    ASSERT_NEAR(a.realAt(i), b.realAt(i), 1e-5 * largest + 1e-6) << i;
  }
}

class KernelForm : public testing::TestWithParam<Case> {};

TEST_P(KernelForm, ComputesTheSame) {
  ir::Graph graph;
  ir::Builder b(graph);
  Value* result = GetParam().make(b, graph.addInput({DType::Float32, GetParam().shape}, "x"));
  graph.setOutputs({result});
  ir::Graph form = graph.clone();
  const std::vector<std::string> before = opNames(graph);
  ASSERT_TRUE(toKernelForm(form).ok());
  EXPECT_NE(opNames(form), before) << "nothing was rewritten";
  const std::vector<Tensor> inputs{ramp(GetParam().shape)};
  const auto want = aten::execute(graph, inputs), got = aten::execute(form, inputs);
  ASSERT_TRUE(want.ok()) << want.error().str();
  ASSERT_TRUE(got.ok()) << got.error().str();
  expectSame((*want)[0], (*got)[0]);
}

const Case kCases[] = {
    {"nan_to_num",
     {2, 5},
     [](ir::Builder& b, Value* x) {
       return aten::NanToNum::create(b, aten::Log::create(b, aten::Relu::create(b, x).output()).output(), 2.0,
                                     3.0, -4.0)
           .output();
     }},
    {"isfinite",
     {2, 5},
     [](ir::Builder& b, Value* x) {
       return aten::Isfinite::create(b, aten::Log::create(b, x).output()).output();
     }},
    {"signbit", {2, 5}, [](ir::Builder& b, Value* x) { return aten::Signbit::create(b, x).output(); }},
    {"sinc",
     {2, 5},
     [](ir::Builder& b, Value* x) {
       return aten::Sinc::create(b, aten::Relu::create(b, x).output()).output();
     }},
    {"fmax",
     {2, 5},
     [](ir::Builder& b, Value* x) {
       return aten::Fmax::create(b, aten::Log::create(b, x).output(), x).output();
     }},
    {"safe_softmax",
     {2, 5},
     [](ir::Builder& b, Value* x) {
       return aten::PrivateSafeSoftmax::create(b, x, int64_t{1}, std::nullopt).output();
     }},
    {"put_where_true",
     {2, 5},
     [](ir::Builder& b, Value* x) {
       Value* mask = aten::GtScalar::create(b, x, 0.0).output();
       return aten::IndexPut::create(b, x, {mask}, b.constant(Tensor::scalar(7.0f)), false).output();
     }},
    {"cumprod",
     {2, 5},
     [](ir::Builder& b, Value* x) { return aten::Cumprod::create(b, x, int64_t{1}, std::nullopt).output(); }},
    {"median",
     {2, 5},
     [](ir::Builder& b, Value* x) {
       return aten::MedianDim::create(b, x, int64_t{1}, true).node()->result(0);
     }},
    {"logsumexp_of_nothing",
     {2, 5},
     [](ir::Builder& b, Value* x) {
       return aten::Logsumexp::create(
                  b, aten::Log::create(b, aten::MulScalar::create(b, x, 0.0).output()).output(), Ints{1},
                  false)
           .output();
     }},
    {"silu", {2, 5}, [](ir::Builder& b, Value* x) { return aten::Silu::create(b, x).output(); }},
    {"hardswish", {2, 5}, [](ir::Builder& b, Value* x) { return aten::Hardswish::create(b, x).output(); }},
    {"hardsigmoid",
     {2, 5},
     [](ir::Builder& b, Value* x) { return aten::Hardsigmoid::create(b, x).output(); }},
    {"relu6", {2, 5}, [](ir::Builder& b, Value* x) { return aten::Relu6::create(b, x).output(); }},
    {"mish", {2, 5}, [](ir::Builder& b, Value* x) { return aten::Mish::create(b, x).output(); }},
    {"softplus",
     {2, 5},
     [](ir::Builder& b, Value* x) { return aten::Softplus::create(b, x, 2.0, 5.0).output(); }},
    {"celu", {2, 5}, [](ir::Builder& b, Value* x) { return aten::Celu::create(b, x, 0.7).output(); }},
    {"selu", {2, 5}, [](ir::Builder& b, Value* x) { return aten::Selu::create(b, x).output(); }},
    {"softshrink",
     {2, 5},
     [](ir::Builder& b, Value* x) { return aten::Softshrink::create(b, x, 0.5).output(); }},
    {"hardshrink",
     {2, 5},
     [](ir::Builder& b, Value* x) { return aten::Hardshrink::create(b, x, 0.5).output(); }},
    {"threshold",
     {2, 5},
     [](ir::Builder& b, Value* x) { return aten::Threshold::create(b, x, 0.5, -7.0).output(); }},
    {"square", {2, 5}, [](ir::Builder& b, Value* x) { return aten::Square::create(b, x).output(); }},
    {"exp2", {2, 5}, [](ir::Builder& b, Value* x) { return aten::Exp2::create(b, x).output(); }},
    {"erfc", {2, 5}, [](ir::Builder& b, Value* x) { return aten::Erfc::create(b, x).output(); }},
    {"frac", {2, 5}, [](ir::Builder& b, Value* x) { return aten::Frac::create(b, x).output(); }},
    {"clamp_min",
     {2, 5},
     [](ir::Builder& b, Value* x) { return aten::ClampMin::create(b, x, 0.25).output(); }},
    {"clamp_max",
     {2, 5},
     [](ir::Builder& b, Value* x) { return aten::ClampMax::create(b, x, 0.25).output(); }},
    {"prelu",
     {1, 3, 4},
     [](ir::Builder& b, Value* x) { return aten::Prelu::create(b, x, weight(b, {3})).output(); }},
    {"where_infinite",
     {2, 5},
     [](ir::Builder& b, Value* x) {
       Value* mask = aten::GtScalar::create(b, x, 0.0).output();
       return aten::WhereScalarOther::create(b, mask, x, -std::numeric_limits<double>::infinity()).output();
     }},
    {"sum", {2, 5}, [](ir::Builder& b, Value* x) { return aten::Sum::create(b, x, std::nullopt).output(); }},
    {"mean",
     {2, 5},
     [](ir::Builder& b, Value* x) { return aten::Mean::create(b, x, std::nullopt).output(); }},
    {"softmax",
     {2, 5},
     [](ir::Builder& b, Value* x) {
       return aten::SoftmaxInt::create(b, x, int64_t{-1}, std::nullopt).output();
     }},
    {"linear",
     {2, 3, 5},
     [](ir::Builder& b, Value* x) {
       return aten::Linear::create(b, x, weight(b, {4, 5}), weight(b, {4})).output();
     }},
    {"linear_vector",
     {5},
     [](ir::Builder& b, Value* x) {
       return aten::Linear::create(b, x, weight(b, {4, 5}), nullptr).output();
     }},
    {"matmul_batches",
     {2, 1, 3, 5},
     [](ir::Builder& b, Value* x) {
       return aten::Matmul::create(b, x, weight(b, {4, 5, 2})).output();
     }},
    {"matmul_vector",
     {2, 3, 5},
     [](ir::Builder& b, Value* x) { return aten::Matmul::create(b, x, weight(b, {5})).output(); }},
    {"conv1d",
     {1, 2, 9},
     [](ir::Builder& b, Value* x) {
       return aten::Conv1d::create(b, x, weight(b, {3, 2, 3}), nullptr, Ints{2}, Ints{1}, Ints{1}, int64_t{1})
           .output();
     }},
    {"conv2d_same",
     {1, 2, 6, 6},
     [](ir::Builder& b, Value* x) {
       return aten::Conv2dPadding::create(b, x, weight(b, {3, 2, 2, 3}), weight(b, {3}), Ints{1, 1}, "same",
                                          Ints{1, 1}, int64_t{1})
           .output();
     }},
    {"conv2d_without_batch",
     {2, 6, 6},
     [](ir::Builder& b, Value* x) {
       return aten::Conv2d::create(b, x, weight(b, {3, 2, 3, 3}), nullptr, Ints{1, 1}, Ints{1, 1}, Ints{1, 1},
                                   int64_t{1})
           .output();
     }},
    {"conv3d",
     {2, 4, 5, 6, 7},
     [](ir::Builder& b, Value* x) {
       return aten::Conv3d::create(b, x, weight(b, {6, 2, 3, 2, 3}), weight(b, {6}), Ints{2, 1, 2},
                                   Ints{1, 0, 1}, Ints{1, 2, 1}, int64_t{2})
           .output();
     }},
    {"conv3d_same_without_batch",
     {2, 5, 4, 6},
     [](ir::Builder& b, Value* x) {
       return aten::Conv3dPadding::create(b, x, weight(b, {3, 2, 2, 2, 3}), nullptr, Ints{1, 1, 1}, "same",
                                          Ints{2, 1, 1}, int64_t{1})
           .output();
     }},
    {"rms_norm",
     {3, 2, 6},
     [](ir::Builder& b, Value* x) {
       return aten::RmsNorm::create(b, x, weight(b, {2, 6}), Ints{2, 6}, 1e-3).output();
     }},
    {"layer_norm_without_weights",
     {3, 2, 6},
     [](ir::Builder& b, Value* x) {
       return aten::LayerNorm::create(b, x, nullptr, nullptr, Ints{2, 6}, 1e-5, false).output();
     }},
    {"max_pool1d",
     {1, 2, 9},
     [](ir::Builder& b, Value* x) {
       return aten::MaxPool1d::create(b, x, Ints{3}, Ints{2}, Ints{1}, Ints{1}, false).output();
     }},
    {"avg_pool1d",
     {1, 2, 9},
     [](ir::Builder& b, Value* x) {
       return aten::AvgPool1d::create(b, x, Ints{3}, Ints{2}, Ints{1}, false, true).output();
     }},
    {"adaptive_avg_pool1d",
     {1, 2, 9},
     [](ir::Builder& b, Value* x) { return aten::AdaptiveAvgPool1d::create(b, x, Ints{3}).output(); }},
    {"upsample_nearest1d",
     {1, 2, 5},
     [](ir::Builder& b, Value* x) {
       return aten::UpsampleNearest1dVec::create(b, x, Ints{8}, std::nullopt).output();
     }},
    {"max_pool3d",
     {2, 3, 5, 6, 4},
     [](ir::Builder& b, Value* x) {
       return aten::MaxPool3d::create(b, x, Ints{2, 3, 2}, Ints{1, 2, 2}, Ints{1, 1, 0}, Ints{2, 1, 1}, true)
           .output();
     }},
    {"avg_pool3d",
     {3, 5, 6, 4},
     [](ir::Builder& b, Value* x) {
       return aten::AvgPool3d::create(b, x, Ints{2, 3, 2}, Ints{1, 2, 2}, Ints{1, 1, 0}, true, true,
                                      int64_t{7})
           .output();
     }},
    {"adaptive_avg_pool3d",
     {2, 3, 5, 6, 4},
     [](ir::Builder& b, Value* x) {
       return aten::AdaptiveAvgPool3d::create(b, x, Ints{2, 4, 3}).output();
     }},
    {"adaptive_max_pool2d",
     {2, 3, 7, 6},
     [](ir::Builder& b, Value* x) {
       return aten::AdaptiveMaxPool2d::create(b, x, Ints{3, 4}).node()->result(0);
     }},
    {"upsample_nearest_exact3d",
     {1, 2, 3, 4, 5},
     [](ir::Builder& b, Value* x) {
       return aten::PrivateUpsampleNearestExact3dVec::create(b, x, Ints{5, 3, 9}, std::nullopt).output();
     }},
    {"upsample_trilinear3d",
     {1, 2, 3, 4, 5},
     [](ir::Builder& b, Value* x) {
       return aten::UpsampleTrilinear3dVec::create(b, x, Ints{5, 3, 9}, true, std::nullopt).output();
     }},
    {"pad_circular",
     {1, 2, 4, 5},
     [](ir::Builder& b, Value* x) {
       return aten::Pad::create(b, x, Ints{1, 2, 3, 0}, "circular", std::nullopt).output();
     }},
    {"im2col",
     {2, 3, 4, 5},
     [](ir::Builder& b, Value* x) {
       return aten::Im2col::create(b, x, Ints{2, 3}, Ints{1, 1}, Ints{1, 0}, Ints{2, 1}).output();
     }},
    {"col2im",
     {12, 12},
     [](ir::Builder& b, Value* x) {
       return aten::Col2im::create(b, x, Ints{8, 6}, Ints{2, 2}, Ints{1, 1}, Ints{0, 0}, Ints{2, 2}).output();
     }},
    {"upsample_bicubic2d",
     {1, 2, 4, 5},
     [](ir::Builder& b, Value* x) {
       return aten::UpsampleBicubic2dVec::create(b, x, Ints{7, 3}, false, std::nullopt).output();
     }},
    {"sort",
     {3, 7},
     [](ir::Builder& b, Value* x) { return aten::Sort::create(b, x, int64_t{-1}, true).node()->result(0); }},
    {"sort_stable",
     {3, 7},
     [](ir::Builder& b, Value* x) {
       return aten::SortStable::create(b, x, true, int64_t{0}, false).node()->result(0);
     }},
    {"argsort",
     {3, 7},
     [](ir::Builder& b, Value* x) { return aten::Argsort::create(b, x, int64_t{1}, false).output(); }},
    {"grid_sampler",
     {1, 2, 3, 4},
     [](ir::Builder& b, Value* x) {
       Tensor grid = Tensor::uninitialized(DType::Float32, {1, 2, 5, 2});
       const auto values = grid.mutableAs<float>();
       for (size_t i = 0; i < values.size(); ++i) values[i] = std::cos(static_cast<float>(i)) * 1.2f;
       return aten::GridSampler::create(b, x, b.constant(std::move(grid)), int64_t{0}, int64_t{1}, false)
           .output();
     }},
    {"pad_reflect",
     {1, 2, 5, 5},
     [](ir::Builder& b,
        Value* x) { return aten::Pad::create(b, x, Ints{1, 2, 1, 0}, "reflect", std::nullopt).output(); }},
    {"tile", {2, 3}, [](ir::Builder& b, Value* x) { return aten::Tile::create(b, x, Ints{2}).output(); }},
    {"broadcast_to",
     {1, 3},
     [](ir::Builder& b, Value* x) { return aten::BroadcastTo::create(b, x, Ints{4, 3}).output(); }},
};

/// Positions inside and outside of a volume, in every mode.
Value* sampledVolume(ir::Builder& b, Value* x, int64_t interpolation, int64_t padding, bool align) {
  Tensor scale = Tensor::uninitialized(DType::Float32, {1, 2, 5, 3, 3});
  const auto values = scale.mutableAs<float>();
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::cos(static_cast<float>(i) * 2.3f);
  // Not a constant: as wide as the largest element of x, which is 4.
  Value* grid =
      aten::MulTensor::create(b, b.constant(std::move(scale)), aten::Max::create(b, x).output()).output();
  return aten::GridSampler::create(b, x, grid, interpolation, padding, align).output();
}

class SampledVolumes : public testing::TestWithParam<std::tuple<int64_t, int64_t, bool>> {};

TEST_P(SampledVolumes, AreArithmeticAndGather) {
  const auto [interpolation, padding, align] = GetParam();
  ir::Graph graph;
  ir::Builder b(graph);
  const Shape shape{1, 2, 3, 4, 5};
  Value* x = graph.addInput({DType::Float32, shape}, "x");
  graph.setOutputs({sampledVolume(b, x, interpolation, padding, align)});
  ir::Graph form = graph.clone();
  ASSERT_TRUE(toKernelForm(form).ok());
  for (const std::string& name : opNames(form)) EXPECT_EQ(name.find("grid_sampler"), std::string::npos);
  const auto want = aten::execute(graph, std::vector{ramp(shape)}),
             got = aten::execute(form, std::vector{ramp(shape)});
  ASSERT_TRUE(want.ok()) << want.error().str();
  ASSERT_TRUE(got.ok()) << got.error().str();
  expectSame((*want)[0], (*got)[0]);
}
INSTANTIATE_TEST_SUITE_P(Modes, SampledVolumes,
                         testing::Combine(testing::Values<int64_t>(0, 1), testing::Values<int64_t>(0, 1, 2),
                                          testing::Bool()));

std::string caseName(const testing::TestParamInfo<Case>& info) {
  return info.param.name;
}
INSTANTIATE_TEST_SUITE_P(All, KernelForm, testing::ValuesIn(kCases), caseName);

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

TEST(Cost, GrowsWithWorkAndIsNothingForReshapes) {
  ir::Graph graph;
  ir::Builder b(graph);
  Value* x = graph.addInput({DType::Float32, {4, 8}}, "x");
  const ir::Node* view = aten::View::create(b, x, Ints{32}).node();
  const ir::Node* relu = aten::Relu::create(b, x).node();
  const ir::Node* exp = aten::Exp::create(b, x).node();
  const ir::Node* linear = aten::Linear::create(b, x, weight(b, {16, 8}), nullptr).node();
  EXPECT_EQ(estimateCycles(*view), 0);
  EXPECT_GT(estimateCycles(*relu), 0);
  EXPECT_GT(estimateCycles(*exp), estimateCycles(*relu));
  EXPECT_GT(estimateCycles(*linear), int64_t{4 * 16 * 8 * 2});
  EXPECT_LT(estimateCycles(*exp, Core::M85), estimateCycles(*exp, Core::M33));
}

}  // namespace
}  // namespace carina::cpu
