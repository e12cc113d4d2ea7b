// SPDX-License-Identifier: Apache-2.0
// The driver's register sequences on a device that only records them, and its reactions to faults and
// timeouts.
#include <gtest/gtest.h>

#include <cstring>

#include "fake_device.hpp"

namespace carina::rt {
namespace {

TEST(EthosUDriver, JobOnU55) {
  FakeDevice device(kU55Config128, format::ethosu_id::kU55);
  EthosUDriver driver(device);
  ASSERT_TRUE(driver.open().ok());
  EXPECT_EQ(driver.info().product, NpuProduct::U55);
  EXPECT_EQ(driver.info().macsPerCycle(), 128u);
  EXPECT_TRUE(device.wrote(reg::kReset, format::ethosu_reset::kPrivileged));
  EXPECT_TRUE(device.wrote(reg::kAxiLimit0 + 12, 0x0f1f0000));
  device.writes.clear();
  Buffer weights{}, scratch{};
  const Region regions[] = {{weights.bytes, 64, Access::Read},
                            {scratch.bytes, 64, Access::ReadWrite},
                            {nullptr, 0, Access::ReadWrite}};
  const Payload payload = payloadFor(kU55Config128, 0x10060000);
  device.spurious = 2;
  ASSERT_TRUE(driver.run(payload.bytes(), Span<const Region>(regions)).ok());
  EXPECT_EQ(device.mapped, 0);
  EXPECT_TRUE(device.wrote(reg::kQSize, 4));
  EXPECT_TRUE(device.wrote(reg::kQConfig, 2));
  EXPECT_TRUE(device.wrote(reg::kRegionCfg, 0x13));  // region 0 external, 1 SRAM, 2 port 0 counter 1
  EXPECT_TRUE(device.wrote(reg::kBaseP, 0x40000000));
  for (const auto& [offset, value] : device.writes)
    EXPECT_NE(offset, reg::kBaseP + 4) << "U55 has 32 address bits";
  EXPECT_EQ(driver.pmu().cycles, 1234u);
  EXPECT_EQ(device.registers[reg::kCmd], 0xcu);
}

TEST(EthosUDriver, U85HasMemoryAttributesAndWideAddresses) {
  FakeDevice device(kU85Config256, format::ethosu_id::kU85);
  DriverOptions options;
  options.hasAttributes = true;
  options.attributes = RegionAttributes::dedicatedSram();
  EthosUDriver driver(device, options);
  ASSERT_TRUE(driver.open().ok());
  EXPECT_TRUE(device.wrote(reg::kMemAttr0 + 8, 4));
  EXPECT_TRUE(device.wrote(reg::kAxiExt, 0x00021f3f));
  Buffer scratch{};
  const Region regions[] = {{scratch.bytes, 64, Access::Read}, {scratch.bytes, 64, Access::ReadWrite}};
  ASSERT_TRUE(driver.run(payloadFor(kU85Config256, 0x20007000).bytes(), Span<const Region>(regions)).ok());
  EXPECT_TRUE(device.wrote(reg::kQConfig, 3));
  EXPECT_TRUE(device.wrote(reg::kRegionCfg, 0xf));
  EXPECT_TRUE(device.wrote(reg::kBaseP + 4, 1)) << "upper half of the second mapping's address";
}

TEST(EthosUDriver, JobsRunInParallelWithTheCpuAndEachOther) {
  FakeDevice devices[] = {{kU55Config128, format::ethosu_id::kU55}, {kU55Config128, format::ethosu_id::kU55}};
  EthosUDriver first(devices[0]), second(devices[1]);
  ASSERT_TRUE(first.open().ok() && second.open().ok());
  EXPECT_EQ(first.finish().code, Code::InvalidState);
  Buffer weights{}, scratch{};
  const Region regions[] = {{weights.bytes, 64, Access::Read}, {scratch.bytes, 64, Access::ReadWrite}};
  const Payload payload = payloadFor(kU55Config128, 0x10060000);
  ASSERT_TRUE(first.start(payload.bytes(), Span<const Region>(regions)).ok());
  EXPECT_TRUE(first.busy());
  EXPECT_EQ(first.start(payload.bytes(), Span<const Region>(regions)).code, Code::InvalidState);
  ASSERT_TRUE(second.start(payload.bytes(), Span<const Region>(regions)).ok());
  EXPECT_TRUE(first.busy() && second.busy());
  EXPECT_TRUE(first.running() && second.running());
  devices[1].end();
  EXPECT_TRUE(first.running() && !second.running());
  EXPECT_TRUE(second.busy());
  EXPECT_EQ(devices[0].mapped, 3) << "commands and two regions";
  EXPECT_TRUE(second.finish().ok());
  EXPECT_TRUE(first.busy());
  EXPECT_TRUE(first.finish().ok());
  EXPECT_FALSE(first.busy() || second.busy() || first.running());
  EXPECT_EQ(devices[0].mapped, 0);
}

TEST(EthosUDriver, CachesAreMaintained) {
  FakeDevice device(kU55Config128, format::ethosu_id::kU55);
  EthosUDriver driver(device);
  ASSERT_TRUE(driver.open().ok());
  Buffer weights{}, scratch{};
  const Region regions[] = {{weights.bytes, 64, Access::Read},
                            {scratch.bytes, 48, Access::ReadWrite},
                            {nullptr, 0, Access::ReadWrite}};
  const Payload payload = payloadFor(kU55Config128, 0x10060000);
  using Ranges = std::vector<std::pair<const void*, size_t>>;
  ASSERT_TRUE(driver.start(payload.bytes(), Span<const Region>(regions)).ok());
  EXPECT_EQ(device.cleaned, (Ranges{{payload.words + 8, 4}, {weights.bytes, 64}, {scratch.bytes, 48}}));
  EXPECT_TRUE(device.invalidated.empty());
  ASSERT_TRUE(driver.finish().ok());
  EXPECT_EQ(device.invalidated, (Ranges{{scratch.bytes, 48}}));
}

TEST(EthosUDriver, FaultsNameTheCommand) {
  const std::pair<uint32_t, const char*> faults[] = {{status::kBusStatus, "outside"},
                                                     {status::kCmdParseError, "illegal command"},
                                                     {status::kWdFault, "weight"},
                                                     {status::kEccFault, "own memory"},
                                                     {0, "before the end"}};
  for (const auto& [bits, text] : faults) {
    FakeDevice device(kU55Config128, format::ethosu_id::kU55);
    EthosUDriver driver(device);
    ASSERT_TRUE(driver.open().ok());
    device.outcome = bits | 3u << status::kFaultingChannelShift;
    const Payload payload = payloadFor(kU55Config128, 0x10060000);
    device.writes.clear();
    const Status result = driver.run(payload.bytes(), {});
    EXPECT_EQ(result.code, Code::DeviceFault);
    EXPECT_NE(std::string(result.what).find(text), std::string::npos) << result.what;
    EXPECT_EQ(result.where, 0u);
    EXPECT_EQ(driver.fault().commandWord, 0xffff0000u);
    EXPECT_EQ(driver.fault().channel(), 3u);
    EXPECT_EQ(device.mapped, 0);
    EXPECT_FALSE(driver.busy());
    int resets = 0;
    for (const auto& write : device.writes) resets += write.first == reg::kReset;
    EXPECT_EQ(resets, 2) << "before the job and after the fault";
  }
}

TEST(EthosUDriver, Timeouts) {
  FakeDevice device(kU55Config128, format::ethosu_id::kU55);
  EthosUDriver driver(device);
  ASSERT_TRUE(driver.open().ok());
  device.silent = true;
  EXPECT_EQ(driver.run(payloadFor(kU55Config128, 0x10060000).bytes(), {}).code, Code::DeviceTimeout);
  EXPECT_EQ(device.mapped, 0);
  device.stuckInReset = true;
  EXPECT_EQ(driver.open().code, Code::DeviceTimeout);
  EXPECT_EQ(driver.run(payloadFor(kU55Config128, 0x10060000).bytes(), {}).code, Code::InvalidState);
}

TEST(EthosUDriver, RefusesOtherTargets) {
  FakeDevice device(kU55Config128, format::ethosu_id::kU55);
  EthosUDriver driver(device);
  ASSERT_TRUE(driver.open().ok());
  const auto codeFor = [&](uint32_t config, uint32_t id) {
    Span<const uint32_t> stream;
    return driver.check(payloadFor(config, id).bytes(), &stream).code;
  };
  EXPECT_EQ(codeFor(kU55Config128, 0x10060000), Code::Ok);
  EXPECT_EQ(codeFor(0x00001006, 0x10060000), Code::WrongTarget);  // 64 MACs
  EXPECT_EQ(codeFor(kU85Config256, 0x20007000), Code::WrongTarget);
  EXPECT_EQ(codeFor(kU55Config128, 0x20060000), Code::WrongTarget);
  EXPECT_EQ(codeFor(kU55Config128, 0x10260000), Code::WrongTarget);  // needs 1.2
  EXPECT_EQ(codeFor(kU55Config128 | 1u << 27, 0x10060000), Code::WrongTarget);
}

TEST(EthosUDriver, RefusesInaccessibleMemory) {
  FakeDevice device(kU55Config128, format::ethosu_id::kU55);
  EthosUDriver driver(device);
  ASSERT_TRUE(driver.open().ok());
  Buffer buffer{};
  const Region regions[] = {{buffer.bytes, 16, Access::Read}, {buffer.bytes + 16, 16, Access::ReadWrite}};
  const Payload payload = payloadFor(kU55Config128, 0x10060000);
  device.mapsLeft = 2;
  EXPECT_EQ(driver.run(payload.bytes(), Span<const Region>(regions)).code, Code::MapFailed);
  EXPECT_EQ(device.mapped, 0);
  const Region odd[] = {{buffer.bytes + 4, 16, Access::Read}};
  device.mapsLeft = 100;
  EXPECT_EQ(driver.run(payload.bytes(), Span<const Region>(odd)).code, Code::MapFailed);
  EXPECT_EQ(device.mapped, 0);
}

TEST(EthosUDriver, ChecksSecurityLevel) {
  FakeDevice device(kU55Config128, format::ethosu_id::kU55);
  device.granted = format::ethosu_reset::kNonSecure;
  EthosUDriver driver(device);
  EXPECT_EQ(driver.open().code, Code::DeviceFault);
  FakeDevice other(0x30000000, 0);
  EthosUDriver unknown(other);
  EXPECT_EQ(unknown.open().code, Code::Unsupported);
}

}  // namespace
}  // namespace carina::rt
