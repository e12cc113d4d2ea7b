// SPDX-License-Identifier: Apache-2.0
#include "platform/interrupts.hpp"

#include <gtest/gtest.h>

namespace carina::platform {
namespace {

constexpr uint32_t kIrq0 = kExternal, kIrq5 = kExternal + 5;

TEST(Interrupts, NotTakenWhenDisabledOrNotPending) {
  Interrupts interrupts;
  const State registers{};
  EXPECT_FALSE(interrupts.takeable(registers));
  interrupts.pend(kIrq0);
  EXPECT_FALSE(interrupts.takeable(registers));
  interrupts.enable(kIrq0, true);
  EXPECT_EQ(interrupts.takeable(registers), kIrq0);
}

TEST(Interrupts, OrderByPriorityThenNumber) {
  Interrupts interrupts;
  for (const uint32_t e : {kIrq0, kIrq5}) {
    interrupts.enable(e, true);
    interrupts.pend(e);
    interrupts.setPriority(e, 0x80);
  }
  EXPECT_EQ(interrupts.first(), kIrq0);
  interrupts.setPriority(kIrq5, 0x40);
  EXPECT_EQ(interrupts.first(), kIrq5);
  interrupts.pend(kHardFault);
  EXPECT_EQ(interrupts.first(), uint32_t{kHardFault});
  interrupts.pend(kNmi);
  EXPECT_EQ(interrupts.first(), uint32_t{kNmi});
}

TEST(Interrupts, Masks) {
  Interrupts interrupts;
  interrupts.enable(kIrq0, true);
  interrupts.setPriority(kIrq0, 0x60);
  interrupts.pend(kIrq0);
  State registers{};
  registers.primask[registers.world] = 1;
  EXPECT_FALSE(interrupts.takeable(registers));
  EXPECT_TRUE(interrupts.maskedOnly(registers));
  registers.primask[registers.world] = 0;
  registers.basepri[registers.world] = 0x60;
  EXPECT_FALSE(interrupts.takeable(registers));
  registers.basepri[registers.world] = 0x80;
  EXPECT_TRUE(interrupts.takeable(registers));
  registers.faultmask[registers.world] = 1;
  interrupts.pend(kHardFault);
  EXPECT_FALSE(interrupts.takeable(registers));
  interrupts.pend(kNmi);
  EXPECT_EQ(interrupts.takeable(registers), uint32_t{kNmi});
}

TEST(Interrupts, NestingAndGroups) {
  Interrupts interrupts;
  const State registers{};
  for (const uint32_t e : {kIrq0, kIrq5}) interrupts.enable(e, true);
  interrupts.setPriority(kIrq0, 0x60);
  interrupts.setPriority(kIrq5, 0x40);
  interrupts.pend(kIrq0);
  interrupts.enter(kIrq0);
  EXPECT_FALSE(interrupts.pending(kIrq0));
  interrupts.pend(kIrq5);
  EXPECT_EQ(interrupts.takeable(registers), kIrq5);
  interrupts.setPriorityGroup(6);  // only bit 7 decides
  EXPECT_FALSE(interrupts.takeable(registers));
  EXPECT_FALSE(interrupts.maskedOnly(registers));
  interrupts.leave(kIrq0);
  EXPECT_EQ(interrupts.takeable(registers), kIrq5);
}

TEST(Interrupts, ALineThatStaysHighPendsAgain) {
  Interrupts interrupts;
  interrupts.enable(kIrq5, true);
  interrupts.setLine(5, true);
  interrupts.unpend(kIrq5);
  EXPECT_TRUE(interrupts.pending(kIrq5));
  interrupts.enter(kIrq5);
  interrupts.setLine(5, true);
  EXPECT_FALSE(interrupts.pending(kIrq5));
  interrupts.leave(kIrq5);
  EXPECT_TRUE(interrupts.pending(kIrq5));
  interrupts.enter(kIrq5);
  interrupts.setLine(5, false);
  interrupts.leave(kIrq5);
  EXPECT_FALSE(interrupts.pending(kIrq5));
}

TEST(Interrupts, Names) {
  EXPECT_EQ(exceptionName(kSysTick), "SysTick");
  EXPECT_EQ(exceptionName(kExternal + 56), "interrupt 56");
}

}  // namespace
}  // namespace carina::platform
