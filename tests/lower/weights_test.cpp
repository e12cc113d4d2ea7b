// SPDX-License-Identifier: Apache-2.0
// Weights and biases that are given by the network.
#include <gtest/gtest.h>

#include "aten/ops.hpp"
#include "lower/lower.hpp"

namespace carina::lower {
namespace {

/// A linear layer on codes of `type`, with weights of scale `weightScale` and a bias of 3.
Result<ir::Graph> layer(DType type, double weightScale) {
  ir::Graph graph;
  ir::Builder b(graph);
  const auto dequantized = [&](ir::Value* codes, double scale) {
    const DType dtype = codes->dtype();
    return aten::DequantizePerTensor::create(b, codes, scale, 0, -integerMax(dtype), integerMax(dtype), dtype,
                                             std::nullopt)
        .output();
  };
  ir::Value* x = dequantized(graph.addInput({type, {4, 8}}, "x"), 1e-3);
  ir::Value* weight = dequantized(b.constant(Tensor::zeros(DType::Int8, {2, 8})), weightScale);
  ir::Value* bias = b.constant(Tensor::from<float>({2}, {3, 3}));
  ir::Value* y = aten::Linear::create(b, x, weight, bias).output();
  graph.setOutputs(
      {aten::QuantizePerTensor::create(b, y, 1e-3, 0, -integerMax(type), integerMax(type), type).output()});
  return lowerToTosa(graph);
}

void expectLimit(DType type, double allowed, double tooFine, const std::string& text) {
  EXPECT_TRUE(layer(type, allowed).ok());
  const auto refused = layer(type, tooFine);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().str().find(text), std::string::npos) << refused.error().str();
}

TEST(Weights, BiasesBeyondTheAccumulatorAreRefused) {
  expectLimit(DType::Int16, 1e-9, 1e-12, "beyond sums of 48 bits");
  expectLimit(DType::Int8, 1e-5, 1e-9, "beyond sums of 32 bits");
}

}  // namespace
}  // namespace carina::lower
