// SPDX-License-Identifier: Apache-2.0
// Edge cases of single operators; the expected values are PyTorch's.
#include <cmath>
#include <limits>

#include "aten/compare.hpp"
#include "aten/one_op.hpp"
#include "support/require.hpp"

namespace carina::aten::test {
namespace {

using ::testing::Test;
const float kInf = std::numeric_limits<float>::infinity();
const float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(AtenKernels, RoundGoesToEven) {
  EXPECT_EQ(values<float>(run("aten.round.default", {floats({0.5f, 1.5f, 2.5f, -0.5f, -1.5f})})),
            (std::vector<float>{0, 2, 2, -0.0f, -2}));
}

TEST(AtenKernels, FloorDivisionAndRemainderFollowTheDivisor) {
  EXPECT_EQ(values<int64_t>(run("aten.floor_divide.default", {longs({7, -7, 7, -7}), longs({-2, 2, 2, -2})})),
            (std::vector<int64_t>{-4, -4, 3, 3}));
  EXPECT_EQ(values<int64_t>(run("aten.remainder.Tensor", {longs({-7, 7}), longs({3, -3})})),
            (std::vector<int64_t>{2, -2}));
  EXPECT_EQ(values<float>(run("aten.floor_divide.default", {floats({1.0f}), floats({0.1f})})),
            (std::vector<float>{9}));
  const auto remainders = values<float>(run("aten.remainder.Tensor", {floats({5, -1}), floats({0, kInf})}));
  EXPECT_TRUE(std::isnan(remainders[0]));
  EXPECT_EQ(remainders[1], kInf);
  EXPECT_FALSE(runGroups("aten.floor_divide.default", {{longs({1})}, {longs({0})}}).ok());
}

TEST(AtenKernels, ScalarsTakeTheTensorsTypeBeforeComparing) {
  const Tensor small = Tensor::from<int8_t>({1}, {100});
  EXPECT_EQ(values<uint8_t>(run("aten.lt.Scalar", {small}, {{"other", "300"}})), (std::vector<uint8_t>{0}));
}

TEST(AtenKernels, IntegersWrap) {
  EXPECT_EQ(values<int8_t>(run("aten.abs.default", {Tensor::from<int8_t>({2}, {-128, -5})})),
            (std::vector<int8_t>{-128, 5}));
  EXPECT_EQ(values<uint8_t>(run("aten.neg.default", {Tensor::from<uint8_t>({1}, {1})})),
            (std::vector<uint8_t>{255}));
  EXPECT_EQ(
      values<int64_t>(run("aten.bitwise_right_shift.Tensor_Scalar", {longs({-5, 5})}, {{"other", "64"}})),
      (std::vector<int64_t>{-1, 0}));
  EXPECT_EQ(values<int64_t>(run("aten.bitwise_left_shift.Tensor_Scalar", {longs({1})}, {{"other", "64"}})),
            (std::vector<int64_t>{0}));
}

TEST(AtenKernels, NanPropagatesThroughExtrema) {
  for (const std::string op : {"aten.maximum.default", "aten.minimum.default"}) {
    const auto result = values<float>(run(op, {floats({kNan, 1, 2}), floats({0, kNan, 3})}));
    EXPECT_TRUE(std::isnan(result[0]) && std::isnan(result[1])) << op;
    EXPECT_EQ(result[2], op == "aten.maximum.default" ? 3 : 2);
  }
  EXPECT_EQ(values<int64_t>(run("aten.argmax.default", {floats({1, kNan, 5, kNan})})),
            (std::vector<int64_t>{1}));
  EXPECT_EQ(values<int64_t>(run("aten.argmin.default", {floats({3, 1, 1})})), (std::vector<int64_t>{1}));
  EXPECT_TRUE(std::isnan(values<float>(run("aten.relu.default", {floats({kNan})}))[0]));
  EXPECT_TRUE(std::signbit(values<float>(run("aten.relu.default", {floats({-0.0f})}))[0]));
}

TEST(AtenKernels, PowersOfIntegers) {
  EXPECT_EQ(values<int64_t>(run("aten.pow.Tensor_Tensor", {longs({2, -1, 1, 3}), longs({-1, -3, -5, 4})})),
            (std::vector<int64_t>{0, -1, 1, 81}));
}

TEST(AtenKernels, ClampPrefersTheUpperBound) {
  EXPECT_EQ(values<float>(run("aten.clamp.default", {floats({0, 5, 10})}, {{"min", "8.0"}, {"max", "3.0"}})),
            (std::vector<float>{3, 3, 3}));
  const Tensor promoted = run("aten.clamp.default", {longs({0, 5})}, {{"max", "2.5"}});
  EXPECT_EQ(values<float>(promoted), (std::vector<float>{0, 2.5f}));
}

TEST(AtenKernels, GeluSupportsBothForms) {
  EXPECT_NEAR(values<float>(run("aten.gelu.default", {floats({1})}))[0], 0.8413447f, 1e-6);
  EXPECT_NEAR(values<float>(run("aten.gelu.default", {floats({1})}, {{"approximate", "tanh"}}))[0],
              0.8411920f, 1e-6);
}

TEST(AtenKernels, AveragePoolDividesAsTorchDoes) {
  std::vector<float> counting(16);
  for (size_t i = 0; i < 16; ++i) counting[i] = static_cast<float>(i);
  const Tensor image = Tensor::from<float>({1, 1, 4, 4}, counting);
  EXPECT_EQ(values<float>(run("aten.avg_pool2d.default", {image},
                              {{"kernel_size", "[3]"}, {"stride", "[2]"}, {"ceil_mode", "True"}})),
            (std::vector<float>{5, 6.5f, 11, 12.5f}));
  const auto padded = values<float>(
      run("aten.avg_pool2d.default", {image},
          {{"kernel_size", "[3]"}, {"stride", "[2]"}, {"padding", "[1]"}, {"ceil_mode", "True"}}));
  EXPECT_EQ(padded.back(), 3.75f);
}

TEST(AtenKernels, ReductionsOfEmptyDimensions) {
  const Tensor empty = Tensor::zeros(DType::Float32, {2, 0});
  EXPECT_EQ(values<float>(run("aten.sum.dim_IntList", {empty}, {{"dim", "[1]"}})),
            (std::vector<float>{0, 0}));
  EXPECT_TRUE(std::isnan(values<float>(run("aten.mean.dim", {empty}, {{"dim", "[1]"}}))[0]));
  EXPECT_FALSE(runGroups("aten.amax.default", {{empty}}, {{"dim", "[1]"}}).ok());
}

TEST(AtenKernels, AnyDimsWithoutDimensionsReducesNone) {
  EXPECT_EQ(run("aten.any.dims", {floats({0, 2})}, {{"dim", "[]"}}).shape(), (Shape{2}));
  EXPECT_EQ(run("aten.any.dims", {floats({0, 2})}, {{"dim", "None"}}).shape(), Shape{});
}

TEST(AtenKernels, NearestAndLinearResizing) {
  const Tensor line = Tensor::from<float>({1, 1, 4}, {0, 1, 2, 3});
  EXPECT_EQ(values<float>(run("aten.upsample_nearest1d.vec", {line},
                              {{"output_size", "[7]"}, {"scale_factors", "None"}})),
            (std::vector<float>{0, 0, 1, 1, 2, 2, 3}));
  EXPECT_EQ(values<float>(run("aten._upsample_nearest_exact1d.vec", {line},
                              {{"output_size", "[7]"}, {"scale_factors", "None"}})),
            (std::vector<float>{0, 0, 1, 2, 2, 3, 3}));
  // Scaling 2 rows by 2.25 gives 4 rows, for which PyTorch doubles the rows of images whatever the factor;
  // likewise, a factor of 1.3 copies 2 rows. For 1-D and 3-D tensors it uses the factor.
  const auto byFactor = [&](const char* name, const Shape& shape, const char* factors) {
    return values<float>(run(name, {Tensor::from<float>(shape, {5, 7})},
                             {{"output_size", "None"}, {"scale_factors", factors}}));
  };
  const auto rows = [&](const char* factors) {
    return byFactor("aten.upsample_nearest2d.vec", {1, 1, 2, 1}, factors);
  };
  EXPECT_EQ(rows("[2.25, 1.0]"), (std::vector<float>{5, 5, 7, 7}));
  EXPECT_EQ(rows("[1.3, 1.0]"), (std::vector<float>{5, 7}));
  EXPECT_EQ(rows("[2.6, 1.0]"), (std::vector<float>{5, 5, 5, 7, 7}));
  EXPECT_EQ(byFactor("aten.upsample_nearest1d.vec", {1, 1, 2}, "[2.25]"), (std::vector<float>{5, 5, 5, 7}));
  EXPECT_EQ(byFactor("aten.upsample_nearest3d.vec", {1, 1, 1, 2, 1}, "[1.0, 1.3, 1.0]"),
            (std::vector<float>{5, 5}));
  const Tensor linear =
      run("aten.upsample_linear1d.vec", {line},
          {{"output_size", "None"}, {"align_corners", "False"}, {"scale_factors", "[1.7]"}});
  EXPECT_TRUE(close(
      linear, Tensor::from<float>({1, 1, 6}, {0, .382353f, .970588f, 1.558824f, 2.147059f, 2.735294f})));
}

TEST(AtenKernels, IndexPutsTheJointDimensionFirstIfIndicesAreSeparated) {
  const Tensor self = Tensor::zeros(DType::Float32, {2, 3, 4});
  const Tensor two = longs({0, 1});
  auto separated = require(runGroups("aten.index.Tensor", {{self}, {two, std::nullopt, two}}));
  EXPECT_EQ(separated.front().shape(), (Shape{2, 3}));
  auto adjacent = require(runGroups("aten.index.Tensor", {{self}, {std::nullopt, two, two}}));
  EXPECT_EQ(adjacent.front().shape(), (Shape{2, 2}));
  EXPECT_FALSE(runGroups("aten.index.Tensor", {{self}, {longs({2})}}).ok());
}

TEST(AtenKernels, ScatterReduceCountsSelf) {
  const Attributes mean{{"dim", "0"}, {"reduce", "mean"}};
  const std::vector<Tensor> operands{floats({1, 1, 1}), longs({0, 0, 1}), floats({2, 4, 6})};
  EXPECT_TRUE(close(run("aten.scatter_reduce.two", operands, mean), floats({7.0f / 3, 3.5f, 1})));
  Attributes without = mean;
  without.emplace_back("include_self", "False");
  EXPECT_TRUE(close(run("aten.scatter_reduce.two", operands, without), floats({3, 6, 1})));
}

TEST(AtenKernels, AttentionIsZeroForFullyMaskedRows) {
  const Tensor q = Tensor::from<float>({1, 2, 2}, {1, 0, 0, 1});
  Tensor mask = Tensor::zeros(DType::Bool, {2, 2});
  mask.mutableAs<uint8_t>()[0] = 1;
  const Tensor out = run("aten.scaled_dot_product_attention.default", {q, q, q, mask});
  EXPECT_EQ(values<float>(out), (std::vector<float>{1, 0, 0, 0}));
}

TEST(AtenKernels, HalfPrecisionIsComputedInFloat) {
  const Tensor half = run("aten.to.dtype", {floats({1, 1.0f / 3})},
                          {{"dtype", "f16"}, {"non_blocking", "False"}, {"copy", "False"}});
  const Tensor sum = run("aten.add.Scalar", {half}, {{"other", "1.5"}});
  EXPECT_EQ(sum.dtype(), DType::Float16);
  EXPECT_NEAR(sum.realAt(1), 1.8334, 1e-3);
}

TEST(AtenKernels, SortIsStableWithNanLast) {
  auto sorted = require(runGroups("aten.sort.default", {{floats({2, kNan, 1, 2})}}));
  EXPECT_EQ(values<int64_t>(sorted[1]), (std::vector<int64_t>{2, 0, 3, 1}));
}

TEST(AtenKernels, Ndtr) {
  const auto y = values<float>(run("aten.special_ndtr.default", {floats({-1.5f, 0, 0.7f, 2})}));
  const std::vector<float> expected{0.06680721044540405f, 0.5f, 0.7580363750457764f,
                                    0.9772498607635498f};  // from PyTorch
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(y[i], expected[i], 2e-6f * std::max(1.0f, expected[i]));
}

TEST(AtenKernels, Erfcx) {
  const auto y = values<float>(run("aten.special_erfcx.default", {floats({-1.5f, 0, 0.7f, 30})}));
  const std::vector<float> expected{18.653886795043945f, 1, 0.5259303450584412f,
                                    0.018795888870954514f};  // from PyTorch
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(y[i], expected[i], 2e-6f * std::max(1.0f, expected[i]));
}

TEST(AtenKernels, BesselJ0) {
  const auto y = values<float>(run("aten.special_bessel_j0.default", {floats({-1.5f, 0, 0.7f, 2})}));
  const std::vector<float> expected{0.5118276476860046f, 1, 0.8812008500099182f,
                                    0.2238907665014267f};  // from PyTorch
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(y[i], expected[i], 2e-6f * std::max(1.0f, expected[i]));
}

}  // namespace
}  // namespace carina::aten::test
