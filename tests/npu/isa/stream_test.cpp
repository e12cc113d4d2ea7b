// SPDX-License-Identifier: Apache-2.0
// Converts operations to command streams and back, on every target; reads streams of other compilers and
// damaged ones.
#include "npu/isa/stream.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/file.hpp"
#include "npu/isa/assembler.hpp"
#include "npu/isa/disassembler.hpp"
#include "npu/isa/payload.hpp"
#include "npu/random_operation.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"

namespace carina::npu {
namespace {

using test::RandomOperation;

const Target& arbitraryTarget() {
  const auto targets = allTargets();
  return targets[static_cast<size_t>(*rc::gen::inRange<int>(0, static_cast<int>(targets.size())))];
}

// The decoder inverts the writer, even if registers keep values of earlier operations.
RC_GTEST_PROP(Stream, OperationsRoundTrip, ()) {
  const Target& target = arbitraryTarget();
  RandomOperation random(target);
  StreamWriter writer(target);
  std::vector<Operation> operations;
  const int count = *rc::gen::inRange(1, 8);
  for (int n = 0; n < count; ++n) {
    operations.push_back(random.any());
    const Status status = writer.add(operations.back());
    if (!status.ok()) RC_FAIL(status.error().message());
  }
  const auto decoded = decodeStream(writer.words(), target);
  if (!decoded.ok()) RC_FAIL(decoded.error().message());
  RC_ASSERT(decoded->size() == operations.size());
  for (size_t n = 0; n < operations.size(); ++n) {
    if ((*decoded)[n].operation == operations[n]) continue;
    // Report the difference: both operations alone, as text.
    StreamWriter a(target), b(target);
    RC_ASSERT(a.add(operations[n]).ok());
    RC_ASSERT(b.add((*decoded)[n].operation).ok());
    RC_FAIL("the operation decodes differently: " + describe(operations[n]) + "\n" +
            disassembleStream(a.words(), target.family) + "decoded and written again:\n" +
            disassembleStream(b.words(), target.family));
  }
}

RC_GTEST_PROP(Stream, TextRoundTrips, ()) {
  const Target& target = arbitraryTarget();
  RandomOperation random(target);
  StreamWriter writer(target);
  const int count = *rc::gen::inRange(1, 5);
  for (int n = 0; n < count; ++n) RC_ASSERT(writer.add(random.any()).ok());
  const std::vector<uint32_t> words(writer.words().begin(), writer.words().end());
  for (const bool comments : {true, false}) {
    const std::string text = disassembleStream(words, target.family, {comments});
    const auto assembled = assemble(text);
    if (!assembled.ok()) RC_FAIL(assembled.error().str());
    RC_ASSERT(assembled->stream == words);
  }
}

// Arbitrary words round-trip through text. Reading them as a stream may fail but has no other effect.
RC_GTEST_PROP(Stream, ArbitraryWordsRoundTripThroughText, ()) {
  const auto family = static_cast<Family>(*rc::gen::inRange(0, 3));
  std::vector<uint32_t> words = *rc::gen::container<std::vector<uint32_t>>(rc::gen::arbitrary<uint32_t>());
  // Make many of them look like commands.
  for (uint32_t& word : words) {
    if (*rc::gen::inRange(0, 3) != 0) word &= 0xffff41ffu;
  }
  const auto assembled = assemble(disassembleStream(words, family));
  if (!assembled.ok()) RC_FAIL(assembled.error().str());
  RC_ASSERT(assembled->stream == words);
  for (const Target& target : allTargets()) {
    if (target.family == family) (void)decodeStream(words, target);
  }
}

TEST(Stream, OnlyChangedRegistersAreWritten) {
  const Target& target = **findTarget("ethos-u55-128");
  StreamWriter writer(target);
  DmaOperation dma;
  dma.source.address = 0x100;
  dma.destination = {false, 1, 0x2000, false, 0, 0};
  dma.length = 64;
  ASSERT_TRUE(writer.add(dma).ok());
  const size_t first = writer.words().size();
  ASSERT_TRUE(writer.add(dma).ok());
  EXPECT_EQ(writer.words().size(), first + 1);  // only DMA_START
  dma.source.address = 0x140;
  ASSERT_TRUE(writer.add(dma).ok());
  EXPECT_EQ(writer.words().size(), first + 1 + 3);
  writer.forgetState();
  ASSERT_TRUE(writer.add(dma).ok());
  EXPECT_EQ(writer.words().size(), first + 4 + first);
}

TEST(Stream, BranchesArePatchedAndForgetState) {
  const Target& target = **findTarget("ethos-u85-256");
  StreamWriter writer(target);
  const uint32_t branch = writer.position();
  ASSERT_TRUE(writer.add(Branch{true, 0}).ok());
  ASSERT_TRUE(writer.add(Stop{}).ok());
  writer.patchBranch(branch, writer.position());
  const auto decoded = require(decodeStream(writer.words(), target));
  EXPECT_EQ(std::get<Branch>(decoded[0].operation), (Branch{true, 12}));
}

TEST(Stream, RefusesWhatTheTargetLacks) {
  const Target& u55 = **findTarget("ethos-u55-128");
  const Target& u85 = **findTarget("ethos-u85-128");
  StreamWriter writer(u55);
  EXPECT_FALSE(writer.add(Branch{}).ok());
  KernelOperation op;
  op.kind = OperationKind::Pool;
  op.block = {1, 2, 8};
  op.microblock = {1, 2, 8};
  EXPECT_TRUE(writer.add(op).ok());
  op.padding.top = 128;
  EXPECT_FALSE(writer.add(op).ok());
  op.padding.top = 0;
  op.pool = PoolMode::Sum;
  EXPECT_FALSE(writer.add(op).ok());
  StreamWriter wide(u85);
  op.globalScale = true;
  EXPECT_TRUE(wide.add(op).ok());
  op.accumulator = AccumulatorFormat::Int40;
  EXPECT_FALSE(wide.add(op).ok());
  DmaOperation dma;
  dma.dimensions = 2;
  EXPECT_FALSE(writer.add(dma).ok());
  dma.dimensions = 1;
  dma.source.address = uint64_t{1} << 32;
  EXPECT_FALSE(writer.add(dma).ok());
  EXPECT_TRUE(wide.add(dma).ok());
}

TEST(Stream, UnsetRegistersAreNamed) {
  const Target& target = **findTarget("ethos-u65-256");
  const uint32_t word = static_cast<uint32_t>(isa::Cmd0::OpConv);
  const auto command = require(readCommand(std::span(&word, 1), 0, Family::U65));
  std::vector<std::string_view> unset;
  RegisterState state;
  (void)decodeOperation(state, command, target, &unset);
  EXPECT_NE(std::find(unset.begin(), unset.end(), "NPU_SET_IFM_BASE0"), unset.end());
  EXPECT_NE(std::find(unset.begin(), unset.end(), "NPU_SET_WEIGHT_LENGTH"), unset.end());
  EXPECT_EQ(std::find(unset.begin(), unset.end(), "NPU_SET_IFM2_BASE0"), unset.end());
}

TEST(Stream, ErrorsNameTheOffset) {
  const std::vector<uint32_t> unknown = {static_cast<uint32_t>(isa::Cmd0::OpDmaWait), 0x000003ffu};
  EXPECT_NE(errorOf(readStream(unknown, Family::U55)).find("0x4"), std::string::npos);
  const std::vector<uint32_t> cut = {0x00004000u};
  EXPECT_FALSE(readStream(cut, Family::U85).ok());
  const std::vector<uint32_t> reserved = {0x00000400u};
  EXPECT_FALSE(readStream(reserved, Family::U85).ok());
}

TEST(Stream, RegistersMeanOtherThingsOnOtherArchitectures) {
  EXPECT_STREQ(findCommand(Family::U65, true, 0x092)->name, "NPU_SET_SCALE1_BASE");
  EXPECT_STREQ(findCommand(Family::U85, true, 0x092)->name, "NPU_SET_WEIGHT2_BASE");
  EXPECT_EQ(findCommand(Family::U55, true, 0x092), nullptr);
  EXPECT_STREQ(findCommand(Family::U55, false, 0x12d)->name, "NPU_SET_AB_START");
  EXPECT_STREQ(findCommand(Family::U85, false, 0x12d)->name, "NPU_SET_RESIZE_Y_OFFSET");
}

// Programs of another compiler: every word is recognized, every operation decodes with all its registers set,
// and the operations survive being written and decoded again.
TEST(Stream, RecordedPrograms) {
  CARINA_NEED_FIXTURES(fixtures);
  const auto files = test::filesIn(fixtures / "vectors" / "programs", "payload.bin");
  ASSERT_FALSE(files.empty());
  for (const auto& file : files) {
    SCOPED_TRACE(file.string());
    const auto mapped = require(MappedFile::open(file));
    const auto payload = require(readPayload(mapped->bytes()));
    const Target* target = require(payloadTarget(payload));
    RegisterState state;
    StreamWriter writer(*target);
    std::vector<Operation> operations;
    const auto commands = require(readStream(payload.words, target->family));
    for (const Command& command : commands) {
      EXPECT_EQ(command.bits() & ~uint64_t{0xffff} & ~fieldMask(*command.info), 0u);
      if (!command.info->operation) {
        state.apply(command);
        continue;
      }
      std::vector<std::string_view> unset;
      const auto operation = require(decodeOperation(state, command, *target, &unset));
      EXPECT_TRUE(unset.empty()) << command.info->name << " reads " << unset.front();
      operations.push_back(operation);
      ASSERT_TRUE(writer.add(operation).ok());
    }
    EXPECT_EQ(operations.back(), Operation(Stop{0xffff}));
    const auto again = require(decodeStream(writer.words(), *target));
    ASSERT_EQ(again.size(), operations.size());
    for (size_t n = 0; n < operations.size(); ++n)
      EXPECT_EQ(again[n].operation, operations[n]) << describe(operations[n]);
    EXPECT_LE(writer.words().size(), payload.words.size() * 11 / 10);
  }
}

}  // namespace
}  // namespace carina::npu
