// SPDX-License-Identifier: Apache-2.0
// The delegate with several NPUs.
#include <gtest/gtest.h>

#include <cstring>

#include "carina/ethosu_delegate.hpp"
#include "fake_device.hpp"
#include "program_support.hpp"
#include "pte/delegate_blob.hpp"

namespace carina::rt {
namespace {

constexpr uint32_t kU55Config256 = 0x00003008;

class NoData final : public NamedData {
 public:
  Status find(Text, Bytes*) const override { return failure(Code::NotFound, "no data"); }
};

/// A blob without inputs and outputs for the NPU with this CONFIG.
Aligned blobFor(uint32_t config) {
  const Payload payload = payloadFor(config, 0x10060000);
  pte::DelegateBlob blob;
  const auto* begin = reinterpret_cast<const std::byte*>(payload.words);
  blob.payload.assign(begin, begin + sizeof(payload.words));
  blob.scratchBytes = 64;
  const pte::ByteVector bytes = pte::buildDelegateBlob(blob);
  return Aligned(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

TEST(EthosUDelegate, EachProgramGoesToTheNpuItWasCompiledFor) {
  FakeDevice small(kU55Config128, format::ethosu_id::kU55), large(kU55Config256, format::ethosu_id::kU55);
  EthosUDriver smallDriver(small), largeDriver(large);
  ASSERT_TRUE(smallDriver.open().ok());
  ASSERT_TRUE(largeDriver.open().ok());
  EthosUDriver* const drivers[] = {&smallDriver, &largeDriver};
  EthosUDelegate delegate{Span<EthosUDriver* const>(drivers)};
  const auto run = [&](uint32_t config) {
    alignas(8) uint8_t state[EthosUDelegate::kStateBytes];
    const Aligned blob = blobFor(config);
    Aligned memory(64);
    size_t temporary = 0;
    const Status status = delegate.prepare(blob.span(), NoData(), state, &temporary);
    if (!status.ok()) return status;
    EXPECT_EQ(temporary, 64u);
    Arena arena(memory.span());
    return delegate.execute(state, {}, {}, arena);
  };
  small.writes.clear();
  large.writes.clear();
  ASSERT_TRUE(run(kU55Config256).ok());
  EXPECT_TRUE(small.writes.empty());
  EXPECT_FALSE(large.writes.empty());
  large.writes.clear();
  ASSERT_TRUE(run(kU55Config128).ok());
  EXPECT_FALSE(small.writes.empty());
  EXPECT_TRUE(large.writes.empty());
  EXPECT_EQ(run(kU85Config256).code, Code::WrongTarget);
  EXPECT_EQ(delegate.jobs(), 2u);
  EXPECT_EQ(delegate.cycles(), 2468u);
}

TEST(EthosUDelegate, WithoutDriverProgramsAreCheckedButNotRun) {
  EthosUDelegate delegate(nullptr);
  alignas(8) uint8_t state[EthosUDelegate::kStateBytes];
  const Aligned blob = blobFor(kU85Config256);
  size_t temporary = 0;
  ASSERT_TRUE(delegate.prepare(blob.span(), NoData(), state, &temporary).ok());
  Aligned memory(64);
  Arena arena(memory.span());
  EXPECT_EQ(delegate.execute(state, {}, {}, arena).code, Code::InvalidState);
}

}  // namespace
}  // namespace carina::rt
