// SPDX-License-Identifier: Apache-2.0
// Every lowering rule on small graphs: TOSA interpreter against the fake-quant executor, and the number of
// transposes.
#include "lower/lower.hpp"

#include <gtest/gtest.h>

#include "aten/ops.hpp"
#include "lower_case.hpp"
#include "support/require.hpp"
#include "tosa/interpreter.hpp"

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
/// uint8 values are converted as in PyTorch: their numbers, to fewer bits modulo 2^bits.
TEST(Lower, BytesAreConvertedToAnyTypeByTheirValue) {
  Network n;
  Value* bytes = n.input({4}, DType::UInt8);
  Value* words = n.input({4}, DType::Int32);
  Value* again = n.make<aten::PrivateToCopy>(words, DType::UInt8);
  n.graph.setOutputs(
      {n.make<aten::PrivateToCopy>(bytes, DType::Int8), n.make<aten::PrivateToCopy>(bytes, DType::Int16),
       n.make<aten::PrivateToCopy>(bytes, DType::Int32), n.make<aten::PrivateToCopy>(bytes, DType::Bool),
       n.make<aten::PrivateToCopy>(again, DType::Int32), n.make<aten::PrivateToCopy>(again, DType::Int8)});
  const ir::Graph tosa = require(lowerToTosa(n.graph));
  const auto inputs =
      std::array{Tensor::from({4}, std::vector<int8_t>{0, 1, 127, -56}),  // the last one is 200
                 Tensor::from({4}, std::vector<int32_t>{-1, 256, 200, 7})};
  const auto results = require(tosa::interpret(tosa, inputs));
  const auto numbers = [&](size_t i) {
    std::vector<int64_t> list;
    for (int64_t k = 0; k < 4; ++k) list.push_back(results[i].integerAt(k));
    return list;
  };
  using List = std::vector<int64_t>;
  EXPECT_EQ(numbers(0), (List{0, 1, 127, -56}));
  EXPECT_EQ(numbers(1), (List{0, 1, 127, 200}));
  EXPECT_EQ(numbers(2), (List{0, 1, 127, 200}));
  EXPECT_EQ(numbers(3), (List{0, 1, 1, 1}));
  EXPECT_EQ(numbers(4), (List{255, 0, 200, 7}));
  EXPECT_EQ(numbers(5), (List{-1, 0, -56, 7}));
}

TEST(Lower, BytesThatAreComputedWithAreRefused) {
  Network n;
  Value* bytes = n.make<aten::PrivateToCopy>(n.input({4}, DType::Int32), DType::UInt8);
  n.graph.setOutputs({n.make<aten::PrivateToCopy>(n.make<aten::BitwiseNot>(bytes), DType::Int32)});
  EXPECT_NE(errorOf(lowerToTosa(n.graph)).find("uint8 values are only converted on the NPU"),
            std::string::npos);
}

/// They are not cut to 32 bits.
TEST(Lower, ConstantsBeyondInt32AreRefused) {
  const auto problem = [](int64_t number) {
    Network n;
    Value* numbers = n.make<aten::PrivateToCopy>(n.input({2}, DType::Int32), DType::Int64);
    n.graph.setOutputs(
        {n.make<aten::PrivateToCopy>(n.add(numbers, n.numbers({2}, {0, number})), DType::Int32)});
    return errorOf(lowerToTosa(n.graph));
  };
  EXPECT_EQ(problem(integerMax(DType::Int32)), "");
  EXPECT_NE(problem(integerMax(DType::Int32) + 1)
                .find("a constant is 2147483648, but the NPU computes int64 in 32 bits"),
            std::string::npos);
}

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
