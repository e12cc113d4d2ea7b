// SPDX-License-Identifier: Apache-2.0
#include "ethosn/stream/compiled_network.hpp"

#include <gmock/gmock.h>

#include "sample_stream.hpp"

namespace carina::ethosn {
namespace {

using ::testing::HasSubstr;

ByteSpan networkBytes(const std::vector<uint8_t>& bytes) {
  return std::as_bytes(std::span(bytes));
}

std::string faultOf(const CompiledNetwork& network) {
  Status status = checkBuffers(network);
  return status ? "accepted" : status.error().str();
}

TEST(EthosNCompiledNetwork, RoundTripsThroughBytes) {
  const CompiledNetwork network = test::sampleNetwork();
  const auto bytes = writeCompiledNetwork(network);
  auto read = readCompiledNetwork(networkBytes(bytes));
  ASSERT_TRUE(read) << read.error().str();
  EXPECT_EQ(*read, network);
  EXPECT_EQ(writeCompiledNetwork(*read), bytes);
  EXPECT_TRUE(checkBuffers(*read));
  EXPECT_EQ(intermediateBytes(*read), 228u);
  EXPECT_EQ(findBuffer(*read, 2)->kind, BufferKind::ConstantDma);
  EXPECT_FALSE(findBuffer(*read, 6));
}

TEST(EthosNCompiledNetwork, PrefixesAndTrailingBytesAreRefused) {
  auto bytes = writeCompiledNetwork(test::sampleNetwork());
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(readCompiledNetwork(networkBytes(bytes).first(size))) << size;
  bytes.push_back(0);
  auto read = readCompiledNetwork(networkBytes(bytes));
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().str(), HasSubstr("follow the last table"));
}

TEST(EthosNCompiledNetwork, OtherVersionsAreRefusedByName) {
  auto bytes = writeCompiledNetwork(test::sampleNetwork());
  bytes[4] = 3;
  auto read = readCompiledNetwork(networkBytes(bytes));
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().str(), HasSubstr("version 3.0.0"));
}

TEST(EthosNCompiledNetwork, BufferTablesAreChecked) {
  const CompiledNetwork good = test::sampleNetwork();
  EXPECT_EQ(faultOf(good), "accepted");
  CompiledNetwork bad = good;
  bad.outputs[0].id = 1;
  EXPECT_THAT(faultOf(bad), HasSubstr("id 1 appears in the tables input and output"));
  bad = good;
  bad.outputs[0].id = 9;
  EXPECT_THAT(faultOf(bad), HasSubstr("no table has buffer id 3"));
  bad = good;
  bad.dmaBuffers[0].size = 1537;
  EXPECT_THAT(faultOf(bad), HasSubstr("outside of its data"));
  bad = good;
  bad.dmaBuffers = {{2, 0, 1024, ""}, {6, 960, 64, ""}};
  EXPECT_THAT(faultOf(bad), HasSubstr("overlap"));
  bad = good;
  bad.intermediates[1].offset = 100;
  EXPECT_THAT(faultOf(bad), HasSubstr("not aligned"));
  bad = good;
  bad.controlUnitBuffers.clear();
  bad.outputs[0].id = 0;
  bad.intermediates[0].id = 3;
  bad.intermediates[1].id = 4;
  EXPECT_THAT(faultOf(bad), HasSubstr("buffer 0"));
}

}  // namespace
}  // namespace carina::ethosn
