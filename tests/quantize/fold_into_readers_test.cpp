// SPDX-License-Identifier: Apache-2.0
// Products and sums that the following layers absorb: which ones do, and that the networks compute the same
// functions.
#include <gtest/gtest.h>

#include "aten/executor.hpp"
#include "quantize/quantize.hpp"
#include "small_network.hpp"
#include "support/require.hpp"

namespace carina::quantize {
namespace {

constexpr int64_t kWidth = 6;
const std::vector<float> kFactors{2, 3, 0.5f, -1, 0.25f, 1};

Value* factors(Network& n, const Shape& shape) {
  return n.graph.addConstant(Tensor::from(shape, kFactors));
}

/// x * factors + terms along the last dimension, as after a norm.
Value* scaled(Network& n, Value* x) {
  return n.make<aten::AddTensor>(n.make<aten::MulTensor>(x, factors(n, {kWidth})),
                                 n.constant({kWidth}, -1, 3));
}

Value* linear(Network& n, Value* x, int64_t out) {
  return n.make<aten::Linear>(x, n.constant({out, kWidth}, -1, 2), nullptr);
}

Value* conv(Network& n, Value* x, const Shape& weight, int64_t padding, int64_t groups) {
  return n.make<aten::Conv2d>(x, n.constant(weight, -1, 2), n.constant({weight[0]}, -1, 1), Ints{1, 1},
                              Ints{padding, padding}, Ints{1, 1}, groups);
}

/// Folds and compares the outputs. Returns whether products, sums or depthwise convolutions are left.
bool areLeftAfter(Network& n, double mostNoise = std::numeric_limits<double>::infinity()) {
  std::vector<Tensor> inputs;
  for (const Value* input : n.graph.inputs()) inputs.push_back(ramp(input->shape(), -1, 2));
  const auto before = require(aten::execute(n.graph, inputs));
  EXPECT_TRUE(foldBatchNorms(n.graph, mostNoise).ok());
  const auto after = require(aten::execute(n.graph, inputs));
  for (size_t o = 0; o < before.size(); ++o) {
    for (int64_t i = 0; i < before[o].numElements(); ++i)
      EXPECT_NEAR(before[o].realAt(i), after[o].realAt(i), 1e-4) << i;
  }
  bool left = false;
  for (const ir::Node* node : n.graph.nodes()) {
    left = left || ir::isa<aten::MulTensor>(node) || ir::isa<aten::AddTensor>(node) ||
           ir::isa<aten::Convolution>(node);  // what foldBatchNorms() makes of the two
  }
  return left;
}

/// Queries, keys and values from one norm; the keys from rows in another order, as in shifted windows.
TEST(FoldIntoReaders, LinearLayersThroughShapesOrdersAndConcatenations) {
  Network n;
  Value* x = scaled(n, n.relu(n.input({1, 8, kWidth})));
  Value* turned = n.make<aten::TransposeInt>(x, int64_t{1}, int64_t{2});
  Value* windows =
      n.make<aten::View>(n.make<aten::TransposeInt>(turned, int64_t{1}, int64_t{2}), Ints{2, 4, kWidth});
  Value* late = n.make<aten::SliceTensor>(x, int64_t{1}, int64_t{3}, int64_t{8}, int64_t{1});
  Value* early = n.make<aten::SliceTensor>(x, int64_t{1}, int64_t{0}, int64_t{3}, int64_t{1});
  Value* rolled = n.make<aten::Cat>(std::vector<Value*>{late, early}, int64_t{1});
  Value* query = n.make<aten::View>(linear(n, windows, 4), Ints{1, 8, 4});
  Value* sum =
      n.make<aten::Cat>(std::vector<Value*>{query, linear(n, rolled, 4), linear(n, x, 3)}, int64_t{2});
  n.done(sum);
  EXPECT_FALSE(areLeftAfter(n));
}

TEST(FoldIntoReaders, ConvolutionsOfAllKinds) {
  Network plain;  // a shift needs every tap
  plain.done(conv(
      plain,
      plain.make<aten::Permute>(scaled(plain, plain.relu(plain.input({1, 4, 5, kWidth}))), Ints{0, 3, 1, 2}),
      {4, kWidth, 2, 3}, 0, 1));
  EXPECT_FALSE(areLeftAfter(plain));
  Network groups;  // a product alone also folds where padding takes part
  Value* x = groups.make<aten::MulTensor>(groups.relu(groups.input({1, kWidth, 4, 5})),
                                          factors(groups, {kWidth, 1, 1}));
  groups.done(conv(groups, x, {4, 3, 3, 3}, 1, 2));
  EXPECT_FALSE(areLeftAfter(groups));
  Network transposed;
  x = transposed.make<aten::MulTensor>(transposed.relu(transposed.input({1, kWidth, 4, 5})),
                                       factors(transposed, {1, kWidth, 1, 1}));
  transposed.done(
      transposed.make<aten::ConvTranspose2dInput>(x, transposed.constant({kWidth, 2, 3, 3}, -1, 1), nullptr,
                                                  Ints{2, 2}, Ints{1, 1}, Ints{1, 1}, 2, Ints{1, 1}));
  EXPECT_FALSE(areLeftAfter(transposed));
  Network norm;  // a batch norm after an activation
  x = norm.make<aten::BatchNorm>(norm.relu(norm.input({1, kWidth, 4, 5})), factors(norm, {kWidth}),
                                 norm.constant({kWidth}, -1, 1), norm.constant({kWidth}, -1, 1),
                                 norm.constant({kWidth}, 0.5f, 3), false, 0.1, 1e-5, false);
  norm.done(conv(norm, x, {4, kWidth, 1, 1}, 0, 1));
  EXPECT_FALSE(areLeftAfter(norm));
}

/// An untrained norm costs no copy of the weights.
TEST(FoldIntoReaders, FactorsOfOneLeaveTheWeight) {
  Network n;
  Value* x = n.make<aten::MulTensor>(n.relu(n.input({1, 8, kWidth})), n.constant({kWidth}, 1, 1));
  Value* weight = n.constant({4, kWidth}, -1, 2);
  Value* y = n.done(n.make<aten::Linear>(x, weight, nullptr));
  EXPECT_FALSE(areLeftAfter(n));
  EXPECT_EQ(ir::producerAs<aten::Linear>(y).weight(), weight);
}

TEST(FoldIntoReaders, WhatOthersReadStays) {
  Network padded;  // the shift is missing at the border
  Value* x = padded.make<aten::Permute>(scaled(padded, padded.relu(padded.input({1, 4, 5, kWidth}))),
                                        Ints{0, 3, 1, 2});
  padded.done(conv(padded, x, {4, kWidth, 3, 3}, 1, 1));
  EXPECT_TRUE(areLeftAfter(padded));
  Network residual;
  x = scaled(residual, residual.relu(residual.input({1, 8, kWidth})));
  residual.done(residual.make<aten::SubTensor>(linear(residual, x, kWidth), x));
  EXPECT_TRUE(areLeftAfter(residual));
  Network output;
  x = scaled(output, output.relu(output.input({1, 8, kWidth})));
  output.graph.setOutputs({x, linear(output, x, 4)});
  EXPECT_TRUE(areLeftAfter(output));
  Network mixed;  // the rows' elements are not the layer's inputs
  x = mixed.make<aten::View>(scaled(mixed, mixed.relu(mixed.input({1, 8, kWidth}))), Ints{1, kWidth, 8});
  mixed.done(linear(mixed, mixed.make<aten::TransposeInt>(x, int64_t{1}, int64_t{2}), 4));
  EXPECT_TRUE(areLeftAfter(mixed));
  Network partly;  // rows without the product join
  Value* rows = partly.input({1, 8, kWidth});
  x = partly.make<aten::Cat>(std::vector<Value*>{scaled(partly, partly.relu(rows)), rows}, int64_t{1});
  partly.done(linear(partly, x, 4));
  EXPECT_TRUE(areLeftAfter(partly));
  Network shared;  // one constant for two layers
  x = scaled(shared, shared.relu(shared.input({1, 8, kWidth})));
  Value* weight = shared.constant({kWidth, kWidth}, -1, 2);
  Value* first = shared.make<aten::Linear>(x, weight, nullptr);
  shared.done(shared.make<aten::Linear>(first, weight, nullptr));
  EXPECT_TRUE(areLeftAfter(shared));
}

/// With equal weights, the largest weight of a channel grows by the largest factor and the inputs' mean
/// square by the factors' mean square: 9 against 2.4.
TEST(FoldIntoReaders, WeightsMayLoseNoMoreThanTheLimit) {
  const auto network = [](Network& n) {
    Value* x = n.make<aten::MulTensor>(n.relu(n.input({1, 8, kWidth})), factors(n, {kWidth}));
    n.done(n.make<aten::Linear>(x, n.constant({4, kWidth}, 1, 1), nullptr));
  };
  Network above, below;
  network(above), network(below);
  const double square = (4 + 9 + 0.25 + 1 + 0.0625 + 1) / 6;
  EXPECT_TRUE(areLeftAfter(above, 9 / square * 0.999));
  EXPECT_FALSE(areLeftAfter(below, 9 / square * 1.001));
}

}  // namespace
}  // namespace carina::quantize
