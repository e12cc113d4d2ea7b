// SPDX-License-Identifier: Apache-2.0
// Text of streams and payloads: golden files for Carina's own streams, exact round trips, assembler errors.
#include "npu/isa/disassembler.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>
#include <random>

#include "base/file.hpp"
#include "npu/isa/assembler.hpp"
#include "npu/isa/layout.hpp"
#include "npu/isa/payload.hpp"
#include "npu/isa/stream.hpp"
#include "support/fixtures.hpp"
#include "support/golden.hpp"
#include "support/require.hpp"

namespace carina::npu {
namespace {

/// A weight DMA, a convolution that uses the weights, and a stop.
std::vector<uint32_t> smallStream(const Target& target) {
  StreamWriter writer(target);
  DmaOperation dma;
  dma.source.address = 0x4d0;
  dma.destination = {false, 1, 0xae40, false, 0, 0};
  dma.length = 0x4d0;
  EXPECT_TRUE(writer.add(dma).ok());
  KernelOperation conv;
  conv.ifm = denseMap(49, 10, 1, ElementType::Int8, Layout::NHWC, 1, 0xb700);
  conv.ifm.zeroPoint = 102;
  conv.ofm = denseMap(40, 7, 16, ElementType::Int8, Layout::NHCWB16, 1, 0);
  conv.ofm.zeroPoint = -128;
  conv.kernel = {10, 4, 1, 1, 1, 1};
  conv.weights.emplace();
  conv.weights->weightRegion = conv.weights->scaleRegion = 1;
  conv.weights->traversal = Traversal::PartKernelFirst;
  conv.weights->weights[0] = {0xaee0, 0x430};
  conv.weights->scales[0] = {0xae40, 0xa0};
  conv.activation.min = -128;
  conv.activation.max = 127;
  conv.block = {16, 8, 16};
  conv.microblock = target.isU85() ? BlockShape{1, 4, 8} : BlockShape{1, 2, 8};
  if (!target.isU85()) conv.ifmBufferEnd = conv.accumulatorStart = 6;
  EXPECT_TRUE(writer.add(DmaWait{0}).ok());
  EXPECT_TRUE(writer.add(conv).ok());
  EXPECT_TRUE(writer.add(Stop{}).ok());
  return std::move(writer).take();
}

std::string payloadText(const std::vector<uint8_t>& bytes) {
  return require(disassemblePayload({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}));
}

TEST(Disassembler, Goldens) {
  for (const char* name : {"ethos-u55-128", "ethos-u65-512", "ethos-u85-256"}) {
    const Target& target = **findTarget(name);
    const auto payload = require(buildPayload(target, smallStream(target)));
    const std::string text = payloadText(payload);
    EXPECT_TRUE(test::matchesGolden(std::string("npu/stream_") + name + ".txt", text));
    const auto assembled = require(assemble(text));
    EXPECT_TRUE(assembled.isPayload);
    EXPECT_EQ(assembled.bytes, payload);
  }
}

TEST(Disassembler, RecordedPayloadsRoundTrip) {
  CARINA_NEED_FIXTURES(fixtures);
  auto files = test::filesIn(fixtures / "vectors" / "programs", "payload.bin");
  ASSERT_FALSE(files.empty());
  for (const auto& file : files) {
    SCOPED_TRACE(file.string());
    const auto mapped = require(MappedFile::open(file));
    const ByteSpan bytes = mapped->bytes();
    for (const bool comments : {true, false}) {
      const auto text = require(disassemblePayload(bytes, {comments}));
      EXPECT_EQ(text.find(".word"), std::string::npos);
      const auto assembled = require(assemble(text));
      ASSERT_EQ(assembled.bytes.size(), bytes.size());
      EXPECT_EQ(std::memcmp(assembled.bytes.data(), bytes.data(), bytes.size()), 0);
    }
  }
}

/// Random words, most of them with the form of commands.
std::vector<uint32_t> randomWords(Family family, uint32_t seed) {
  std::mt19937 random(seed);
  const isa::Architecture& arch = architecture(family);
  std::vector<uint32_t> words(random() % 40);
  for (uint32_t& word : words) {
    word = static_cast<uint32_t>(random());
    if (random() % 4 == 0) continue;
    const isa::Command& command = arch.commands[random() % arch.commandCount];
    word = (word & 0xffff0000u) | command.opcode | (command.twoWords ? 1u << 14 : 0u);
    if (random() % 2 == 0) word &= static_cast<uint32_t>(fieldMask(command)) | 0xffffu;
  }
  return words;
}

RC_GTEST_PROP(Disassembler, AnyWordsRoundTrip, ()) {
  const auto seed = *rc::gen::arbitrary<uint32_t>();
  for (const Family family : {Family::U55, Family::U65, Family::U85}) {
    const std::vector<uint32_t> words = randomWords(family, seed);
    for (const bool comments : {true, false}) {
      const auto assembled = require(assemble(disassembleStream(words, family, {comments})));
      RC_ASSERT(assembled.stream == words);
      RC_ASSERT(assembled.family == family);
    }
  }
}

TEST(Disassembler, Cop2RoundTrips) {
  const Target& target = **findTarget("ethos-u85-256");
  const std::vector<uint32_t> stream = {0xffff0000u};
  // fourcc, version, length, entry, metadata, padding, stream.
  const std::vector<uint32_t> words = {
      0x32504f43,    1, 52,   0, 1,          44,       36, 0x4d554556, 1, 20, target.configWord,
      target.idWord, 1, 4096, 0, 0xffffffff, stream[0]};
  std::vector<uint8_t> bytes;
  for (const uint32_t word : words) {
    for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<uint8_t>(word >> shift));
  }
  const auto payload = require(readPayload({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}));
  EXPECT_TRUE(payload.cop2);
  EXPECT_EQ(payload.words, stream);
  EXPECT_EQ(payload.stagingBytes, 4096u);
  const auto assembled = require(assemble(payloadText(bytes)));
  EXPECT_EQ(assembled.bytes, bytes);
}

TEST(Assembler, ErrorsNameTheLine) {
  const auto expectError = [](std::string_view text, std::string_view part) {
    const std::string error = errorOf(assemble(text));
    EXPECT_NE(error.find(part), std::string::npos) << text << ": " << error;
  };
  expectError("", "no .stream");
  expectError(".stream ethos-u99\n", "line 1");
  expectError(".stream ethos-u55\nNPU_OP_BRANCH branch_target=0x0\n", "line 2");
  expectError(".stream ethos-u85\n\nNPU_SET_IFM_REGION region=8\n", "0..7");
  expectError(".stream ethos-u85\nNPU_SET_IFM_REGION area=1\n", "no field area");
  expectError(".stream ethos-u85\nNPU_SET_IFM_PRECISION activation_format=WIDE\n", "cannot be WIDE");
  expectError(".stream ethos-u85\nNPU_SET_IFM_REGION region\n", "field=value");
  expectError(".payload cop1\n.stream ethos-u85\n", ".end");
  expectError(".nop\n", "cop1");
  expectError(".stream ethos-u85\n.word 0x123456789\n", "32-bit");
  expectError(".nonsense\n", "unknown directive");
}

TEST(Payload, DamagedOnesAreRefused) {
  const Target& target = **findTarget("ethos-u55-128");
  const auto good = require(buildPayload(target, smallStream(target)));
  EXPECT_EQ(good.size() % 4, 0u);
  const auto read = [](const std::vector<uint8_t>& bytes) {
    return readPayload({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}).ok();
  };
  EXPECT_TRUE(read(good));
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(read(std::vector<uint8_t>(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size))))
        << size;
  }
  std::vector<uint8_t> other = good;
  other[0] = 'X';
  EXPECT_FALSE(read(other));
  other = good;
  other[4] = 3;  // an action that drivers reject
  EXPECT_FALSE(read(other));
}

}  // namespace
}  // namespace carina::npu
