// SPDX-License-Identifier: Apache-2.0
// Ranges of counts: from the shape of the mask, not from the samples.
#include "quantize/counts.hpp"

#include <gtest/gtest.h>

#include "aten/executor.hpp"
#include "decompose/decompose.hpp"
#include "quantize/quantize.hpp"
#include "small_network.hpp"
#include "support/require.hpp"

namespace carina::quantize {
namespace {

Tensor maskOf(const Shape& shape, int64_t ones) {
  Tensor mask = Tensor::zeros(DType::Bool, shape);
  for (int64_t i = 0; i < ones; ++i) mask.setIntegerAt(i, 1);
  return mask;
}

/// (x * mask).sum(1) / mask.sum(1), calibrated with masks of 6 to 10 ones.
TEST(Counts, AMaskedMeanOfOneElementIsNotClipped) {
  Network n;
  Value* x = n.input({1, 10, 4});
  Value* mask = n.graph.addInput({DType::Bool, {1, 10}});
  Value* total = n.make<aten::SumDimIntList>(
      n.make<aten::MulTensor>(x, n.make<aten::Unsqueeze>(mask, int64_t{2})), Ints{1});
  Value* count = n.make<aten::SumDimIntList>(mask, Ints{1}, true);
  n.done(n.make<aten::DivTensor>(total, count));
  ASSERT_TRUE(decompose::forNpu(n.graph).ok());
  Tensor data =
      Tensor::zeros(DType::Float32, {1, 10, 4});  // equal rows: the mean does not depend on the mask
  for (int64_t i = 0; i < data.numElements(); ++i)
    data.mutableAs<float>()[static_cast<size_t>(i)] = static_cast<float>(i % 4) - 1;
  std::vector<Sample> samples;
  for (int64_t ones = 6; ones <= 10; ++ones) samples.push_back({data, maskOf({1, 10}, ones)});
  const auto quantized = require(quantize(std::move(n.graph), {}, samples));
  for (int64_t ones = 1; ones <= 10; ++ones) {
    const auto simulated = require(aten::execute(quantized.graph, {{data, maskOf({1, 10}, ones)}}));
    for (int64_t i = 0; i < 4; ++i) EXPECT_NEAR(simulated[0].realAt(i), data.realAt(i), 0.1) << ones;
  }
}

TEST(Counts, WholeNumbersHaveExactCodes) {
  Network n;
  Value* mask = n.graph.addInput({DType::Bool, {1, 10}});
  Value* count = n.make<aten::SumDimIntList>(mask, Ints{1}, true);
  Value* converted = n.make<aten::PrivateToCopy>(count, DType::Float32);
  EXPECT_EQ(rangeOfCounts(*converted, Precision::Int8).max, 255.0f / 16);
  EXPECT_EQ(rangeOfCounts(*converted, Precision::Int16x8).max, 32767.0f / 2048);
  EXPECT_EQ(rangeOfCounts(*n.make<aten::Reciprocal>(converted), Precision::Int8).max, 1.0f);
  EXPECT_TRUE(rangeOfCounts(*mask, Precision::Int8).empty());
}

TEST(Counts, ReciprocalsOfLargeCountsKeepTheirCodes) {
  Network n;
  Value* mask = n.graph.addInput({DType::Bool, {1, 1000}});
  Value* weights = n.make<aten::PrivateToCopy>(mask, DType::Float32);
  Value* sum = n.make<aten::ClampMin>(n.make<aten::SumDimIntList>(weights, Ints{1}, true), 1e-9);
  EXPECT_EQ(largestCount(*sum), 1000);
  EXPECT_NEAR(rangeOfCounts(*n.make<aten::Reciprocal>(sum), Precision::Int8).max, 0.0159, 1e-4);
}

}  // namespace
}  // namespace carina::quantize
