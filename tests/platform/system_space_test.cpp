// SPDX-License-Identifier: Apache-2.0
// Registers of the system control space that firmware reads back.
#include "platform/system_space.hpp"

#include <gtest/gtest.h>

namespace carina::platform {
namespace {

constexpr uint32_t kShcsr = 0xe000ed24, kOther = 0x20000;  // the Non-secure registers, from the Secure ones

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

TEST(SystemSpace, FaultsThatWaitAreSeenAndSetInShcsr) {
  Space s("corstone-300");
  s.write(kShcsr, 7u << 16);
  EXPECT_EQ(s.read(kShcsr), 7u << 16);
  s.interrupts.pend(kMemManage);
  EXPECT_EQ(s.read(kShcsr), 7u << 16 | 1u << 13);
  EXPECT_EQ(s.read(kShcsr + kOther), 0u) << "the Non-secure one is another";
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

TEST(SystemSpace, NmiIsTheSecureWorldsUnlessItIsGivenAway) {
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

TEST(SystemSpace, DebugMonitorIsTheSecureWorlds) {
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

TEST(SystemSpace, CoresSayWhatTheyAre) {
  Space m55("corstone-300"), m85("corstone-320");
  EXPECT_EQ(m55.read(0xe000ed74) >> 20 & 15, 0u) << "ID_ISAR5.PACBTI";
  EXPECT_EQ(m85.read(0xe000ed74) >> 20 & 15, 2u);
  EXPECT_EQ(m55.read(0xe000ed40), 0x20000030u);
  EXPECT_EQ(m55.read(0xe000ed44), 0x00000230u);
}

}  // namespace
}  // namespace carina::platform
