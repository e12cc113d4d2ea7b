// SPDX-License-Identifier: Apache-2.0
// Scales of weights.
#include "quantize/weight_codes.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "aten/ops.hpp"
#include "small_network.hpp"

namespace carina::quantize {
namespace {

TEST(WeightCodes, LeaveRangeForBiasesOf16BitLayers) {
  Network n;
  Value* weight = n.graph.addConstant(ramp({6, 8}, -1e-9f, 1e-9f));
  Value* y = n.make<aten::Linear>(n.input({4, 8}), weight, n.constant({6}, 3, 4));
  const auto layer = asWeighted(*y->producer());
  ASSERT_TRUE(layer);
  constexpr double kInput = 1e-6;
  Settings settings;
  settings.precision = Precision::Int16x8;
  const WeightCodes codes = quantizeWeight(*layer, {kInput, 1e-4}, settings);
  ASSERT_EQ(codes.scales.size(), 6u);
  for (size_t c = 0; c < 6; ++c) {
    const double units = layer->bias->constant().realAt(static_cast<int64_t>(c)) / (kInput * codes.scales[c]);
    EXPECT_LE(units, 0x1.01p38);
    EXPECT_GE(units, 0x1p37);
  }
}

/// Values distributed like weights: most are small.
Tensor bellShaped(const Shape& shape) {
  Tensor tensor = Tensor::uninitialized(DType::Float32, shape);
  const auto values = tensor.mutableAs<float>();
  for (size_t i = 0; i < values.size(); ++i) {
    const float x = static_cast<float>(i * 7919 % 1009) / 504 - 1;  // -1 to 1, evenly
    values[i] = x * x * x;
  }
  return tensor;
}

int largestCode(const WeightCodes& weight) {
  int largest = 0;
  for (const int8_t code : weight.codes.as<int8_t>()) largest = std::max(largest, std::abs(int{code}));
  return largest;
}

TEST(WeightCodes, OfFewerBitsUseExactlyTheirRange) {
  const Tensor weight = bellShaped({6, 64});
  for (const bool perChannel : {true, false}) {
    double before = 1000;
    for (int bits = kMaxWeightBits; bits >= kMinWeightBits; --bits) {
      const WeightCodes codes = quantizeWeight(weight, 0, perChannel, weightRange(bits));
      EXPECT_EQ(largestCode(codes), (1 << (bits - 1)) - 1);
      EXPECT_EQ(codes.scales.size(), perChannel ? 6u : 1u);
      const double decibels = codes.sqnr(weight).decibels();
      EXPECT_LT(decibels, before);
      EXPECT_GT(decibels, 6 * bits - 8) << bits;
      before = decibels;
    }
  }
}

TEST(WeightCodes, OfFourBitsClipOutliersIfThatReducesTheError) {
  Tensor weight = ramp({1, 64}, -0.5f, 0.5f);
  weight.mutableAs<float>()[9] = 1;
  const WeightCodes codes = quantizeWeight(weight, 0, true, weightRange(4));
  EXPECT_LT(codes.scales[0], 0.95f / 7);
  EXPECT_EQ(codes.codes.as<int8_t>()[9], 7);
  // The sums of squared errors at the scale of the largest weight and at the chosen scale.
  double plain = 0, chosen = 0;
  const auto values = weight.as<float>();
  for (size_t i = 0; i < values.size(); ++i) {
    plain += std::pow(values[i] - weightCode(values[i] * 7, 7) / 7, 2);
    chosen += std::pow(values[i] - codes.codes.as<int8_t>()[i] * codes.scales[0], 2);
  }
  EXPECT_LT(chosen, plain);
}

}  // namespace
}  // namespace carina::quantize
