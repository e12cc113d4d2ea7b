// SPDX-License-Identifier: Apache-2.0
#include "platform/system_timers.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "platform/cpu.hpp"

namespace carina::platform {
namespace {

constexpr uint32_t kLine = 3;

class SystemTimers : public testing::Test {
 protected:
  SystemTimers() { clock_.attach(cpu_); }
  void passUntil(uint64_t time) {
    clock_.skipTo(time);
    timer_.advance(time);
    watchdog_.advance(time);
  }
  Core cpu_{0};
  Clock clock_;
  Interrupts interrupts_;
  SystemCounter counter_{clock_};
  SystemTimer timer_{counter_, interrupts_, kLine};
  std::vector<bool> signals_;
  int resets_ = 0;
  Watchdog watchdog_{counter_, [this](bool high) { signals_.push_back(high); }, [this] { ++resets_; }};
};

TEST_F(SystemTimers, TheCounterCountsWhileEnabled) {
  passUntil(100);
  EXPECT_EQ(counter_.value(), 0u);
  EXPECT_EQ(counter_.timeOf(5), kNever);
  counter_.write(0, 1);
  passUntil(150);
  EXPECT_EQ(counter_.read(8), 50u);
  EXPECT_EQ(counter_.timeOf(60), 160u);
  counter_.write(0xc, 1);
  EXPECT_EQ(SystemCounterView(counter_).read(4), 1u);
  EXPECT_EQ(counter_.value(), (uint64_t{1} << 32) + 50);
  counter_.write(0, 0);
  passUntil(900);
  EXPECT_EQ(counter_.read(8), 50u);
}

TEST_F(SystemTimers, ATimerComparesOnce) {
  interrupts_.enable(kExternal + kLine, true);
  counter_.write(0, 1);
  timer_.write(0x28, 40);  // relative to now
  timer_.write(0x2c, 1);
  EXPECT_EQ(timer_.nextEvent(), 40u);
  EXPECT_EQ(timer_.read(0x28), 40u);
  passUntil(39);
  EXPECT_EQ(timer_.read(0x2c), 1u);
  EXPECT_FALSE(interrupts_.first());
  passUntil(40);
  EXPECT_EQ(timer_.read(0x2c), 5u);
  EXPECT_EQ(timer_.nextEvent(), kNever);
  EXPECT_EQ(interrupts_.first(), kExternal + kLine);
  EXPECT_EQ(timer_.read(0x20), 40u);
}

TEST_F(SystemTimers, AMaskedTimerSetsOnlyItsStatus) {
  interrupts_.enable(kExternal + kLine, true);
  counter_.write(0, 1);
  timer_.write(0x20, 10);
  timer_.write(0x2c, 3);
  passUntil(20);
  EXPECT_EQ(timer_.read(0x2c), 7u);
  EXPECT_FALSE(interrupts_.first());
}

TEST_F(SystemTimers, AutoIncrementModeRepeats) {
  counter_.write(0, 1);
  timer_.write(0x48, 100);
  timer_.write(0x4c, 1);
  timer_.write(0x2c, 1);
  EXPECT_EQ(timer_.nextEvent(), 100u);
  passUntil(100);
  EXPECT_EQ(timer_.read(0x4c), 3u);
  EXPECT_EQ(timer_.read(0x40), 200u);
  timer_.write(0x4c, 1);  // cleared
  EXPECT_EQ(timer_.read(0x4c), 1u);
  EXPECT_EQ(timer_.nextEvent(), 200u);
  passUntil(450);  // late: missed events fire once
  EXPECT_EQ(timer_.read(0x4c), 3u);
  timer_.write(0x4c, 1);
  EXPECT_EQ(timer_.nextEvent(), 500u);
}

TEST_F(SystemTimers, AWatchdogWarnsThenResets) {
  counter_.write(0, 1);
  watchdog_.write(8, 50);
  EXPECT_EQ(watchdog_.nextEvent(), kNever);
  watchdog_.write(0, 1);
  EXPECT_EQ(watchdog_.nextEvent(), 50u);
  passUntil(50);
  EXPECT_EQ(watchdog_.read(0), 3u);
  watchdog_.write(0x1000, 0);  // refreshed
  EXPECT_EQ(watchdog_.read(0), 1u);
  EXPECT_EQ(watchdog_.read(0x10), 100u);
  passUntil(100);
  EXPECT_EQ(resets_, 0);
  passUntil(150);
  EXPECT_EQ(watchdog_.read(0), 7u);
  EXPECT_EQ(resets_, 1);
  EXPECT_EQ(signals_, (std::vector<bool>{true, false, true}));
}

}  // namespace
}  // namespace carina::platform
