// SPDX-License-Identifier: Apache-2.0
// The NPU's registers while time passes.
#include "platform/npu_device.hpp"

#include <gtest/gtest.h>

#include <array>

#include "platform/cpu.hpp"

namespace carina::platform {
namespace {

class NpuDeviceTest : public testing::Test {
 protected:
  static constexpr uint32_t kStatus = 0x04, kCmd = 0x08, kReset = 0x0c, kQRead = 0x18, kLine = 56;

  NpuDeviceTest()
      : npu_(*npu::makeMachine("ethos-u55-128", "", ""), memory_, {}, clock_, interrupts_, kLine) {
    clock_.attach(cpu_);
    memory_.map(0x1000, std::span<std::byte>(std::as_writable_bytes(std::span(words_))));
    memory_.map(0x10000, std::span<std::byte>(data_));
    interrupts_.enable(kExternal + kLine, true);
  }
  void start(std::initializer_list<uint32_t> words) {
    std::copy(words.begin(), words.end(), words_.begin());
    npu_.write(kReset, 1);
    npu_.write(kCmd, 0);
    npu_.write(0x10, 0x1000);
    npu_.write(0x20, static_cast<uint32_t>(4 * words.size()));
    npu_.write(0x80, 0x10000);
    npu_.write(0x88, 0x10800);
    npu_.write(0x180, 1);         // PMU on
    npu_.write(0x184, 1u << 31);  // its cycle counter
    npu_.write(kCmd, 1);
  }
  void passTo(uint64_t time) {
    clock_.skipTo(time);
    npu_.advance(clock_.now());
  }
  bool raised() const { return interrupts_.pending(kExternal + kLine); }
  uint32_t cycles() { return npu_.read(0x1a0); }

  static constexpr uint32_t kCopy[11] = {0x00000130, 0x00010131, 0x4030,     0,          0x4031,    0,
                                         0x4032,     1024,       0x00000010, 0x00000011, 0xffff0000};
  void startCopy() {
    start({kCopy[0], kCopy[1], kCopy[2], kCopy[3], kCopy[4], kCopy[5], kCopy[6], kCopy[7], kCopy[8], kCopy[9],
           kCopy[10]});
  }

