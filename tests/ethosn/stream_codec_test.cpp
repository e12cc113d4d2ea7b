// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "sample_stream.hpp"
#include "support/require.hpp"

namespace carina::ethosn {
namespace {

using ::testing::HasSubstr;

ByteSpan bytesOf(const std::vector<uint8_t>& bytes) {
  return std::as_bytes(std::span(bytes));
}

void setWord(std::vector<uint8_t>& bytes, size_t offset, uint32_t word) {
  for (size_t i = 0; i < 4; ++i) bytes[offset + i] = static_cast<uint8_t>(word >> (8 * i));
}

TEST(EthosNStreamCodec, CommandSizesMatchTheFormat) {
  EXPECT_EQ(commandBytes(CommandType::WaitForCounter), 12u);
  EXPECT_EQ(commandBytes(CommandType::LoadIfmStripe), 48u);
  EXPECT_EQ(commandBytes(CommandType::ProgramMceStripe), 388u);
  EXPECT_EQ(commandBytes(CommandType::ConfigMceif), 8u);
  EXPECT_EQ(commandBytes(CommandType::StartMceStripe), 12u);
  EXPECT_EQ(commandBytes(CommandType::StartPleStripe), 40u);
}

TEST(EthosNStreamCodec, RoundTripsThroughBytes) {
  const CommandStream stream = test::sampleStream();
  const auto bytes = *writeCommandStream(stream);
  EXPECT_EQ(bytes.size(), 16u + 44 + 6 * 48 + 3 * 48 + 60 + (388 + 12 + 8 + 12) + 48);
  auto read = require(readCommandStream(bytesOf(bytes)));
  EXPECT_EQ(read, stream);
  EXPECT_EQ(*writeCommandStream(read), bytes);
}

TEST(EthosNStreamCodec, FieldsAreAtTheOffsetsOfTheFormat) {
  const auto bytes = *writeCommandStream(test::sampleStream());
  const size_t agents = 16 + 44;
  EXPECT_EQ(bytes[agents + 4], 1);           // bufferId of the IFM streamer
  EXPECT_EQ(bytes[agents + 4 + 7], 0xFD);    // zero point -3 in the top byte of DMA_COMP_CONFIG0
  EXPECT_EQ(bytes[agents + 2 * 48 + 4], 1);  // depthwise
  EXPECT_EQ(bytes[agents + 2 * 48 + 6], 262 & 0xff);
  EXPECT_EQ(bytes[agents + 2 * 48 + 4 + 40], 0x3f);
  const size_t mce = commandOffsets(test::sampleStream(), Queue::Mce)[0];
  EXPECT_EQ(bytes[mce], 3);
  EXPECT_EQ(bytes[mce + 12 + 31 * 4], 7);  // the last MUL_ENABLE
  EXPECT_EQ(bytes[mce + 384], 4);          // blocks
}

TEST(EthosNStreamCodec, PreservesBytesInNoField) {
  auto bytes = *writeCommandStream(test::sampleStream());
  bytes[16 + 44 + 4 + 3] = 0x77;  // after bufferId
  auto read = require(readCommandStream(bytesOf(bytes)));
  EXPECT_EQ(*writeCommandStream(read), bytes);
}

TEST(EthosNStreamCodec, FaultsNameTheirOffset) {
  const auto good = *writeCommandStream(test::sampleStream());
  const auto refused = [&](size_t offset, uint32_t word) {
    auto bytes = good;
    setWord(bytes, offset, word);
    auto read = readCommandStream(bytesOf(bytes));
    return read ? std::string("accepted") : read.error().str();
  };
  EXPECT_THAT(refused(0, 0), HasSubstr("ENCS"));
  EXPECT_THAT(refused(4, 7), HasSubstr("version 7.0.0"));
  EXPECT_THAT(refused(16, 1u << 30), HasSubstr("offset 0x10"));
  EXPECT_THAT(refused(20, 48), HasSubstr("offset 0x14"));
  EXPECT_THAT(refused(24, 0x10000000), HasSubstr("agents do not fit"));
  EXPECT_THAT(refused(28, 0), HasSubstr("list dma_rd is at 0"));
  EXPECT_THAT(refused(32, 0xFFFFFFFF), HasSubstr("do not fit"));
  EXPECT_THAT(refused(60, 9), HasSubstr("unknown type 9"));
  const size_t read = 16 + 44 + 6 * 48;
  EXPECT_THAT(refused(read, 99), HasSubstr(fmt::format("offset {:#x}", read)));
  EXPECT_THAT(refused(read, 9), HasSubstr("store_ofm does not belong in list dma_rd"));
  EXPECT_THAT(refused(read + 4, 6), HasSubstr("names agent 6 of 6"));
  EXPECT_THAT(refused(read + 4, 0), HasSubstr("which is a ifm_streamer, not a ple_loader"));
}

TEST(EthosNStreamCodec, EveryPrefixIsRefused) {
  const auto good = *writeCommandStream(test::sampleStream());
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(readCommandStream(bytesOf(good).first(size))) << size;
  }
}

TEST(EthosNStreamCodec, RefusesToWriteWhatCannotBeRead) {
  CommandStream stream = test::sampleStream();
  stream.queue(Queue::Ple).push_back(ConfigMceif{2});
  EXPECT_FALSE(writeCommandStream(stream));
  stream = test::sampleStream();
  stream.queue(Queue::Mce).push_back(ConfigMceif{0});
  EXPECT_FALSE(writeCommandStream(stream));
}

TEST(EthosNRegisters, FieldsEncodeTheirValues) {
  EXPECT_EQ(ce_control::kIfmPads.of(4), 3u);
  EXPECT_EQ(sram_address::kBytes.of(0xEF00), 0xEF0u);
  EXPECT_EQ(ifm_pad::kDeltaHeight.in(ifm_pad::kDeltaHeight.of(-16)), -16);
  EXPECT_FALSE(ifm_pad::kDeltaHeight.fits(16));
  EXPECT_FALSE(sram_address::kBytes.fits(8));
  EXPECT_EQ(dma_bytes::kValue.in(0xFFFFFFFF), int64_t{1} << 32);
}

}  // namespace
}  // namespace carina::ethosn
