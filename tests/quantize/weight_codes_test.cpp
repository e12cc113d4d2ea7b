// SPDX-License-Identifier: Apache-2.0
// Scales of weights.
#include "quantize/weight_codes.hpp"

#include <gtest/gtest.h>

#include "aten/ops.hpp"
#include "small_network.hpp"

namespace carina::quantize {
namespace {

TEST(WeightCodes, LeaveBiasesOf16BitLayersTheirRoom) {
  Network n;
  Value* weight = n.graph.addConstant(ramp({6, 8}, -1e-9f, 1e-9f));
  Value* y = aten::Linear::create(n.b, n.input({4, 8}), weight, n.constant({6}, 3, 4)).output();
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

}  // namespace
}  // namespace carina::quantize
