// SPDX-License-Identifier: Apache-2.0
// Decompositions keep the float function.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "aten/executor.hpp"
#include "aten/ops.hpp"
#include "decompose/decompose.hpp"

namespace carina::decompose {
namespace {

using ir::Ints;

Tensor waves(const Shape& shape, float step) {
  Tensor tensor = Tensor::uninitialized(DType::Float32, shape);
  const auto values = tensor.mutableAs<float>();
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i) * step);
  return tensor;
}

struct Geometry {
  const char* name;
  int64_t inputs, outputs, groups;
  Ints kernel, stride, padding, outputPadding, dilation;
};

class Transposed3d : public testing::TestWithParam<Geometry> {};

TEST_P(Transposed3d, IsAConvolutionOfTheInputWithZerosBetween) {
  const Geometry& g = GetParam();
  ir::Graph graph;
  ir::Builder b(graph);
  const Shape shape{2, g.inputs, 3, 2, 4};
  ir::Value* x = graph.addInput({DType::Float32, shape}, "x");
  const Shape weight{g.inputs, g.outputs / g.groups, g.kernel[0], g.kernel[1], g.kernel[2]};
  graph.setOutputs({aten::ConvTranspose3dInput::create(b, x, graph.addConstant(waves(weight, 1.3f)),
                                                       graph.addConstant(waves({g.outputs}, 0.7f)), g.stride,
                                                       g.padding, g.outputPadding, g.groups, g.dilation)
                        .output()});
  const std::vector<Tensor> inputs{waves(shape, 2.1f)};
  const Tensor want = (*aten::execute(graph, inputs))[0];
  ASSERT_TRUE(decompose::forNpu(graph).ok());
  for (const ir::Node* node : graph.nodes()) EXPECT_FALSE(ir::isa<aten::ConvTranspose3dInput>(node));
  const Tensor got = (*aten::execute(graph, inputs))[0];
  ASSERT_EQ(got.shape(), want.shape());
  for (int64_t i = 0; i < want.numElements(); ++i) ASSERT_NEAR(got.realAt(i), want.realAt(i), 1e-5) << i;
}

INSTANTIATE_TEST_SUITE_P(
    All, Transposed3d,
    testing::Values(Geometry{"plain", 2, 3, 1, {3, 3, 3}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}, {1, 1, 1}},
                    Geometry{"strided", 2, 3, 1, {2, 3, 3}, {2, 2, 3}, {0, 1, 1}, {1, 0, 2}, {1, 1, 1}},
                    Geometry{"grouped", 4, 6, 2, {3, 2, 1}, {2, 1, 2}, {1, 0, 0}, {1, 0, 1}, {1, 1, 1}},
                    Geometry{"dilated", 2, 2, 1, {2, 2, 3}, {1, 2, 1}, {1, 0, 2}, {0, 1, 0}, {2, 3, 2}},
                    // The padding crops more than the kernel reaches.
                    Geometry{"cropped", 2, 2, 1, {1, 2, 1}, {3, 2, 2}, {1, 1, 1}, {0, 0, 1}, {1, 1, 1}}),
    [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace carina::decompose
