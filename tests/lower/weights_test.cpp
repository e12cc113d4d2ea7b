// SPDX-License-Identifier: Apache-2.0
// Weights and biases that a network brings.
#include <gtest/gtest.h>

#include "aten/ops.hpp"
#include "lower/lower.hpp"

namespace carina::lower {
namespace {

/// A linear layer of int16 codes with weights of that scale and a bias of 3.
Result<ir::Graph> layer(double weightScale) {
  ir::Graph graph;
  ir::Builder b(graph);
  const auto dequantized = [&](ir::Value* codes, double scale) {
    const DType dtype = codes->dtype();
    return aten::DequantizePerTensor::create(b, codes, scale, 0, -integerMax(dtype), integerMax(dtype), dtype,
                                             std::nullopt)
        .output();
  };
  ir::Value* x = dequantized(graph.addInput({DType::Int16, {4, 8}}, "x"), 1e-3);
  ir::Value* weight = dequantized(b.constant(Tensor::zeros(DType::Int8, {2, 8})), weightScale);
  ir::Value* bias = b.constant(Tensor::from<float>({2}, {3, 3}));
  ir::Value* y = aten::Linear::create(b, x, weight, bias).output();
  graph.setOutputs({aten::QuantizePerTensor::create(b, y, 1e-3, 0, -32767, 32767, DType::Int16).output()});
  return lowerToTosa(graph);
}

TEST(Weights, BiasesBeyond48BitSumsAreRefused) {
  EXPECT_TRUE(layer(1e-9).ok());
  const auto refused = layer(1e-12);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().str().find("beyond sums of 48 bits"), std::string::npos) << refused.error().str();
}

}  // namespace
}  // namespace carina::lower
