// SPDX-License-Identifier: Apache-2.0
// Pools, resizing, padding and sampling in every rank, decomposed into operators that lowering has rules for.
#include <algorithm>
#include <cmath>

#include "decompose/composites.hpp"
#include "decomposed_case.hpp"
#include "support/require.hpp"

namespace carina::lower::test {
namespace {

using ir::Reals;

class Windows : public testing::TestWithParam<Case> {};

TEST_P(Windows, EqualsFakeQuantInInt8) {
  check(GetParam(), {});
}

TEST_P(Windows, EqualsFakeQuantIn16x8) {
  quantize::Options options;
  options.precision = quantize::Precision::Int16x8;
  check(GetParam(), options);
}

TEST_P(Windows, KeepsTheResult) {
  checkKeepsTheResult(GetParam());
}

const Shape kVolume{2, 3, 7, 6, 5};

// One TRANSPOSE to the channel-last order and one back. Averages differ where a sum is on the boundary
// between two codes; a rescale after them can amplify a difference of one code.
INSTANTIATE_TEST_SUITE_P(Pools, Windows, testing::ValuesIn(casesIn("pools")), nameOf);

// Volumes are rounded twice.
INSTANTIATE_TEST_SUITE_P(Resizing, Windows, testing::ValuesIn(casesIn("resizing")), nameOf);

INSTANTIATE_TEST_SUITE_P(Sampling, Windows, testing::ValuesIn(casesIn("sampling")), nameOf);

/// Few distinct values, so that windows contain ties.
TEST(MaxPoolVolume, IndicesAreFlatInTheVolume) {
  const Ints kernel{2, 3, 2}, stride{1, 2, 3}, padding{1, 1, 0}, dilation{2, 1, 1};
  for (const bool ceil : {false, true}) {
    Network n;
    const auto pool = aten::MaxPool3dWithIndices::create(n.b, n.input({2, 2, 5, 6, 7}), kernel, stride,
                                                         padding, dilation, ceil);
    n.graph.setOutputs(pool.node()->results());
    Tensor volume = randomFloats({2, 2, 5, 6, 7}, 5);
    for (float& value : volume.mutableAs<float>()) value = std::round(2 * value);
    const auto expected = require(aten::execute(n.graph, {{volume}}));
    ASSERT_TRUE(decompose::replaceComposites(n.graph).ok());
    for (const ir::Node* node : n.graph.nodes()) EXPECT_FALSE(ir::isa<aten::MaxPool3dWithIndices>(node));
    const auto actual = require(aten::execute(n.graph, {{volume}}));
    for (size_t i = 0; i < 2; ++i) {
      ASSERT_EQ(actual[i].shape(), expected[i].shape());
      for (int64_t k = 0; k < expected[i].numElements(); ++k)
        ASSERT_EQ(actual[i].realAt(k), expected[i].realAt(k)) << i << " " << k;
    }
  }
}

/// Scaling 5 rows by 1.3 gives 6 rows, but not the ones that the sizes alone would give.
TEST(Resizing, AcceptsTheFormThatDecompositionsLeave) {
  const auto resized = [](std::vector<ir::Attribute> attributes) {
    Network n;
    ir::NodeSpec spec;
    spec.def = aten::findOperator("aten.upsample_nearest2d.default");
    spec.operands = {{n.input({1, 2, 5, 4})}};
    spec.attributes = std::move(attributes);
    spec.types = {{DType::Float32, {1, 2, 6, 4}}};
    const auto node = n.graph.create(std::move(spec));
    n.graph.setOutputs({(*node)->result()});
    EXPECT_TRUE(decompose::replaceComposites(n.graph).ok());
    return (*aten::execute(n.graph, {{randomFloats({1, 2, 5, 4}, 5)}}))[0];
  };
  const auto expected = [](std::optional<Ints> sizes, std::optional<Reals> factors) {
    Network n;
    n.graph.setOutputs(
        {n.make<aten::UpsampleNearest2dVec>(n.input({1, 2, 5, 4}), std::move(sizes), std::move(factors))});
    return (*aten::execute(n.graph, {{randomFloats({1, 2, 5, 4}, 5)}}))[0];
  };
  const Tensor bySizes = expected(Ints{6, 4}, std::nullopt),
               byFactors = expected(std::nullopt, Reals{1.3, 1.0});
  const auto same = [](const Tensor& a, const Tensor& b) {
    const auto x = a.as<float>(), y = b.as<float>();
    return std::equal(x.begin(), x.end(), y.begin(), y.end());
  };
  EXPECT_TRUE(same(resized({Ints{6, 4}, {}, {}}), bySizes));
  EXPECT_TRUE(same(resized({Ints{6, 4}, 1.3, 1.0}), byFactors));
  EXPECT_FALSE(same(bySizes, byFactors));
}

TEST(Padding, ThatCropsEverythingIsTheFillValue) {
  Network n;
  Value* x = n.input({1, 3, 1});
  n.graph.setOutputs({n.make<aten::Pad>(x, Ints{2, -1, 1, 0}, "constant", 0.5),
                      n.make<aten::ConstantPadNd>(x, Ints{-1, 3}, 0.25),
                      n.make<aten::ConstantPadNd>(x, Ints{1, 0, -1, -1}, 0.25)});
  const std::vector<Tensor> input{randomFloats({1, 3, 1}, 5)};
  const auto expected = require(aten::execute(n.graph, input));
  ASSERT_TRUE(decompose::replaceComposites(n.graph).ok());
  for (const ir::Node* node : n.graph.nodes()) {
    EXPECT_FALSE(ir::isa<aten::Pad>(node));
    if (ir::isa<aten::ConstantPadNd>(node)) {
      EXPECT_EQ(node->result()->shape(), (Shape{1, 1, 2}));
    }
  }
  const auto actual = require(aten::execute(n.graph, input));
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(actual[i].shape(), expected[i].shape());
    for (int64_t k = 0; k < expected[i].numElements(); ++k)
      EXPECT_EQ(actual[i].realAt(k), expected[i].realAt(k)) << i << " " << k;
  }
}

TEST(Trapezoid, OfOnePointIsZero) {
  Network n;
  ir::NodeSpec spec;
  spec.def = aten::findOperator("aten.trapezoid.dx");
  spec.operands = {{n.input({3, 1})}};
  spec.attributes = {1.0, int64_t{-1}};
  spec.types = {{DType::Float32, {3}}};
  const auto node = require(n.graph.create(std::move(spec)));
  n.graph.setOutputs({node->result()});
  ASSERT_TRUE(decompose::replaceComposites(n.graph).ok());
  const auto zeros = require(aten::execute(n.graph, {{randomFloats({3, 1}, 5)}}));
  EXPECT_EQ(zeros[0].shape(), (Shape{3}));
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(zeros[0].realAt(i), 0.0);
}

}  // namespace
}  // namespace carina::lower::test