  std::array<uint32_t, 64> words_{};
  std::array<std::byte, 4096> data_{};
  npu::MappedMemory memory_;
  Core cpu_{0};  // never runs
  Clock clock_;
  Interrupts interrupts_;
  NpuDevice npu_;
};

TEST_F(NpuDeviceTest, EndsWhenItsCyclesHavePassed) {
  startCopy();
  const uint64_t end = npu_.nextEvent();
  ASSERT_NE(end, kNever);
  ASSERT_GT(end, 10u);
  EXPECT_EQ(npu_.read(kStatus) & 0x23u, 1u);
  EXPECT_FALSE(raised());
  passTo(end / 2);
  EXPECT_EQ(npu_.read(kStatus) & 0x23u, 1u);
  EXPECT_GT(npu_.read(kQRead), 0u);
  EXPECT_LT(npu_.read(kQRead), 44u);
  const uint32_t half = cycles();
  EXPECT_GT(half, 0u);
  EXPECT_LT(half, end);
  passTo(end);
  EXPECT_TRUE(raised());
  EXPECT_EQ(npu_.read(kStatus) & 0xffffu, 0x22u);
  EXPECT_EQ(npu_.read(kQRead), 44u);
  EXPECT_EQ(cycles(), end);
  EXPECT_EQ(npu_.nextEvent(), kNever);
  ASSERT_EQ(npu_.jobs().size(), 1u);
  EXPECT_EQ(static_cast<uint64_t>(npu_.jobs()[0].stats.cycles), end);
}

TEST_F(NpuDeviceTest, TimeBetweenJobsCounts) {
  constexpr uint32_t kEnable = 0x180, kCounters = 0x184, kOverflow = 0x18c, kCycleConfig = 0x1a8,
                     kEvents = 0x300, kTypes = 0x380;
  npu_.write(kReset, 1);
  passTo(50);
  npu_.write(kEnable, 1);
  npu_.write(kCounters, 0x8000000f);
  npu_.write(kTypes, 32);      // NPU_IDLE
  npu_.write(kTypes + 4, 17);  // CYCLE
  npu_.write(kTypes + 8, 35);  // NPU_ACTIVE
  passTo(150);
  EXPECT_EQ(npu_.read(kEvents), 100u);
  EXPECT_EQ(npu_.read(kEvents + 4), 100u);
  EXPECT_EQ(npu_.read(kEvents + 8), 0u);
  EXPECT_EQ(cycles(), 100u);
  npu_.write(kCycleConfig, 32 << 16 | 35);  // counts while the NPU is active
  std::copy(std::begin(kCopy), std::end(kCopy), words_.begin());
  npu_.write(0x10, 0x1000);
  npu_.write(0x20, sizeof kCopy);
  npu_.write(0x80, 0x10000);
  npu_.write(0x88, 0x10800);
  npu_.write(kCmd, 1);
  const auto job = static_cast<uint32_t>(npu_.nextEvent() - 150);
  passTo(5000);
  EXPECT_EQ(npu_.read(kEvents), 100 + 4850 - job);
  EXPECT_EQ(npu_.read(kEvents + 4), 4950u);
  EXPECT_EQ(cycles(), 100 + job);
  npu_.write(kEvents, 0xfffffff0);
  passTo(5020);
  EXPECT_EQ(npu_.read(kEvents), 4u);
  EXPECT_EQ(npu_.read(kOverflow), 1u);
  npu_.write(kEnable, 0);
  passTo(6000);
  EXPECT_EQ(npu_.read(kEvents), 4u);
}

TEST_F(NpuDeviceTest, AResetAbortsTheJob) {
  startCopy();
  const uint64_t end = npu_.nextEvent();
  npu_.write(kReset, 1);
  EXPECT_EQ(npu_.nextEvent(), kNever);
  passTo(end + 1);
  EXPECT_FALSE(raised());
  EXPECT_TRUE(npu_.jobs().empty());
  startCopy();
  passTo(npu_.nextEvent());
  EXPECT_TRUE(raised());
}

TEST_F(NpuDeviceTest, InterruptsWithinAStream) {
  // A copy, IRQ, another copy, STOP.
  start({kCopy[0], kCopy[1], kCopy[2], kCopy[3], kCopy[4], kCopy[5], kCopy[6], kCopy[7], kCopy[8], kCopy[9],
         0x00010001, kCopy[8], kCopy[9], 0x00020000});
  const uint64_t first = npu_.nextEvent();
  passTo(first);
  EXPECT_TRUE(raised());
  EXPECT_EQ(npu_.read(kStatus) & 0x23u, 3u);
  const uint64_t second = npu_.nextEvent();
  ASSERT_GT(second, first);
  npu_.write(kCmd, 2);  // clears the interrupt; the one at the end is still to come
  interrupts_.unpend(kExternal + kLine);
  EXPECT_FALSE(raised());
  EXPECT_EQ(npu_.read(kStatus) & 0x23u, 1u);
  passTo(second);
  EXPECT_TRUE(raised());
  EXPECT_EQ(npu_.read(kStatus), 0x00030022u);
  EXPECT_EQ(npu_.jobs().size(), 1u);
}

TEST_F(NpuDeviceTest, AnUnreadableStreamIsABusFault) {
  start({0});
  passTo(npu_.nextEvent());
  npu_.write(kReset, 1);
  interrupts_.unpend(kExternal + kLine);
  npu_.write(0x10, 0xff000000);
  npu_.write(0x20, 64);
  npu_.write(kCmd, 1);
  ASSERT_NE(npu_.nextEvent(), kNever);
  passTo(npu_.nextEvent());
  EXPECT_TRUE(raised());
  EXPECT_EQ(npu_.read(kStatus) & 0x25u, 0x04u);
  ASSERT_EQ(npu_.jobs().size(), 2u);
  EXPECT_NE(npu_.jobs()[1].fault, "");
}

}  // namespace
}  // namespace carina::platform
