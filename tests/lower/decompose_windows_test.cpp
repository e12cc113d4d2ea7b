// SPDX-License-Identifier: Apache-2.0
// Pools, resizing, padding and sampling in every rank, as what lowering has rules for.
#include <algorithm>
#include <cmath>

#include "decompose/composites.hpp"
#include "decomposed_case.hpp"

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

// One TRANSPOSE to the channel-last order and one back. Averages differ where a sum lies on the edge between
// two codes; behind them, another scale makes more of a code.
const Case kPools[] = {
    {"max_pool3d",
     [](Network& n) {
       return aten::MaxPool3d::create(n.b, n.input(kVolume), Ints{3, 2, 2}, Ints{2, 2, 1}, Ints{1, 0, 1},
                                      Ints{1, 1, 1}, false)
           .output();
     },
     2, 0},
    {"max_pool3d_dilated_ceil",
     [](Network& n) {
       return aten::MaxPool3dWithIndices::create(n.b, n.input(kVolume), Ints{2, 2, 3}, Ints{2, 2, 2},
                                                 Ints{1, 1, 1}, Ints{2, 3, 1}, true)
           .node()
           ->result(0);
     },
     -1, 0},
    {"max_pool3d_of_one_sample_and_the_depth_alone",
     [](Network& n) {
       return aten::MaxPool3d::create(n.b, n.input({3, 7, 4, 5}), Ints{3, 1, 1}, Ints{2, 1, 1}, Ints{0, 0, 0},
                                      Ints{1, 1, 1}, false)
           .output();
     },
     -1, 0},
    {"avg_pool3d",
     [](Network& n) {
       return aten::AvgPool3d::create(n.b, n.input(kVolume), Ints{3, 2, 3}, Ints{2, 2, 1}, Ints{1, 1, 0},
                                      false, true, std::nullopt)
           .output();
     },
     2, 0.2},
    {"avg_pool3d_ceil_uncounted",
     [](Network& n) {
       return aten::AvgPool3d::create(n.b, n.input(kVolume), Ints{3, 3, 3}, Ints{2, 2, 2}, Ints{1, 1, 1},
                                      true, false, std::nullopt)
           .output();
     },
     -1, 0.2},
    {"avg_pool3d_divisor",
     [](Network& n) {
       return aten::AvgPool3d::create(n.b, n.input(kVolume), Ints{2, 2, 2}, Ints{2, 2, 2}, Ints{1, 1, 1},
                                      false, true, int64_t{5})
           .output();
     },
     -1, 0.5, 8},
    {"adaptive_avg_pool3d_uneven",
     [](Network& n) {
       return aten::AdaptiveAvgPool3d::create(n.b, n.input(kVolume), Ints{3, 4, 2}).output();
     },
     -1, 0.2},
    {"adaptive_avg_pool3d_of_everything",
     [](Network& n) {
       return aten::AdaptiveAvgPool3d::create(n.b, n.input(kVolume), Ints{1, 1, 1}).output();
     },
     -1, 0.1},
    {"adaptive_avg_pool2d_in_phases",
     [](Network& n) {
       return aten::AdaptiveAvgPool2d::create(n.b, n.input({2, 3, 8, 9}), Ints{6, 6}).output();
     },
     -1, 0.2},
    {"adaptive_avg_pool1d_grows",
     [](Network& n) {
       return aten::AdaptiveAvgPool1d::create(n.b, n.input({2, 3, 5}), Ints{7}).output();
     },
     -1, 0.2},
    {"adaptive_max_pool1d",
     [](Network& n) {
       return aten::AdaptiveMaxPool1d::create(n.b, n.input({3, 10}), Ints{4}).node()->result(0);
     },
     -1, 0},
    {"adaptive_max_pool2d_by_rows_and_columns",
     [](Network& n) {
       return aten::AdaptiveMaxPool2d::create(n.b, n.input({1, 2, 11, 13}), Ints{9, 10}).node()->result(0);
     },
     -1, 0},
    {"adaptive_max_pool3d",
     [](Network& n) {
       return aten::AdaptiveMaxPool3d::create(n.b, n.input(kVolume), Ints{2, 3, 5}).node()->result(0);
     },
     -1, 0},
};
INSTANTIATE_TEST_SUITE_P(Pools, Windows, testing::ValuesIn(kPools),
                         [](const auto& param) { return std::string(param.param.name); });

