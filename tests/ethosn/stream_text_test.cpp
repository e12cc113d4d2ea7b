// SPDX-License-Identifier: Apache-2.0
#include "ethosn/stream/stream_text.hpp"

#include <gmock/gmock.h>

#include "sample_stream.hpp"
#include "support/require.hpp"

namespace carina::ethosn {
namespace {

using ::testing::HasSubstr;

TEST(EthosNStreamText, RoundTripsToTheSameBytes) {
  CompiledNetwork network = test::sampleNetwork();
  network.inputs[0].name = "a \"b\"; \\ \n\xff";
  const auto text = require(printNetwork(network));
  EXPECT_THAT(text, HasSubstr("wait counter=ple_stripe value=1"));
  EXPECT_THAT(text, HasSubstr("operation=depthwise"));
  EXPECT_THAT(text, HasSubstr("V8222 PASSTHROUGH 8x8 x2"));
  EXPECT_THAT(text, HasSubstr("ce_control: ifm_pads=1"));
  const auto parsed = parseNetwork(text);
  ASSERT_TRUE(parsed) << Result<CompiledNetwork>(parsed).error().str();
  EXPECT_EQ(*parsed, network);
  EXPECT_EQ(*parseNetwork(*printNetwork(network, {.comments = false})), network);
}

TEST(EthosNStreamText, PreservesBytesAroundTheStreamAndInNoField) {
  CompiledNetwork network = test::sampleNetwork();
  auto& data = network.constantControlUnit;
  data[16 + 44 + 4 + 3] = 0x5A;
  data.insert(data.begin(), 64, 0x11);
  data.insert(data.end(), 24, 0x22);
  network.controlUnitBuffers[0].offset = 64;
  const auto text = require(printNetwork(network));
  EXPECT_THAT(text, HasSubstr("unused="));
  EXPECT_EQ(*parseNetwork(text), network);
}

TEST(EthosNStreamText, ErrorsNameTheLine) {
  const auto fault = [](std::string_view text) {
    auto parsed = parseNetwork(text);
    return parsed ? std::string("accepted") : parsed.error().str();
  };
  EXPECT_THAT(fault(""), HasSubstr(".end"));
  EXPECT_THAT(fault(".network 3.0.0\n"), HasSubstr("line 1"));
  EXPECT_THAT(fault(".network 2.0.0\n.agent 1 ple_loader\n"), HasSubstr("found agent 1, expected agent 0"));
  EXPECT_THAT(fault(".network 2.0.0\n.agent 0 nothing\n"), HasSubstr("unknown type of agent"));
  EXPECT_THAT(fault(".network 2.0.0\n.agent 0 ple_loader ple_kernel=65536\n"), HasSubstr("16 bits"));
  EXPECT_THAT(fault(".network 2.0.0\nwait counter=mce value=1\n"), HasSubstr("is not in a list"));
  EXPECT_THAT(fault(".network 2.0.0\n.list mce\nwait counter=mce value=1\n"),
              HasSubstr("line 3: unknown counter 'mce'"));
  EXPECT_THAT(fault(".network 2.0.0\n.list mce\nwait counter=mceif value=1 value=2\n"),
              HasSubstr("repeated name 'value'"));
  EXPECT_THAT(fault(".network 2.0.0\n.list ple\nstart_ple agent=0 scratch=1,2,3,4,5,6,7,8,9\n"),
              HasSubstr("more than 8 values"));
  EXPECT_THAT(fault(".network 2.0.0\n.list ple\nstart_ple agent=0\n.end\n"), HasSubstr("names agent 0 of 0"));
  EXPECT_THAT(fault(".network 2.0.0\n.constants\n0g\n"), HasSubstr("not a hexadecimal byte"));
  EXPECT_THAT(fault(".network 2.0.0\n.end\n.list mce\n"), HasSubstr("follows .end"));
}

}  // namespace
}  // namespace carina::ethosn
