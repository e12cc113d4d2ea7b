// SPDX-License-Identifier: Apache-2.0
#include "cpu_m/mpu.hpp"

#include <gtest/gtest.h>

#include "machine.hpp"

namespace carina::cpu_m {
namespace {

constexpr uint32_t kReadWriteAll = 1 << 1, kReadOnlyAll = 3 << 1, kNever = 1;

void setRegion(Mpu& mpu, uint32_t number, uint32_t base, uint32_t limit, uint32_t access,
               uint32_t attributes = 0) {
  mpu.regions[number] = {base | access, limit | attributes | 1};
}

TEST(Mpu, RegionsAndTheDefaultMap) {
  Mpu mpu;
  setRegion(mpu, 0, 0x20000000, 0x20000fe0, kReadWriteAll);
  setRegion(mpu, 1, 0x10000000, 0x1000ffe0, kReadOnlyAll);
  setRegion(mpu, 2, 0x20002000, 0x20002fe0, 0 | kNever);
  EXPECT_TRUE(mpu.permission(0x50000000, false, false).write) << "off: the default map";
  EXPECT_FALSE(mpu.permission(0x50000000, false, false).execute);
  mpu.control = Mpu::kEnable;
  EXPECT_TRUE(mpu.permission(0x20000010, false, false).write);
  EXPECT_TRUE(mpu.permission(0x20000fff, false, false).write);
  EXPECT_FALSE(mpu.permission(0x20001000, true, false).read) << "no region, no background";
  EXPECT_FALSE(mpu.permission(0x10000000, true, false).write);
  EXPECT_TRUE(mpu.permission(0x10000000, false, false).execute);
  EXPECT_FALSE(mpu.permission(0x20002000, false, false).read);
  EXPECT_TRUE(mpu.permission(0x20002000, true, false).read);
  EXPECT_FALSE(mpu.permission(0x20002000, true, false).execute);
  EXPECT_TRUE(mpu.permission(0x30000000, true, true).read) << "off while faults are handled";
  EXPECT_TRUE(mpu.permission(0xe000ed00, true, false).read) << "private peripherals";
  mpu.control |= Mpu::kPrivilegedDefault | Mpu::kDuringFaults;
  EXPECT_TRUE(mpu.permission(0x30000000, true, true).read);
  EXPECT_FALSE(mpu.permission(0x30000000, false, true).read);
}

TEST(Mpu, OverlapsAreRefusedAndPagesMayBeSplit) {
  Mpu mpu;
  mpu.control = Mpu::kEnable | Mpu::kPrivilegedDefault;
  setRegion(mpu, 0, 0x20000000, 0x200000e0, kReadWriteAll);
  setRegion(mpu, 5, 0x200000c0, 0x20000fe0, kReadWriteAll);
  EXPECT_TRUE(mpu.permission(0x200000bf, false, false).read);
  EXPECT_FALSE(mpu.permission(0x200000c0, true, false).read);
  EXPECT_FALSE(mpu.permission(0x200000bf, false, false).wholePage);
  EXPECT_TRUE(mpu.permission(0x20001000, true, false).wholePage);
}

TEST(Mpu, PrivilegedExecuteNever) {
  Mpu mpu;
  mpu.control = Mpu::kEnable;
  setRegion(mpu, 0, 0x10000000, 0x1000ffe0, kReadOnlyAll, 1 << 4);
  EXPECT_FALSE(mpu.permission(0x10000000, true, false).execute);
  EXPECT_TRUE(mpu.permission(0x10000000, false, false).execute);
}

TEST(Mpu, StopsLoadsStoresAndFetches) {
  Machine machine;
  Mpu& mpu = machine.core.changeMpu(kSecure);
  mpu.control = Mpu::kEnable;
  setRegion(mpu, 0, Machine::kCode, Machine::kCode + 0xffe0, kReadOnlyAll);
  setRegion(mpu, 1, Machine::kData, Machine::kData + 0x1e0, kReadWriteAll);
  machine.put(Machine::kCode, {0x6001, 0x6802, 0x4718});  // str r1, [r0]; ldr r2, [r0]; bx r3
  State& s = machine.core.state;
  s.r[0] = Machine::kData + 0x200;
  Stop stop = machine.core.run(10);
  EXPECT_EQ(stop.reason, StopReason::DataViolation);
  EXPECT_EQ(stop.address, Machine::kData + 0x200);
  s.r[0] = Machine::kData + 0x1fc;
  s.r[1] = 5;
  s.r[3] = Machine::kData | 1;
  machine.put(Machine::kData, {0xbf30});
  EXPECT_EQ(machine.core.run(10).reason, StopReason::WaitForInterrupt);
  EXPECT_EQ(s.r[2], 5u);
  machine.core.changeMpu(kSecure).regions[1].base |= kNever;
  s.pc = Machine::kCode;
  stop = machine.core.run(10);
  EXPECT_EQ(stop.reason, StopReason::FetchViolation);
  EXPECT_EQ(s.pc, Machine::kData);
}

TEST(Mpu, PrivilegeChangesFromTheNextInstructionOn) {
  Machine machine;
  Mpu& mpu = machine.core.changeMpu(kSecure);
  mpu.control = Mpu::kEnable | Mpu::kPrivilegedDefault;
  setRegion(mpu, 0, Machine::kCode, Machine::kCode + 0xffe0, kReadOnlyAll);
  // l: ldr r2, [r0]; ldrt r3, [r1]; msr control, r4; b l
  machine.put(Machine::kCode, {0x6802, 0xf851, 0x3e00, 0xf384, 0x8814, 0xe7f9});
  State& s = machine.core.state;
  s.r[0] = Machine::kData;
  s.r[1] = Machine::kCode;
  s.r[4] = 0;
  EXPECT_EQ(machine.core.run(40).reason, StopReason::Budget);
  s.r[4] = 1;
  const Stop stop = machine.core.run(40);
  EXPECT_EQ(stop.reason, StopReason::DataViolation);
  EXPECT_EQ(s.pc, Machine::kCode);
  EXPECT_FALSE(s.privileged());
  s.control[kSecure] = 0;
  s.r[1] = Machine::kData;
  EXPECT_EQ(machine.core.run(40).reason, StopReason::DataViolation);
  EXPECT_EQ(s.pc, Machine::kCode + 2) << "LDRT is not privileged";
}

}  // namespace
}  // namespace carina::cpu_m