// Volumes are rounded twice.
const Case kResizing[] = {
    {"nearest1d",
     [](Network& n) {
       return aten::UpsampleNearest1dVec::create(n.b, n.input({2, 3, 7}), std::nullopt, Reals{2.5}).output();
     },
     -1, 0},
    {"nearest3d",
     [](Network& n) {
       return aten::UpsampleNearest3dVec::create(n.b, n.input({2, 2, 3, 4, 5}), Ints{6, 3, 8}, std::nullopt)
           .output();
     },
     -1, 0},
    {"nearest3d_by_factors_that_keep_and_double",  // rows 0, 0 and columns 0, 0, 0, 1, which images do not
                                                   // give
     [](Network& n) {
       return aten::UpsampleNearest3dVec::create(n.b, n.input({2, 2, 3, 2, 2}), std::nullopt,
                                                 Reals{2.0, 1.3, 2.2})
           .output();
     },
     -1, 0},
    {"nearest_of_an_inexact_factor",
     [](Network& n) {
       return aten::UpsampleNearest2dVec::create(n.b, n.input({1, 2, 7, 9}), std::nullopt, Reals{1.7, 0.6})
           .output();
     },
     -1, 0},
    {"nearest_every_40th",
     [](Network& n) {
       return aten::UpsampleNearest2dVec::create(n.b, n.input({1, 2, 1, 120}), Ints{1, 3}, std::nullopt)
           .output();
     },
     -1, 0},
    {"nearest_exact1d",
     [](Network& n) {
       return aten::PrivateUpsampleNearestExact1dVec::create(n.b, n.input({2, 3, 7}), Ints{4}, std::nullopt)
           .output();
     },
     -1, 0},
    {"nearest_exact2d",
     [](Network& n) {
       return aten::PrivateUpsampleNearestExact2dVec::create(n.b, n.input({2, 3, 5, 12}), Ints{8, 3},
                                                             std::nullopt)
           .output();
     },
     -1, 0},
    {"nearest_exact3d",
     [](Network& n) {
       return aten::PrivateUpsampleNearestExact3dVec::create(n.b, n.input({1, 2, 3, 4, 5}), std::nullopt,
                                                             Reals{2.0, 1.5, 0.5})
           .output();
     },
     -1, 0},
    {"linear1d",
     [](Network& n) {
       return aten::UpsampleLinear1dVec::create(n.b, n.input({2, 3, 7}), Ints{11}, false, std::nullopt)
           .output();
     },
     -1, 0.2},
    {"bilinear_of_an_inexact_factor",
     [](Network& n) {
       return aten::UpsampleBilinear2dVec::create(n.b, n.input({1, 2, 7, 6}), std::nullopt, false,
                                                  Reals{1.7, 0.7})
           .output();
     },
     -1, 0.2},
    {"bilinear_to_one_aligned_row",
     [](Network& n) {
       return aten::UpsampleBilinear2dVec::create(n.b, n.input({1, 2, 7, 6}), Ints{1, 4}, true, std::nullopt)
           .output();
     },
     -1, 0.2},
    {"bilinear_every_20th",
     [](Network& n) {
       return aten::UpsampleBilinear2dVec::create(n.b, n.input({1, 2, 3, 60}), Ints{4, 3}, false,
                                                  std::nullopt)
           .output();
     },
     -1, 0.2},
    {"trilinear",
     [](Network& n) {
       return aten::UpsampleTrilinear3dVec::create(n.b, n.input({2, 2, 3, 4, 5}), Ints{5, 8, 5}, false,
                                                   std::nullopt)
           .output();
     },
     -1, 0.3, 2},
    {"trilinear_aligned",
     [](Network& n) {
       return aten::UpsampleTrilinear3dVec::create(n.b, n.input({1, 2, 3, 4, 5}), std::nullopt, true,
                                                   Reals{2.0, 1.5, 1.0})
           .output();
     },
     -1, 0.3, 2},
    {"bicubic",
     [](Network& n) {
       return aten::UpsampleBicubic2dVec::create(n.b, n.input({2, 3, 5, 6}), Ints{9, 4}, false, std::nullopt)
           .output();
     },
     -1, 0.2},
    {"bicubic_aligned",
     [](Network& n) {
       return aten::UpsampleBicubic2dVec::create(n.b, n.input({1, 3, 5, 6}), std::nullopt, true,
                                                 Reals{2.0, 1.0})
           .output();
     },
     -1, 0.2},
    {"bilinear_antialiased",
     [](Network& n) {
       return aten::PrivateUpsampleBilinear2dAaVec::create(n.b, n.input({1, 3, 9, 10}), Ints{4, 5}, false,
                                                           std::nullopt)
           .output();
     },
     -1, 0.2},
    {"bicubic_antialiased",
     [](Network& n) {
       return aten::PrivateUpsampleBicubic2dAaVec::create(n.b, n.input({1, 3, 9, 10}), Ints{12, 5}, false,
                                                          std::nullopt)
           .output();
     },
     -1, 0.2},
};
INSTANTIATE_TEST_SUITE_P(Resizing, Windows, testing::ValuesIn(kResizing),
                         [](const auto& param) { return std::string(param.param.name); });

