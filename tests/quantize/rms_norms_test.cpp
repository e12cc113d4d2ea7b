// SPDX-License-Identifier: Apache-2.0
// Layer norms that become RMS norms: which ones do, and that the networks compute the same functions.
#include "quantize/rms_norms.hpp"

#include <gtest/gtest.h>

#include "aten/executor.hpp"
#include "small_network.hpp"
#include "support/require.hpp"

namespace carina::quantize {
namespace {

constexpr int64_t kWidth = 6;

Value* normed(Network& n, Value* x) {
  return n.make<aten::LayerNorm>(x, nullptr, nullptr, Ints{kWidth}, 1e-5, false);
}

Value* linear(Network& n, Value* x, int64_t out = kWidth) {
  return n.make<aten::Linear>(x, n.constant({out, x->dim(-1 + x->rank())}, -1, 2), n.constant({out}, -1, 3));
}

/// Converts the norms and compares the outputs. Returns the number of layer norms left.
size_t leftAfter(Network& n, const Shape& input) {
  const std::vector<Tensor> inputs{ramp(input, -1, 2)};
  const auto before = require(aten::execute(n.graph, inputs));
  EXPECT_TRUE(useRmsNorms(n.graph).ok());
  const auto after = require(aten::execute(n.graph, inputs));
  for (int64_t i = 0; i < before[0].numElements(); ++i)
    EXPECT_NEAR(before[0].realAt(i), after[0].realAt(i), 1e-4) << i;
  size_t left = 0;
  for (const ir::Node* node : n.graph.nodes()) left += ir::isa<aten::LayerNorm>(node) ? 1 : 0;
  return left;
}

/// Patches with a token in front, positions, two blocks, and finally a norm of the first token.
TEST(RmsNorms, AResidualStreamLosesItsMean) {
  Network n;
  Value* x = n.make<aten::Conv2d>(n.input({1, 2, 4, 6}), n.constant({kWidth, 2, 2, 2}, -1, 2),
                                  n.constant({kWidth}, 1, 2), Ints{2, 2}, Ints{0, 0}, Ints{1, 1}, 1);
  x = n.make<aten::FlattenUsingInts>(x, int64_t{2}, int64_t{-1});
  x = n.make<aten::TransposeInt>(x, int64_t{1}, int64_t{2});
  x = n.make<aten::Cat>(std::vector<Value*>{n.constant({1, 1, kWidth}, 0, 4), x}, int64_t{1});
  x = n.make<aten::AddTensor>(x, n.constant({1, 7, kWidth}, -1, 5));
  for (int block = 0; block < 2; ++block) x = n.make<aten::AddTensor>(x, linear(n, normed(n, x)));
  n.done(linear(n, normed(n, n.make<aten::SelectInt>(x, int64_t{1}, int64_t{0}))));
  EXPECT_EQ(leftAfter(n, {1, 2, 4, 6}), 0u);
}

TEST(RmsNorms, TransposedConvolutionsAndScaledRows) {
  Network n;
  Value* x = n.make<aten::ConvTranspose2dInput>(n.input({1, 3, 2, 2}), n.constant({3, kWidth, 2, 2}, -1, 2),
                                                nullptr, Ints{2, 2}, Ints{0, 0}, Ints{0, 0}, 1, Ints{1, 1});
  x = n.make<aten::Permute>(n.make<aten::MulScalar>(x, 0.5), Ints{0, 2, 3, 1});
  n.done(normed(n, x));
  EXPECT_EQ(leftAfter(n, {1, 3, 2, 2}), 0u);
}

TEST(RmsNorms, StreamsWithOtherReadersKeepTheirNorms) {
  Network residual;  // the stream is an output
  Value* x = linear(residual, residual.input({2, 5}));
  residual.done(residual.make<aten::AddTensor>(x, linear(residual, normed(residual, x))));
  EXPECT_EQ(leftAfter(residual, {2, 5}), 1u);
  Network post;  // a norm's output is normed again
  x = normed(post, linear(post, post.input({2, 5})));
  post.done(normed(post, post.make<aten::AddTensor>(x, linear(post, x))));
  EXPECT_EQ(leftAfter(post, {2, 5}), 1u);
  Network function;
  function.done(normed(function, function.relu(linear(function, function.input({2, 5})))));
  EXPECT_EQ(leftAfter(function, {2, 5}), 1u);
}

TEST(RmsNorms, NormsOfChannelsThatDoNotMixStay) {
  Network groups;
  Value* x =
      groups.make<aten::Conv2d>(groups.input({1, kWidth, 2, 2}), groups.constant({kWidth, 3, 1, 1}, -1, 2),
                                nullptr, Ints{1, 1}, Ints{0, 0}, Ints{1, 1}, 2);
  groups.done(normed(groups, groups.make<aten::Permute>(x, Ints{0, 2, 3, 1})));
  EXPECT_EQ(leftAfter(groups, {1, kWidth, 2, 2}), 1u);
  Network across;  // the norm is over positions; the layer's channels are another dimension of the same size
  x = across.make<aten::Conv2d>(across.input({1, 2, 3, kWidth}), across.constant({kWidth, 2, 1, 1}, -1, 2),
                                nullptr, Ints{1, 1}, Ints{0, 0}, Ints{1, 1}, 1);
  across.done(normed(across, x));
  EXPECT_EQ(leftAfter(across, {1, 2, 3, kWidth}), 1u);
  Network parts;  // half of a row has a separate mean
  x = parts.make<aten::SliceTensor>(linear(parts, parts.input({2, 5}), 2 * kWidth), int64_t{1}, int64_t{0},
                                    kWidth, int64_t{1});
  parts.done(normed(parts, x));
  EXPECT_EQ(leftAfter(parts, {2, 5}), 1u);
}

}  // namespace
}  // namespace carina::quantize
