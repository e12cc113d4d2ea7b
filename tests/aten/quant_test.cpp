// SPDX-License-Identifier: Apache-2.0
// Quantize and dequantize: rounding, clamping and corner cases of their formulas.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

#include "aten/one_op.hpp"

namespace carina::aten::test {
namespace {

const std::string kQuantize = "quantized_decomposed.quantize_per_tensor.default";
Attributes parameters(double scale, int64_t zeroPoint, int64_t low, int64_t high, const std::string& dtype) {
  return {{"scale", fmt::format("{}", scale)},
          {"zero_point", std::to_string(zeroPoint)},
          {"quant_min", std::to_string(low)},
          {"quant_max", std::to_string(high)},
          {"dtype", dtype}};
}

TEST(AtenQuantize, TiesGoToEvenAndLimitsHold) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor q = run(kQuantize, {floats({0.25f, 0.75f, -0.25f, 1e9f, -1e9f, inf, -inf, nan})},
                       parameters(0.5, 0, -128, 127, "i8"));
  EXPECT_EQ(values<int8_t>(q), (std::vector<int8_t>{0, 2, 0, 127, -128, 127, -128, 0}));
}

TEST(AtenQuantize, NanHasTheCodeOfZero) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto codeOfNan = [&](int64_t low, const char* dtype) {
    return run(kQuantize, {floats({nan})}, parameters(0.5, 3, low, 127, dtype)).integerAt(0);
  };
  EXPECT_EQ(codeOfNan(-128, "i8"), 3);
  EXPECT_EQ(codeOfNan(5, "i8"), 5);
  EXPECT_EQ(codeOfNan(-128, "i32"), 3);
}

TEST(AtenQuantize, Int32Saturates) {
  const Tensor q =
      run(kQuantize, {floats({1e20f, -1e20f, 3})}, parameters(1, 0, -2147483648LL, 2147483647LL, "i32"));
  EXPECT_EQ(values<int32_t>(q), (std::vector<int32_t>{2147483647, -2147483647 - 1, 3}));
}

RC_GTEST_PROP(AtenQuantize, MatchesTheFloatFormula, ()) {
  const float x = static_cast<float>(*rc::gen::inRange(-400000, 400000)) / 1000.0f;
  const auto scale = static_cast<double>(static_cast<float>(*rc::gen::inRange(1, 5000)) / 10000.0f);
  const int64_t zeroPoint = *rc::gen::inRange(-128, 128);
  const Tensor q = run(kQuantize, {floats({x})}, parameters(scale, zeroPoint, -128, 127, "i8"));
  const auto inverse = static_cast<float>(1.0 / scale);
  const float expected =
      std::min(127.0f, std::max(-128.0f, std::nearbyint(x * inverse) + static_cast<float>(zeroPoint)));
  RC_ASSERT(q.integerAt(0) == static_cast<int64_t>(expected));
}

TEST(AtenQuantize, ChannelsHaveTheirOwnScale) {
  const Tensor x = Tensor::from<float>({2, 2}, {1, 2, 3, 4}), scales = floats({0.5f, 2}),
               zeros = longs({0, 10});
  const Attributes attributes{{"axis", "0"}, {"quant_min", "-128"}, {"quant_max", "127"}, {"dtype", "i8"}};
  const Tensor q = run("quantized_decomposed.quantize_per_channel.default", {x, scales, zeros}, attributes);
  EXPECT_EQ(values<int8_t>(q), (std::vector<int8_t>{2, 4, 12, 12}));
  const Tensor back =
      run("quantized_decomposed.dequantize_per_channel.default", {q, scales, zeros}, attributes);
  EXPECT_EQ(values<float>(back), (std::vector<float>{1, 2, 4, 4}));
}

TEST(AtenQuantize, ChoosesParametersThatIncludeZero) {
  auto chosen = runGroups("quantized_decomposed.choose_qparams.tensor", {{floats({-1, 3})}},
                          {{"quant_min", "-128"}, {"quant_max", "127"}, {"eps", "1e-10"}, {"dtype", "i8"}});
  ASSERT_TRUE(chosen.ok()) << chosen.error().str();
  EXPECT_NEAR((*chosen)[0].realAt(0), 4.0 / 255, 1e-9);
  EXPECT_EQ((*chosen)[1].integerAt(0), -64);
}

TEST(AtenQuantize, RefusesARangeBeyondTheType) {
  EXPECT_FALSE(runGroups(kQuantize, {{floats({1})}}, parameters(1, 0, -129, 127, "i8")).ok());
}

TEST(AtenQuantize, RefusesNonIntegerZeroPoints) {
  const Attributes attributes{{"axis", "0"}, {"quant_min", "-128"}, {"quant_max", "127"}, {"dtype", "i8"}};
  EXPECT_FALSE(runGroups("quantized_decomposed.quantize_per_channel.default",
                         {{floats({1, 2})}, {floats({1, 1})}, {floats({0, 0})}}, attributes)
                   .ok());
}

}  // namespace
}  // namespace carina::aten::test