const Case kSampling[] = {
    {"im2col_of_one_image",
     [](Network& n) {
       return aten::Im2col::create(n.b, n.input({3, 5, 6}), Ints{2, 3}, Ints{1, 1}, Ints{1, 0}, Ints{2, 1})
           .output();
     },
     -1, 0},
    {"col2im_of_one_image",
     [](Network& n) {
       return aten::Col2im::create(n.b, n.input({12, 12}), Ints{8, 6}, Ints{2, 2}, Ints{1, 1}, Ints{0, 0},
                                   Ints{2, 2})
           .output();
     },
     -1, 0.2},
    {"kernels_of_the_network",
     [](Network& n) {
       return aten::Conv2d::create(n.b, n.input({2, 4, 6, 5}), n.input({6, 2, 3, 2}), n.weight({6}),
                                   Ints{2, 1}, Ints{1, 2}, Ints{1, 2}, int64_t{2})
           .output();
     },
     -1, 0.2},
    {"one_kernel_per_channel_of_a_line",
     [](Network& n) {
       return aten::Conv1dPadding::create(n.b, n.input({5, 9}), n.input({5, 1, 4}), nullptr, Ints{1}, "same",
                                          Ints{1}, int64_t{5})
           .output();
     },
     -1, 0.2},
    {"reflection_pad3d",
     [](Network& n) {
       return aten::ReflectionPad3d::create(n.b, n.input({2, 3, 4, 5}), Ints{2, 1, 0, 3, 1, 2}).output();
     },
     -1, 0},
    {"replication_pad3d",
     [](Network& n) {
       return aten::ReplicationPad3d::create(n.b, n.input({1, 2, 3, 4, 5}), Ints{2, 1, 0, 3, 1, 2}).output();
     },
     -1, 0},
    {"grid_sampler_at_known_positions",
     [](Network& n) {
       return aten::GridSampler2d::create(n.b, n.input({2, 3, 4, 5}), n.weight({2, 3, 2, 2}, 0.8f),
                                          int64_t{0}, int64_t{0}, false)
           .output();
     },
     -1, 0.2},
    {"grid_sampler_cubic_reflected",
     [](Network& n) {
       return aten::GridSampler::create(n.b, n.input({1, 3, 4, 5}), n.weight({1, 3, 2, 2}, 0.8f), int64_t{2},
                                        int64_t{2}, true)
           .output();
     },
     -1, 0.2},
    {"grid_sampler_of_volumes",
     [](Network& n) {
       return aten::GridSampler::create(n.b, n.input({1, 2, 3, 4, 5}), n.weight({1, 2, 3, 2, 3}, 0.8f),
                                        int64_t{1}, int64_t{1}, false)
           .output();
     },
     -1, 0.2},
};
INSTANTIATE_TEST_SUITE_P(Sampling, Windows, testing::ValuesIn(kSampling),
                         [](const auto& param) { return std::string(param.param.name); });

