// SPDX-License-Identifier: Apache-2.0
// The public cycle formulas and the cost metric.
#include <gtest/gtest.h>

#include "ethosn/cost/cycles.hpp"
#include "ethosn/cost/metric.hpp"

namespace carina::ethosn {
namespace {

const Variant& variantOfTest() {
  return **findVariant("ethos-n78-4tops-4ple");  // 16 inputs and 16 outputs per step, 8 engines of 2 lanes
}

TEST(EthosNCost, DirectConvolution) {
  const FilterWork filter{3, 3, 20};
  // 9 taps, 18 -> 20 rows, 21 -> 22 columns, 20 -> 32 inputs, 24 -> 32 outputs; 16 * 8 * 16 products a cycle.
  EXPECT_EQ(mceCycles(variantOfTest(), {MceOperation::Convolution, false, 16, 16, 18, 21, 24}, {&filter, 1}),
            9U * 20 * 22 * 32 * 32 / (16 * 8 * 16));
}

TEST(EthosNCost, WinogradNeedsFourNinthsOfTheProducts) {
  const FilterWork filter{3, 3, 16};
  const MceWork direct{MceOperation::Convolution, false, 16, 8, 64, 64, 16};
  MceWork winograd = direct;
  winograd.winograd = true;
  EXPECT_EQ(mceCycles(variantOfTest(), direct, {&filter, 1}) * 4,
            mceCycles(variantOfTest(), winograd, {&filter, 1}) * 9);
}

TEST(EthosNCost, PleProcessesWholeBlocks) {
  const PleKernel large{PleOperation::Passthrough, PleSignedness::Any, 16, 16, 1, PleAxis::None};
  const PleKernel small{PleOperation::Passthrough, PleSignedness::Any, 8, 8, 1, PleAxis::None};
  const PleWork work{7, 7, 16, 7, 7};
  EXPECT_EQ(pleCycles(variantOfTest(), large, work), 16U * 6 + 110);
  EXPECT_EQ(pleCycles(variantOfTest(), small, work), 4U * 6 + 110);
}

TEST(EthosNMetric, ShortStripesTakeAMinimumTime) {
  EXPECT_EQ(stripesCycles(10, 1), 2500U);
  EXPECT_EQ(stripesCycles(9000, 3), 9300U);
  EXPECT_EQ(stripesCycles(9000, 0), 0U);
}

TEST(EthosNMetric, OnlyTheFirstTransferIsNotOverlapped) {
  PassWork pass;
  pass.input = {4 * 64000, 4, 4};
  pass.mceCycles = pass.pleCycles = 20000;
  pass.mceStripes = pass.pleStripes = 4;
  // Four transfers of 4,100 cycles: one alone, three in parallel with the MCE.
  EXPECT_EQ(passCycles(pass), 4100U + 20400);
  pass.input.stripes = 1;
  EXPECT_EQ(passCycles(pass), 4 * 4100U + 20400);
}

}  // namespace
}  // namespace carina::ethosn
