// SPDX-License-Identifier: Apache-2.0
// Networks that already contain quantize and dequantize nodes: equivalent forms denote the same codes.
#include "quantize/prequantized.hpp"

#include <gtest/gtest.h>

#include "aten/executor.hpp"
#include "small_network.hpp"
#include "support/require.hpp"

namespace carina::quantize {
namespace {

struct Codes {
  double scale;
  int64_t zero;
  int64_t low, high;
  DType dtype;
};
constexpr Codes kUInt8{0.02, 120, 0, 255, DType::UInt8}, kInt8{0.02, -8, -128, 127, DType::Int8},
    kWeight{0.01, 0, -127, 127, DType::Int8}, kBias{0.0002, 0, -2147483647 - 1, 2147483647, DType::Int32};

struct QuantizedNetwork : Network {
  Value* quantize(Value* x, const Codes& c) {
    return make<aten::QuantizePerTensor>(x, c.scale, c.zero, c.low, c.high, c.dtype);
  }
  Value* dequantize(Value* q, const Codes& c) {
    return make<aten::DequantizePerTensor>(q, c.scale, c.zero, c.low, c.high, c.dtype, std::nullopt);
  }
  Value* both(Value* x, const Codes& c) { return dequantize(quantize(x, c), c); }
  Value* codes(const Shape& shape, DType dtype, int64_t low, int64_t high) {
    Tensor tensor = Tensor::uninitialized(dtype, shape);
    for (int64_t i = 0; i < tensor.numElements(); ++i)
      tensor.setIntegerAt(i, low + i * 37 % (high - low + 1));
    return graph.addConstant(std::move(tensor));
  }
};

size_t count(const ir::Graph& graph, const ir::OpDef& def) {
  size_t found = 0;
  for (const ir::Node* node : graph.nodes()) found += node->is(def) ? 1 : 0;
  return found;
}

bool holds(const ir::Graph& graph, DType dtype) {
  for (const ir::Node* node : graph.nodes()) {
    for (const Value* result : node->results()) {
      if (result->dtype() == dtype) return true;
    }
  }
  return false;
}

/// Normalizes the graph; its outputs must not change.
void expectSameAfter(QuantizedNetwork& network, const std::vector<Tensor>& inputs) {
  const auto before = require(aten::execute(network.graph, inputs));
  ASSERT_TRUE(normalizePrequantized(network.graph).ok());
  const auto after = require(aten::execute(network.graph, inputs));
  for (size_t o = 0; o < before.size(); ++o) {
    ASSERT_EQ(after[o].dtype(), before[o].dtype());
    ASSERT_EQ(after[o].shape(), before[o].shape());
    for (int64_t i = 0; i < before[o].numElements(); ++i)
      ASSERT_EQ(after[o].realAt(i), before[o].realAt(i)) << i;
  }
}

TEST(Prequantized, UInt8BecomesInt8) {
  QuantizedNetwork n;
  Value* x = n.both(n.input({1, 3, 6, 6}), kUInt8);
  Value* weight =
      n.dequantize(n.codes({2, 3, 3, 3}, DType::UInt8, 0, 255), {0.005, 130, 0, 255, DType::UInt8});
  x = n.make<aten::Conv2d>(x, weight, nullptr, Ints{1, 1}, Ints{1, 1}, Ints{1, 1}, 1);
  n.done(n.both(n.relu(x), kUInt8));
  expectSameAfter(n, {ramp({1, 3, 6, 6}, -3, 3)});
  EXPECT_FALSE(holds(n.graph, DType::UInt8));
}

TEST(Prequantized, UInt8AtTheBoundaryIsConverted) {
  QuantizedNetwork n;
  Value* input = n.graph.addInput({DType::UInt8, {1, 40}}, "x");
  n.done(n.quantize(n.relu(n.dequantize(input, kUInt8)), kUInt8));
  Tensor codes = Tensor::uninitialized(DType::UInt8, {1, 40});
  for (int64_t i = 0; i < 40; ++i) codes.setIntegerAt(i, i * 255 / 39);
  expectSameAfter(n, {codes});
  // uint8 -> int8 before the operator, int8 -> uint8 after it; the operator itself works on int8.
  EXPECT_EQ(count(n.graph, aten::QuantizePerTensor::def()), 3u);
  EXPECT_EQ(count(n.graph, aten::DequantizePerTensor::def()), 3u);
  EXPECT_TRUE(holds(n.graph, DType::Int8));
}

TEST(Prequantized, UnfoldedWeightsBecomeConstants) {
  QuantizedNetwork n;
  Value* x = n.both(n.input({2, 4}), kInt8);
  Value* scales = n.graph.addConstant(Tensor::from(Shape{3}, std::vector<float>{0.01f, 0.02f, 0.03f}));
  Value* zeros = n.graph.addConstant(Tensor::zeros(DType::Int64, Shape{3}));
  Value* weight =
      n.make<aten::QuantizePerChannel>(n.constant({3, 4}, -1, 1), scales, zeros, 0, -127, 127, DType::Int8);
  weight = n.make<aten::DequantizePerChannel>(weight, scales, zeros, 0, -127, 127, DType::Int8, std::nullopt);
  n.done(n.both(n.make<aten::Linear>(x, weight, nullptr), kInt8));
  expectSameAfter(n, {ramp({2, 4}, -2, 2)});
  EXPECT_EQ(count(n.graph, aten::QuantizePerChannel::def()), 0u);
  EXPECT_EQ(count(n.graph, aten::DequantizePerChannel::def()), 1u);
}

TEST(Prequantized, DecomposedLinearIsRestored) {
  for (const bool withBias : {false, true}) {
    QuantizedNetwork n;
    Value* x = n.both(n.input({2, 3, 4}), kInt8);
    Value* rows = n.make<aten::View>(x, Ints{6, 4});
    Value* weight = n.dequantize(n.codes({5, 4}, DType::Int8, -127, 127), kWeight);
    weight = n.make<aten::Permute>(weight, Ints{1, 0});
    Value* bias = n.dequantize(n.codes({5}, DType::Int32, -9000, 9000), kBias);
    Value* y = withBias ? n.make<aten::Addmm>(bias, rows, weight, int64_t{1}, int64_t{1})
                        : n.make<aten::Mm>(rows, weight);
    n.done(n.both(n.make<aten::View>(y, Ints{2, 3, 5}), kInt8));
    expectSameAfter(n, {ramp({2, 3, 4}, -2, 2)});
    EXPECT_EQ(count(n.graph, aten::Linear::def()), 1u);
    EXPECT_EQ(count(n.graph, aten::View::def()), 0u);
    EXPECT_EQ(count(n.graph, aten::Permute::def()), 0u);
  }
}

TEST(Prequantized, DecomposedLinearWithPlainBiasAndScalesPerChannelIsRestored) {
  QuantizedNetwork n;
  Value* rows = n.make<aten::View>(n.both(n.input({2, 3, 4}), kInt8), Ints{6, 4});
  Value* scales =
      n.graph.addConstant(Tensor::from(Shape{5}, std::vector<float>{.01f, .02f, .03f, .04f, .05f}));
  Value* zeros = n.graph.addConstant(Tensor::zeros(DType::Int64, Shape{5}));
  Value* weight = n.make<aten::DequantizePerChannel>(n.codes({5, 4}, DType::Int8, -127, 127), scales, zeros,
                                                     0, -127, 127, DType::Int8, std::nullopt);
  weight = n.make<aten::Permute>(weight, Ints{1, 0});
  Value* y = n.make<aten::Addmm>(n.constant({5}, -1, 1), rows, weight, int64_t{1}, int64_t{1});
  n.done(n.both(n.make<aten::View>(y, Ints{2, 3, 5}), kInt8));
  expectSameAfter(n, {ramp({2, 3, 4}, -2, 2)});
  EXPECT_EQ(count(n.graph, aten::Linear::def()), 1u);
  EXPECT_EQ(count(n.graph, aten::Permute::def()), 0u);
}

TEST(Prequantized, ConstantScaleAndZeroPointTensorsBecomeAttributes) {
  QuantizedNetwork n;
  Value* scale = n.graph.addConstant(Tensor::scalar(0.02f));
  Value* half = n.make<aten::MulScalar>(scale, 0.5);  // computed, as weights' scales may be
  Value* zero = n.graph.addConstant(Tensor::scalar(int64_t{-8}));
  const auto both = [&](Value* x, Value* by) {
    Value* q = n.make<aten::QuantizePerTensorByTensor>(x, by, zero, -128, 127, DType::Int8);
    return n.make<aten::DequantizePerTensorByTensor>(q, by, zero, -128, 127, DType::Int8, std::nullopt);
  };
  n.done(both(n.relu(both(n.input({1, 40}), scale)), half));
  expectSameAfter(n, {ramp({1, 40}, -3, 3)});
  EXPECT_EQ(count(n.graph, aten::QuantizePerTensor::def()), 2u);
  EXPECT_EQ(count(n.graph, aten::DequantizePerTensor::def()), 2u);
  EXPECT_EQ(count(n.graph, aten::MulScalar::def()), 0u);
}

TEST(Prequantized, ScalesThatArriveWithTheInputStayTensors) {
  QuantizedNetwork n;
  Value* x = n.input({1, 40});
  Value* scale = n.input({});
  Value* zero = n.graph.addConstant(Tensor::scalar(int64_t{0}));
  Value* q = n.make<aten::QuantizePerTensorByTensor>(x, scale, zero, -128, 127, DType::Int8);
  n.done(n.make<aten::DequantizePerTensorByTensor>(q, scale, zero, -128, 127, DType::Int8, std::nullopt));
  expectSameAfter(n, {ramp({1, 40}, -3, 3), Tensor::scalar(0.05f)});
  EXPECT_EQ(count(n.graph, aten::QuantizePerTensorByTensor::def()), 1u);
}

TEST(Prequantized, ProductsOfActivationsStay) {
  QuantizedNetwork n;
  Value* a = n.both(n.input({3, 4}), kInt8);
  Value* c = n.make<aten::Permute>(n.both(n.input({5, 4}), kInt8), Ints{1, 0});
  n.done(n.both(n.make<aten::Mm>(a, c), kInt8));
  expectSameAfter(n, {ramp({3, 4}, -2, 2), ramp({5, 4}, -2, 2)});
  EXPECT_EQ(count(n.graph, aten::Mm::def()), 1u);
}

}  // namespace
}  // namespace carina::quantize