/// Values that occur often, so that equal ones meet in a window.
TEST(MaxPoolVolume, IndicesNumberTheVolume) {
  const Ints kernel{2, 3, 2}, stride{1, 2, 3}, padding{1, 1, 0}, dilation{2, 1, 1};
  for (const bool ceil : {false, true}) {
    Network n;
    const auto pool = aten::MaxPool3dWithIndices::create(n.b, n.input({2, 2, 5, 6, 7}), kernel, stride,
                                                         padding, dilation, ceil);
    n.graph.setOutputs(pool.node()->results());
    Tensor volume = randomFloats({2, 2, 5, 6, 7}, 5);
    for (float& value : volume.mutableAs<float>()) value = std::round(2 * value);
    const auto expected = aten::execute(n.graph, {{volume}});
    ASSERT_TRUE(expected.ok()) << expected.error().str();
    ASSERT_TRUE(decompose::replaceComposites(n.graph).ok());
    for (const ir::Node* node : n.graph.nodes()) EXPECT_FALSE(ir::isa<aten::MaxPool3dWithIndices>(node));
    const auto actual = aten::execute(n.graph, {{volume}});
    ASSERT_TRUE(actual.ok()) << actual.error().str();
    for (size_t i = 0; i < 2; ++i) {
      ASSERT_EQ((*actual)[i].shape(), (*expected)[i].shape());
      for (int64_t k = 0; k < (*expected)[i].numElements(); ++k)
        ASSERT_EQ((*actual)[i].realAt(k), (*expected)[i].realAt(k)) << i << " " << k;
    }
  }
}

/// 5 rows by 1.3 are 6, and not the rows that the sizes alone would give.
TEST(Resizing, ByTheFormThatDecompositionsLeave) {
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
        {aten::UpsampleNearest2dVec::create(n.b, n.input({1, 2, 5, 4}), std::move(sizes), std::move(factors))
             .output()});
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

TEST(Padding, ThatTakesAllAwayIsTheValue) {
  Network n;
  Value* x = n.input({1, 3, 1});
  n.graph.setOutputs({aten::Pad::create(n.b, x, Ints{2, -1, 1, 0}, "constant", 0.5).output(),
                      aten::ConstantPadNd::create(n.b, x, Ints{-1, 3}, 0.25).output(),
                      aten::ConstantPadNd::create(n.b, x, Ints{1, 0, -1, -1}, 0.25).output()});
  const std::vector<Tensor> input{randomFloats({1, 3, 1}, 5)};
  const auto expected = aten::execute(n.graph, input);
  ASSERT_TRUE(expected.ok()) << expected.error().str();
  ASSERT_TRUE(decompose::replaceComposites(n.graph).ok());
  for (const ir::Node* node : n.graph.nodes()) {
    EXPECT_FALSE(ir::isa<aten::Pad>(node));
    if (ir::isa<aten::ConstantPadNd>(node)) {
      EXPECT_EQ(node->result()->shape(), (Shape{1, 1, 2}));
    }
  }
  const auto actual = aten::execute(n.graph, input);
  ASSERT_TRUE(actual.ok()) << actual.error().str();
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_EQ((*actual)[i].shape(), (*expected)[i].shape());
    for (int64_t k = 0; k < (*expected)[i].numElements(); ++k)
      EXPECT_EQ((*actual)[i].realAt(k), (*expected)[i].realAt(k)) << i << " " << k;
  }
}

TEST(Trapezoid, OfOnePointIsZero) {
  Network n;
  ir::NodeSpec spec;
  spec.def = aten::findOperator("aten.trapezoid.dx");
  spec.operands = {{n.input({3, 1})}};
  spec.attributes = {1.0, int64_t{-1}};
  spec.types = {{DType::Float32, {3}}};
  const auto node = n.graph.create(std::move(spec));
  ASSERT_TRUE(node.ok()) << node.error().str();
  n.graph.setOutputs({(*node)->result()});
  ASSERT_TRUE(decompose::replaceComposites(n.graph).ok());
  const auto zeros = aten::execute(n.graph, {{randomFloats({3, 1}, 5)}});
  ASSERT_TRUE(zeros.ok()) << zeros.error().str();
  EXPECT_EQ((*zeros)[0].shape(), (Shape{3}));
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ((*zeros)[0].realAt(i), 0.0);
}

}  // namespace
}  // namespace carina::lower::test
