// SPDX-License-Identifier: Apache-2.0
// The work of kernel calls, counted from the shapes in a program.
#include "cpu/call_work.hpp"

#include <gtest/gtest.h>

#include "cpu/cost.hpp"
#include "pte/method_builder.hpp"
#include "support/require.hpp"

namespace carina::cpu {
namespace {

using pte::ScalarType;

class Works : public testing::Test {
 protected:
  pte::ValueId real(std::vector<int32_t> sizes) {
    return builder_.input(ScalarType::Float32, std::move(sizes));
  }
  pte::ValueId result(std::vector<int32_t> sizes, ScalarType type = ScalarType::Float32) {
    return builder_.activation(type, std::move(sizes));
  }
  /// Work of the one call.
  CallWork work() {
    EXPECT_TRUE(builder_.finish().ok());
    const pte::Method& method = program_.methods.front();
    return workOf(method, std::get<pte::KernelCall>(method.chains.front().instructions.front()));
  }
  pte::ValueId integers(const std::vector<int64_t>& values) { return builder_.integers(values); }

  pte::Program program_;
  pte::MethodBuilder builder_{program_};
};

TEST_F(Works, ContiguousOperandsAreOneRun) {
  builder_.kernel("aten::mul.out", {real({1, 4, 5, 10}), real({1, 4, 5, 10}), result({1, 4, 5, 10})});
  const CallWork done = work();
  EXPECT_EQ(done.types, "float32");
  EXPECT_EQ(done[Work::Element], 200);
  EXPECT_EQ(done[Work::Run], 1);
  EXPECT_EQ(done[Work::Chunk], 7);
  EXPECT_EQ(done[Work::Converted], 0);
}

TEST_F(Works, BroadcastOperandsBreakRunsAndGoThroughBuffers) {
  builder_.kernel("aten::mul.out", {real({1, 4, 5, 10}), real({4, 1, 1}), result({1, 4, 5, 10})});
  const CallWork done = work();
  EXPECT_EQ(done[Work::Run], 4);
  EXPECT_EQ(done[Work::Chunk], 8);  // two for each run of 50 elements
  EXPECT_EQ(done[Work::Converted], 200);
}

TEST_F(Works, ResultsOfOtherTypesAreStoredFromABuffer) {
  builder_.kernel("aten::gt.Tensor_out", {real({3, 40}), real({3, 40}), result({3, 40}, ScalarType::Bool)});
  const CallWork done = work();
  EXPECT_EQ(done.types, "float32>bool");
  EXPECT_EQ(done[Work::Stored], 120);
}

TEST_F(Works, ConvolutionsCountTapsWithinTheInput) {
  builder_.kernel("aten::convolution.out",
                  {real({1, 2, 4, 4}), real({3, 2, 3, 3}), builder_.null(), integers({1, 1}),
                   integers({1, 1}), integers({1, 1}), builder_.boolean(false), integers({0, 0}),
                   builder_.integer(1), result({1, 3, 4, 4})});
  const CallWork done = work();
  EXPECT_EQ(done[Work::Output], 48);
  EXPECT_EQ(done[Work::Mac], 3 * 10 * 10 * 2);  // in a dimension of 4: 2 + 3 + 3 + 2 taps
  EXPECT_EQ(done[Work::Piece], 3 * 10 * 10);
  EXPECT_EQ(done[Work::Tap], 3 * 10 * 12);
  EXPECT_EQ(done[Work::Run], 3 * 10 * 4);
}

TEST_F(Works, PermutationsMoveBytesWherePossible) {
  builder_.kernel("aten::permute_copy.out",
                  {real({2, 3, 4, 8}), integers({0, 2, 1, 3}), result({2, 4, 3, 8})});
  const CallWork done = work();
  EXPECT_EQ(done[Work::Byte], 2 * 3 * 4 * 8 * 4);
  EXPECT_EQ(done[Work::Piece], 2 * 3 * 4);
  EXPECT_EQ(done[Work::Element], 0);
}

/// newlib's memcpy(): rows of 9 bytes begin at every address modulo 4.
TEST_F(Works, UnalignedBytesCostMore) {
  builder_.kernel("aten::slice_copy.Tensor_out",
                  {builder_.input(ScalarType::Int8, {16, 12}), builder_.integer(1), builder_.integer(0),
                   builder_.integer(9), builder_.integer(1), result({16, 9}, ScalarType::Int8)});
  const CallWork done = work();
  EXPECT_EQ(done[Work::Piece], 16);
  EXPECT_EQ(done[Work::Byte], 16 * 9);
  // Source rows start at multiples of 12 and are therefore aligned. Two words and a remainder of one byte; 4
  // more where the result is not aligned.
  EXPECT_EQ(done[Work::Tail], 16 * (2 * 4 + 6) + 12 * 4);
}

TEST_F(Works, RollsMoveOneBoxOnEachSideOfTheWrap) {
  builder_.kernel("aten::roll.out", {real({3, 10}), integers({2}), integers({1}), result({3, 10})});
  const CallWork done = work();
  EXPECT_EQ(done[Work::Piece], 2 * 3);
  EXPECT_EQ(done[Work::Byte], 3 * 10 * 4);
  EXPECT_EQ(done[Work::Run], 4);  // boxes examined
}

TEST_F(Works, ReversedRowsAreMovedElementByElement) {
  builder_.kernel("aten::flip.out", {real({3, 10}), integers({1}), result({3, 10})});
  const CallWork done = work();
  EXPECT_EQ(done[Work::Element], 30);
  EXPECT_EQ(done[Work::Byte], 0);
}

TEST_F(Works, RepeatsAreMovedAsBoxes) {
  builder_.kernel("aten::repeat.out", {real({2, 8}), integers({3, 1}), result({6, 8})});
  const CallWork done = work();
  EXPECT_EQ(done[Work::Piece], 3);  // two rows at once
  EXPECT_EQ(done[Work::Byte], 6 * 8 * 4);
}

TEST_F(Works, ReductionsOverOuterDimensionsReadWithStrides) {
  builder_.kernel("aten::sum.IntList_out",
                  {real({3, 100}), integers({0}), builder_.boolean(false), builder_.null(), result({100})});
  const CallWork done = work();
  EXPECT_EQ(done[Work::Output], 100);
  EXPECT_EQ(done[Work::Converted], 300);
}

TEST_F(Works, ArgumentsThatNoKernelAcceptsAreCountedByElements) {
  builder_.kernel("aten::addmm.out", {builder_.integer(3), builder_.null(), builder_.null(), builder_.null(),
                                      builder_.null(), result({7, 6})});
  const CallWork done = work();
  EXPECT_EQ(done[Work::Element], 42);
  EXPECT_EQ(done[Work::Output], 42);
}

TEST_F(Works, CallingWorkCountsInstructions) {
  const auto x = real({10});
  builder_.kernel("aten::relu.out", {x, result({10})});
  builder_.kernel("aten::relu.out", {x, result({10})});
  EXPECT_TRUE(builder_.finish().ok());
  const CallWork done = callingWork(program_.methods.front());
  EXPECT_EQ(done[Work::Run], 2);
  EXPECT_EQ(done[Work::Output], 0);
}

TEST(Costs, UnmeasuredKernelsAreMarkedAsGuesses) {
  CallWork work;
  work.kernel = "somebody::odd.out";
  work.types = "float32";
  work[Work::Element] = 100;
  const Cost cost = costOf(work, Core::M55);
  EXPECT_FALSE(cost.measured);
  EXPECT_GT(cost.cycles, 0);
  EXPECT_GE(cost.error, 0.5);
}

TEST(Costs, HeliumMakesConversionsFaster) {
  CallWork work;
  work.kernel = "quantized_decomposed::quantize_per_tensor.out";
  work.types = "float32>int8";
  work[Work::Call] = work[Work::Run] = 1;
  work[Work::Element] = 10000;
  work[Work::Chunk] = 313;
  work[Work::Stored] = 10000;
  for (const Core core : {Core::M55, Core::M85}) {
    const Cost plain = costOf(work, core), vectors = costOf(work, withHelium(core));
    EXPECT_TRUE(plain.measured);
    EXPECT_GT(plain.cycles, 2 * vectors.cycles);
    EXPECT_LE(plain.error, 0.1);
  }
}

TEST(Costs, CoresHaveNames) {
  for (const CoreInfo& info : coreInfos()) {
    const auto found = require(findCore(info.name));
    EXPECT_EQ(found, info.core);
  }
  EXPECT_NE(errorOf(findCore("cortex-a53")).find("cortex-m55+nomve"), std::string::npos);
}

}  // namespace
}  // namespace carina::cpu
