// SPDX-License-Identifier: Apache-2.0
// Every lowering rule on small graphs: TOSA interpreter against the fake-quant executor, and the number of
// transposes.
#include <gtest/gtest.h>

#include "aten/ops.hpp"
#include "lower_case.hpp"
#include "support/require.hpp"

namespace carina::lower::test {
namespace {

class Lower : public testing::TestWithParam<Case> {};

TEST_P(Lower, EqualsFakeQuantInInt8) {
  check(GetParam(), {});
}

TEST_P(Lower, EqualsFakeQuantWithWeightsPerTensor) {
  quantize::Options options;
  options.perChannelWeights = false;
  options.observer = quantize::ObserverKind::MinMax;
  check(GetParam(), options);
}

INSTANTIATE_TEST_SUITE_P(Convolutions, Lower, testing::ValuesIn(casesIn("convolutions")), nameOf);

INSTANTIATE_TEST_SUITE_P(Pointwise, Lower, testing::ValuesIn(casesIn("pointwise")), nameOf);

INSTANTIATE_TEST_SUITE_P(Reductions, Lower, testing::ValuesIn(casesIn("reductions")), nameOf);

INSTANTIATE_TEST_SUITE_P(Moves, Lower, testing::ValuesIn(casesIn("moves")), nameOf);

TEST(Ranks, BeyondSixAreRefusedWithTheRank) {
  Network network;
  network.graph.setOutputs({network.relu(network.input({1, 2, 1, 2, 1, 2, 3}))});
  auto partitioned = require(quantizeAndPartition(std::move(network.graph)));
  EXPECT_FALSE(partitioned.wholly);
  ASSERT_FALSE(partitioned.refusals.empty());
  EXPECT_NE(partitioned.refusals[0].reason.find("rank 7 exceeds 6"), std::string::npos)
      << partitioned.refusals[0].reason;
  EXPECT_NE(partitioned.refusals[0].remedy.find("merge some of its dimensions"), std::string::npos);
}

TEST(RunningSums, BeyondTheKernelsAreaAreRefusedWithTheLimit) {
  Network network;
  network.graph.setOutputs({network.make<aten::Cumsum>(network.input({2, 4097}), int64_t{1}, std::nullopt)});
  auto partitioned = require(quantizeAndPartition(std::move(network.graph)));
  ASSERT_FALSE(partitioned.refusals.empty());
  EXPECT_NE(partitioned.refusals[0].reason.find("4097 elements, more than 4096"), std::string::npos)
      << partitioned.refusals[0].reason;
}

INSTANTIATE_TEST_SUITE_P(Groups, Lower, testing::ValuesIn(casesIn("groups")), nameOf);

class LowerWide : public testing::TestWithParam<Case> {};

TEST_P(LowerWide, EqualsFakeQuantIn16x8) {
  quantize::Options options;
  options.precision = quantize::Precision::Int16x8;
  check(GetParam(), options);
}

INSTANTIATE_TEST_SUITE_P(Wide, LowerWide, testing::ValuesIn(casesIn("steps_and_sums_in_16_bits")), nameOf);

/// acosh is undefined below 1, but values above 1 are also rounded to the code of 0.
TEST(Lower, CodesAtTheEdgeOfADomainRepresentValuesInside) {
  Network n;
  n.graph.setOutputs({n.make<aten::Acosh>(n.input({1, 2, 4}))});
  quantize::Options options;
  options.observer = quantize::ObserverKind::MinMax;
  const quantize::Sample sample{
      Tensor::from(Shape{1, 2, 4}, std::vector<float>{1, 2, 10, 100, 500, 700, 900, 1000})};
  auto quantized = require(quantize::quantize(std::move(n.graph), options, std::array{sample}));
  auto partitioned = require(partition::partition(std::move(quantized.graph), {}));
  const ir::Node* lookup = nullptr;
  for (const ir::Node* node : partitioned.delegates.at(0).tosa.nodes()) {
    if (ir::isa<tosa::Table>(node)) lookup = node;
  }
  ASSERT_NE(lookup, nullptr);
  const Tensor& table = lookup->operands()[1]->constant();
  // Code -128 represents values between 0 and 1.96, where acosh is up to 1.3, in steps of 7.6 / 255.
  EXPECT_GT(table.integerAt(0), -128 + 10);
  EXPECT_LT(table.integerAt(0), table.integerAt(1));
}

}  // namespace
}  // namespace carina::lower::test
