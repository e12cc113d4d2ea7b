// SPDX-License-Identifier: Apache-2.0
#include "cpu_m/wait_states.hpp"

#include <gtest/gtest.h>

#include "machine.hpp"

namespace carina::cpu_m {
namespace {

TEST(WaitStates, CachesKeepLinesAndReplaceThemRoundRobin) {
  WaitStates waits(4);
  waits.add(0x60000000, 0x10000000, 10);
  EXPECT_EQ(waits.load(0x20000000, kSecure), 0u);
  EXPECT_EQ(waits.load(0x60000000, kSecure), 10u);
  EXPECT_EQ(waits.load(0x60000000, kSecure), 10u) << "the cache is off";
  waits.setCaches(kSecure, true, true);
  EXPECT_EQ(waits.load(0x60000004, kSecure), 13u) << "a line of four beats";
  EXPECT_EQ(waits.load(0x6000001c, kSecure), 0u);
  EXPECT_EQ(waits.load(0x6000001c, kNonSecure), 10u) << "CCR of the other world";
  waits.store(0x60000040, kSecure);
  EXPECT_EQ(waits.load(0x60000044, kSecure), 0u);
  // Four ways of 1 KiB: the fifth line of a set replaces the first.
  for (uint32_t i = 1; i <= 4; ++i) EXPECT_EQ(waits.load(0x60000000 + i * 1024, kSecure), 13u);
  EXPECT_EQ(waits.load(0x60001000, kSecure), 0u);
  EXPECT_EQ(waits.load(0x60000000, kSecure), 13u);
}

TEST(WaitStates, InstructionsWaitForBeatsOrLines) {
  WaitStates waits(4);
  waits.add(0x60000000, 0x10000000, 10);
  EXPECT_EQ(waits.fetch(0x10000000, 0x10000040, kSecure), 0u);
  EXPECT_EQ(waits.fetch(0x60000006, 0x60000012, kSecure), 30u) << "three beats";
  waits.setCaches(kSecure, true, false);
  EXPECT_EQ(waits.fetch(0x6000001e, 0x60000022, kSecure), 26u) << "two lines";
  EXPECT_EQ(waits.fetch(0x60000000, 0x60000040, kSecure), 0u);
}

struct Slow : Machine {
  explicit Slow(uint32_t code, uint32_t data) : Machine(kAllFeatures, Pipeline::M55) {
    if (code != 0) waits.add(kCode, kSize, code);
    if (data != 0) waits.add(kData, kSize, data);
    core.setWaitStates(&waits);
    // ldr r1, [r0]; ldrd r2, r3, [r0]; ldr.w r4, [r0, #1]; vldrw.u32 q0, [r0]; str r1, [r0]; bkpt
    put(kCode, {0x6801, 0xe9d0, 0x2300, 0xf8d0, 0x4001, 0xed90, 0x1f00, 0x6001, 0xbe00});
    core.state.r[0] = kData + 0x100;
    setWord(kData + 0x100, 0x11223344);
  }
  uint64_t run() {
    EXPECT_EQ(core.run(100000).reason, StopReason::Breakpoint);
    EXPECT_EQ(core.state.r[4] & 0xffffff, 0x112233u);
    return core.cycles();
  }
  WaitStates waits;
};

TEST(WaitStates, ResultsAreTheSameAndTakeLonger) {
  const uint64_t none = Slow(0, 0).run();
  EXPECT_EQ(Slow(0, 100).run(), none + 800) << "a word each: 1, 2, 1 (not aligned), 4";
  EXPECT_EQ(Slow(100, 0).run(), none + 300) << "18 bytes";
  Slow cached(0, 100);
  cached.waits.setCaches(kSecure, true, true);
  EXPECT_EQ(cached.run(), none + 103) << "one line";
}

}  // namespace
}  // namespace carina::cpu_m
