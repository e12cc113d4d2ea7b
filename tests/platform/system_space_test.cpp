// SPDX-License-Identifier: Apache-2.0
// Registers of the system control space that firmware reads back.
#include "platform/system_space.hpp"

#include <gtest/gtest.h>

namespace carina::platform {
namespace {

constexpr uint32_t kShcsr = 0xe000ed24, kOther = 0x20000;  // offset of the Non-secure registers

struct Space {
  explicit Space(const char* name) : board(**findBoard(name)), core(board.features) { clock.attach(core); }
  uint32_t read(uint32_t address) { return system.read(address, 4); }
  void write(uint32_t address, uint32_t value) { system.write(address, 4, value); }
  const Board& board;
  Core core;
  Interrupts interrupts;
  Clock clock;
  SystemSpace system{board, clock, interrupts, core};
};

TEST(SystemSpace, PendingFaultsAreReadAndSetInShcsr) {
  Space s("corstone-300");
  s.write(kShcsr, 7u << 16);
  EXPECT_EQ(s.read(kShcsr), 7u << 16);
  s.interrupts.pend(kMemManage);
  EXPECT_EQ(s.read(kShcsr), 7u << 16 | 1u << 13);
  EXPECT_EQ(s.read(kShcsr + kOther), 0u) << "the Non-secure one is separate";
  s.interrupts.pend(kMemManage + kNonSecureBank);
  EXPECT_EQ(s.read(kShcsr + kOther), 1u << 13);
  s.interrupts.pend(kBusFault);
  s.interrupts.pend(kSecureFault);
  EXPECT_EQ(s.read(kShcsr), 7u << 16 | 1u << 13 | 1u << 14 | 1u << 20);
  s.write(kShcsr, 7u << 16 | 1u << 12 | 1u << 15);
  EXPECT_TRUE(s.interrupts.pending(kUsageFault));
  EXPECT_TRUE(s.interrupts.pending(kSvcall));
  EXPECT_FALSE(s.interrupts.pending(kMemManage));
  EXPECT_FALSE(s.interrupts.pending(kBusFault));
  EXPECT_FALSE(s.interrupts.pending(kSecureFault));
  EXPECT_TRUE(s.interrupts.pending(kMemManage + kNonSecureBank));
}

TEST(SystemSpace, NmiIsSecureUnlessAssignedToNonSecure) {
  constexpr uint32_t kIcsr = 0xe000ed04, kAircr = 0xe000ed0c, kSet = 1u << 31, kClear = 1u << 30;
  Space s("corstone-300");
  s.write(kIcsr + kOther, kSet);
  EXPECT_FALSE(s.interrupts.pending(kNmi));
  s.write(kIcsr, kSet);
  EXPECT_TRUE(s.interrupts.pending(kNmi));
  s.write(kIcsr + kOther, kClear);
  EXPECT_TRUE(s.interrupts.pending(kNmi));
  s.write(kIcsr, kClear);
  EXPECT_FALSE(s.interrupts.pending(kNmi));
  s.write(kAircr, 0x05fa2000);  // BFHFNMINS
  s.write(kIcsr + kOther, kSet);
  EXPECT_TRUE(s.interrupts.pending(kNmi));
  s.write(kIcsr + kOther, kClear);
  EXPECT_FALSE(s.interrupts.pending(kNmi));
}

TEST(SystemSpace, DebugMonitorIsSecure) {
  constexpr uint32_t kDemcr = 0xe000edfc, kTrace = 1u << 24, kSecureMonitor = 1u << 20, kEnable = 1u << 16;
  Space s("corstone-300");
  s.write(kDemcr, kTrace | kEnable);
  EXPECT_EQ(s.read(kDemcr), kTrace | kSecureMonitor | kEnable);
  EXPECT_EQ(s.read(kDemcr + kOther), kTrace) << "only what both worlds share";
  EXPECT_TRUE(s.system.monitors());
  s.write(kDemcr + kOther, kTrace | 1u << 17);
  EXPECT_FALSE(s.interrupts.pending(kDebugMonitor));
  EXPECT_EQ(s.read(kDemcr), kTrace | kSecureMonitor | kEnable);
  s.write(kDemcr, kTrace | 1u << 17);
  EXPECT_TRUE(s.interrupts.pending(kDebugMonitor));
  EXPECT_FALSE(s.system.monitors());
}

TEST(SystemSpace, CoresReportTheirFeatures) {
  Space m55("corstone-300"), m85("corstone-320");
  EXPECT_EQ(m55.read(0xe000ed74) >> 20 & 15, 0u) << "ID_ISAR5.PACBTI";
  EXPECT_EQ(m85.read(0xe000ed74) >> 20 & 15, 2u);
  EXPECT_EQ(m55.read(0xe000ed40), 0x20000030u);
  EXPECT_EQ(m55.read(0xe000ed44), 0x00000230u);
}

TEST(SystemSpace, EventCountersOverflowIntoTheNextOne) {
  constexpr uint32_t kPmu = 0xe0003000, kTypes = kPmu + 0x400, kEnable = kPmu + 0xc00,
                     kOverflowClear = kPmu + 0xc80, kIncrement = kPmu + 0xca0, kControl = kPmu + 0xe04,
                     kDemcr = 0xe000edfc, kCycles = kPmu + 0x7c;
  Space s("corstone-300");
  s.write(kDemcr, 1u << 24);
  s.write(kTypes, 0x11);      // cycles
  s.write(kTypes + 4, 0x1e);  // chained
  s.write(kTypes + 8, 0);     // software increments
  s.write(kEnable, 1u << 31 | 7);
  s.write(kControl, 1);
  s.clock.skipTo(70'000);
  EXPECT_EQ(s.read(kPmu), 70'000u - 65'536);
  EXPECT_EQ(s.read(kPmu + 4), 1u);
  EXPECT_EQ(s.read(kOverflowClear), 1u);
  s.write(kOverflowClear, 1);
  EXPECT_EQ(s.read(kOverflowClear), 0u);
  s.write(kPmu, 0xfff0);  // the chained counter keeps its value
  EXPECT_EQ(s.read(kPmu + 4), 1u);
  EXPECT_EQ(s.read(kOverflowClear), 0u);
  s.clock.skipTo(70'020);
  EXPECT_EQ(s.read(kPmu), 4u);
  EXPECT_EQ(s.read(kPmu + 4), 2u);
  EXPECT_EQ(s.read(kOverflowClear), 1u);
  s.write(kIncrement, 7);
  s.write(kIncrement, 4);
  EXPECT_EQ(s.read(kPmu + 8), 2u);
  EXPECT_EQ(s.read(kPmu), 4u) << "only the counters of software increments";
  s.write(kCycles, 0xffffffff);
  s.clock.skipTo(70'021);
  EXPECT_EQ(s.read(kCycles), 0u);
  EXPECT_EQ(s.read(kOverflowClear), 1u << 31 | 1);
  s.write(kControl, 7);  // counters restart; overflow flags remain
  EXPECT_EQ(s.read(kPmu + 8), 0u);
  EXPECT_EQ(s.read(kOverflowClear), 1u << 31 | 1);
}

TEST(SystemSpace, TightlyCoupledMemoriesReportTheirSizes) {
  Space s("corstone-300");
  EXPECT_EQ(s.read(0xe001e010), 10u << 3 | 1) << "512 KiB";
  EXPECT_EQ(s.read(0xe001e014), 10u << 3 | 1);
  s.write(0xe001e010, 0);
  EXPECT_EQ(s.read(0xe001e010) & 1, 1u);
}

TEST(SystemSpace, AbsentPartsReadAsAbsent) {
  Space s("corstone-300");
  EXPECT_EQ(s.read(0xe0001000), 0x0du << 24) << "DWT without comparators, trace and profiling counters";
  EXPECT_EQ(s.read(0xe0002000), 0u) << "FPB without comparators";
  EXPECT_EQ(SystemSpace::absentPart(0xe0002008), "the breakpoint unit (FPB)");
  EXPECT_EQ(SystemSpace::absentPart(0xe000edf0), "halting debug (DHCSR, DCRSR, DCRDR)");
  EXPECT_EQ(SystemSpace::absentPart(0xe0001004), "") << "the cycle counter";
  EXPECT_EQ(SystemSpace::absentPart(0xe000edfc), "") << "DEMCR";
}

}  // namespace
}  // namespace carina::platform
