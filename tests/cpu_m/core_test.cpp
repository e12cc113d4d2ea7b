// SPDX-License-Identifier: Apache-2.0
#include "cpu_m/core.hpp"

#include <gtest/gtest.h>

#include "machine.hpp"

namespace carina::cpu_m {
namespace {

TEST(Core, CountsALoop) {
  Machine machine;
  // movs r0, #0; movs r1, #10; l: adds r0, r0, r1; subs r1, #1; bne l; wfi
  machine.put(Machine::kCode, {0x2000, 0x210a, 0x1840, 0x3901, 0xd1fc, 0xbf30});
  const Stop stop = machine.core.run(1000);
  EXPECT_EQ(stop.reason, StopReason::WaitForInterrupt);
  EXPECT_EQ(machine.core.state.r[0], 55u);
  EXPECT_EQ(machine.core.state.pc, Machine::kCode + 12);
  EXPECT_EQ(machine.core.instructions(), 2u + 30 + 1);
}

TEST(Core, StopsWhenItsBudgetIsSpent) {
  Machine machine;
  machine.put(Machine::kCode, {0xe7fe});  // b .
  EXPECT_EQ(machine.core.run(100).reason, StopReason::Budget);
  EXPECT_EQ(machine.core.instructions(), 100u);
  EXPECT_EQ(machine.core.state.pc, Machine::kCode);
}

TEST(Core, ResumesItBlocksInTheMiddle) {
  Machine machine;
  // cmp r0, #0; ite eq; moveq r1, #1; movne r1, #2; wfi
  machine.put(Machine::kCode, {0x2800, 0xbf0c, 0x2101, 0x2102, 0xbf30});
  machine.core.run(100);
  EXPECT_EQ(machine.core.state.r[1], 1u);
  machine.core.state.pc = Machine::kCode;
  machine.core.state.r[0] = 3;
  machine.core.run(100);
  EXPECT_EQ(machine.core.state.r[1], 2u);
  machine.core.state.pc = Machine::kCode;
  machine.core.state.r[0] = 0;
  machine.core.state.r[1] = 9;
  machine.core.step();
  machine.core.step();
  EXPECT_EQ(machine.core.state.it, 0x0cu);
  machine.core.step();
  EXPECT_EQ(machine.core.state.r[1], 1u);
  EXPECT_EQ(machine.core.state.it, 0x18u);
  machine.core.run(100);
  EXPECT_EQ(machine.core.state.r[1], 1u);
  EXPECT_EQ(machine.core.state.it, 0u);
}

TEST(Core, ShiftsOfOneAndTwoRegistersAreConditional) {
  Machine machine;
  // cmp r8, #0; ittee eq; lslleq r0, r1, #3; asrleq r2, r3, r4; sqshlne r5, #2; uqrshllne r0, r1, #64, r6;
  // wfi
  machine.put(Machine::kCode, {0xf1b8, 0x0f00, 0xbf07, 0xea50, 0x01cf, 0xea52, 0x432d, 0xea55, 0x0fbf, 0xea51,
                               0x610d, 0xbf30});
  auto& r = machine.core.state.r;
  for (const bool equal : {true, false}) {
    machine.core.state.pc = Machine::kCode;
    r[0] = 0x80000001, r[1] = 1;            // shifted left by 3, or left by 4 with saturation
    r[2] = 0, r[3] = 0x80000000, r[4] = 8;  // shifted right, with its sign
    r[5] = 0x40000000, r[6] = 4;            // saturates
    r[8] = equal ? 0 : 1;
    ASSERT_EQ(machine.core.run(100).reason, StopReason::WaitForInterrupt) << equal;
    EXPECT_EQ(r[0], equal ? 8u : 0x10u);
    EXPECT_EQ(r[1], equal ? 0xcu : 0x18u);
    EXPECT_EQ(r[3], equal ? 0xff800000u : 0x80000000u);
    EXPECT_EQ(r[5], equal ? 0x40000000u : 0x7fffffffu);
  }
}

TEST(Core, FaultsPointToTheirInstruction) {
  Machine machine;
  // movs r0, #0; mvns r0, r0; lsls r0, r0, #2; ldr r1, [r0]; wfi
  machine.put(Machine::kCode, {0x2000, 0x43c0, 0x0080, 0x6801, 0xbf30});
  machine.core.state.r[1] = 7;
  const Stop stop = machine.core.run(100);
  EXPECT_EQ(stop.reason, StopReason::ReadFault);
  EXPECT_EQ(stop.address, 0xfffffffcu);
  EXPECT_EQ(machine.core.state.pc, Machine::kCode + 6);
  EXPECT_EQ(machine.core.state.r[1], 7u);
  EXPECT_EQ(machine.core.instructions(), 3u);
}

TEST(Core, BranchesToUnmappedMemoryAndArmCodeFault) {
  Machine machine;
  machine.put(Machine::kCode, {0x4700});  // bx r0
  machine.core.state.r[0] = 0x70000001;
  Stop stop = machine.core.run(10);
  EXPECT_EQ(stop.reason, StopReason::FetchFault);
  EXPECT_EQ(machine.core.state.pc, 0x70000000u);
  machine.core.state.pc = Machine::kCode;
  machine.core.state.r[0] = Machine::kCode;
  stop = machine.core.run(10);
  EXPECT_EQ(stop.reason, StopReason::InvalidState);
  EXPECT_FALSE(machine.core.state.thumb);
}

TEST(Core, DetectsSelfModifyingCode) {
  Machine machine;
  // ldr r1, [pc, #8]; strh r0, [r1]; isb; movs r2, #1 (overwritten by movs r2, #2); wfi
  machine.put(Machine::kCode, {0x4902, 0x8008, 0xf3bf, 0x8f6f, 0x2201, 0xbf30});
  machine.setWord(Machine::kCode + 12, Machine::kCode + 8);
  machine.core.state.r[0] = 0x2201;
  machine.core.run(100);
  EXPECT_EQ(machine.core.state.r[2], 1u);
  machine.core.state.pc = Machine::kCode;
  machine.core.state.r[0] = 0x2202;
  machine.core.run(100);
  EXPECT_EQ(machine.core.state.r[2], 2u);
}

TEST(Core, DevicesAreAccessedInTheirSizesAndMayStopTheRun) {
  Machine machine;
  // ldr r1, [r0]; strb r1, [r0, #3]; b next; next: movs r2, #1; wfi
  machine.put(Machine::kCode, {0x6801, 0x70c1, 0xe7ff, 0x2201, 0xbf30});
  machine.core.state.r[0] = Machine::kDevice;
  machine.device.stop = true;
  EXPECT_EQ(machine.core.run(100).reason, StopReason::Requested);
  EXPECT_EQ(machine.core.state.r[1], 0x12345678u);
  EXPECT_EQ(machine.core.state.r[2], 0u);
  ASSERT_EQ(machine.device.accesses.size(), 2u);
  EXPECT_EQ(machine.device.accesses[1].address, Machine::kDevice + 3);
  EXPECT_EQ(machine.device.accesses[1].size, 1u);
  EXPECT_EQ(machine.device.accesses[1].value, 0x78u);
  machine.device.stop = false;
  EXPECT_EQ(machine.core.run(100).reason, StopReason::WaitForInterrupt);
}

TEST(Core, WatchedRangesEndTheRunAfterTheAccess) {
  Machine machine;
  // str r1, [r0]; str r1, [r0, #4]; wfi
  machine.put(Machine::kCode, {0x6001, 0x6041, 0xbf30});
  machine.core.state.r[0] = Machine::kData;
  const WatchedRange range{Machine::kData + 6, 1, false, true};
  machine.core.memory.watch({&range, 1});
  const Stop stop = machine.core.run(100);
  EXPECT_EQ(stop.reason, StopReason::Watchpoint);
  EXPECT_EQ(stop.address, Machine::kData + 6);
  EXPECT_EQ(stop.value, kWatchWrites);
  EXPECT_EQ(machine.core.state.pc, Machine::kCode + 4);
}

TEST(Core, LowOverheadLoopsRunTheCountedIterations) {
  Machine machine;
  // movs r0, #0; movs r1, #7; dls lr, r1; l: adds r0, #3; le lr, l; wfi
  machine.put(Machine::kCode, {0x2000, 0x2107, 0xf041, 0xe001, 0x3003, 0xf00f, 0xc803, 0xbf30});
  machine.core.run(100);
  EXPECT_EQ(machine.core.state.r[0], 21u);
  EXPECT_EQ(machine.core.state.r[14], 1u);
}

TEST(Core, APushBelowTheStackLimitFaults) {
  Machine machine;
  machine.put(Machine::kCode, {0xb4ff});  // push {r0-r7}
  machine.core.state.r[13] = Machine::kData + 24;
  machine.core.state.stackLimit[kSecure][0] = Machine::kData;
  const Stop stop = machine.core.run(10);
  EXPECT_EQ(stop.reason, StopReason::StackLimit);
  EXPECT_EQ(machine.core.state.r[13], Machine::kData + 24);
}

TEST(Core, CoprocessorsThatAreAbsentOrOffAreRefused) {
  Machine machine(kDsp | kV81);
  machine.put(Machine::kCode, {0xee00, 0x0a00});  // in the floating-point space
  EXPECT_EQ(machine.core.run(10).reason, StopReason::NoCoprocessor);
  Machine other;
  other.put(Machine::kCode, {0xee00, 0x0010});  // MCR of coprocessor 0
  EXPECT_EQ(other.core.run(10).reason, StopReason::NoCoprocessor);
  other.core.setCoprocessorAccess(0);
  other.put(Machine::kCode, {0xee00, 0x0a00});
  EXPECT_EQ(other.core.run(10).reason, StopReason::NoCoprocessor);
}

}  // namespace
}  // namespace carina::cpu_m
