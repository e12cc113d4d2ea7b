// SPDX-License-Identifier: Apache-2.0
#include "cpu_m/sau.hpp"

#include <gtest/gtest.h>

#include "machine.hpp"

namespace carina::cpu_m {
namespace {

constexpr uint32_t kCallable = 2, kOn = 1;

TEST(Sau, AddressesInNoOrSeveralRegionsAreSecure) {
  Sau sau;
  EXPECT_TRUE(sau.attribution(0).secure) << "off";
  sau.control = Sau::kAllNonSecure;
  EXPECT_FALSE(sau.attribution(0x10000000).secure) << "off, the board decides";
  sau.secureRegions = 1 << 1;
  EXPECT_TRUE(sau.attribution(0x10000000).secure);
  sau.control = Sau::kEnable;
  sau.regions[0] = {0x00000000, 0x000fffe0 | kOn};
  sau.regions[1] = {0x000f0000, 0x001fffe0 | kOn};
  EXPECT_FALSE(sau.attribution(0x100).secure);
  EXPECT_EQ(sau.attribution(0x100).region, 0);
  EXPECT_TRUE(sau.attribution(0xf0000).secure) << "two regions";
  EXPECT_FALSE(sau.attribution(0xf0000).region.has_value());
  EXPECT_TRUE(sau.attribution(0x20000000).secure);
  EXPECT_TRUE(sau.attribution(0xe000ed00).exempt);
}

TEST(Sau, TheStricterOfRegionAndBoardApplies) {
  Sau sau;
  sau.control = Sau::kEnable;
  sau.secureRegions = 1 << 1;
  sau.regions[0] = {0x10000000, 0x10000fe0 | kCallable | kOn};
  sau.regions[1] = {0x00000000, 0x00000fe0 | kCallable | kOn};
  EXPECT_TRUE(sau.attribution(0x10000000).secure);
  EXPECT_FALSE(sau.attribution(0x10000000).callable) << "the board does not allow it";
  EXPECT_TRUE(sau.attribution(0).secure);
  EXPECT_TRUE(sau.attribution(0).callable);
  sau.callableRegions = 1 << 1;
  EXPECT_TRUE(sau.attribution(0x10000000).callable);
}

/// Makes the data memory and code 0x10000000 to 0x10000fff Non-secure, the next page callable.
void divide(Machine& machine) {
  Sau& sau = machine.core.changeSau();
  sau.control = Sau::kEnable;
  sau.regions[0] = {Machine::kData, (Machine::kData + 0xffe0) | kOn};
  sau.regions[1] = {Machine::kCode, (Machine::kCode + 0xfe0) | kOn};
  sau.regions[2] = {Machine::kCode + 0x1000, (Machine::kCode + 0x1fe0) | kCallable | kOn};
  machine.core.state.world = kNonSecure;
  machine.core.state.sp[kSecure][0] = Machine::kData + 0x800;
}

TEST(Sau, FloatsAreHiddenFromTheOtherWorld) {
  for (const bool upper : {false, true}) {
    Machine machine;
    // Without lazy stacking.
    machine.core.fp.setControl(kSecure, fpccr::kAutomatic | (upper ? fpccr::kTreatAsSecure : 0), false);
    machine.put(Machine::kCode, {0xee30, 0x0a20, 0xec20, 0x0a00, 0xbf30, 0xec30, 0x0a00, 0xbf30});
    // vadd.f32 s0, s0, s1 (the context is active); vlstm r0; wfi; vlldm r0; wfi
    State& s = machine.core.state;
    s.r[0] = Machine::kData + 0x100;
    machine.setWord(Machine::kData + 0x158, 0);
    for (uint32_t i = 1; i < 32; ++i) s.setElement<uint32_t>(i, 0x3f800000 + i);
    s.setElement<uint32_t>(0, 0);
    machine.core.setDefaultFpscr(0x00040000);
    ASSERT_EQ(machine.core.run(10).reason, StopReason::WaitForInterrupt);
    EXPECT_EQ(s.element<uint32_t>(7), 0u);
    EXPECT_EQ(s.element<uint32_t>(20), upper ? 0u : 0x3f800014u);
    EXPECT_EQ(machine.word(Machine::kData + 0x100 + 4 * 7), 0x3f800007u);
    EXPECT_EQ(machine.word(Machine::kData + 0x148 + 4 * 4) == 0x3f800014u, upper) << "S20";
    s.setElement<uint32_t>(20, upper ? 0xdeadu : s.element<uint32_t>(20));
    ASSERT_EQ(machine.core.run(10).reason, StopReason::WaitForInterrupt);
    EXPECT_EQ(s.element<uint32_t>(0), 0x3f800001u);
    EXPECT_EQ(s.element<uint32_t>(7), 0x3f800007u);
    EXPECT_EQ(s.element<uint32_t>(20), 0x3f800014u);
  }
}

TEST(Sau, OnlyGatewaysLeadIntoSecureCode) {
  Machine machine;
  divide(machine);
  machine.put(Machine::kCode, {0x4700});                                   // bx r0
  machine.put(Machine::kCode + 0x1000, {0xe97f, 0xe97f, 0x466a, 0xbf30});  // sg; mov r2, sp; wfi
  machine.core.state.r[0] = Machine::kCode + 0x1005;
  EXPECT_EQ(machine.core.run(10).reason, StopReason::SecureEntry) << "past the gateway";
  machine.core.state.pc = Machine::kCode;
  machine.core.state.r[0] = Machine::kCode + 0x3001;
  machine.put(Machine::kCode + 0x3000, {0xe97f, 0xe97f});
  EXPECT_EQ(machine.core.run(10).reason, StopReason::SecureEntry) << "not callable";
  machine.core.state.pc = Machine::kCode;
  machine.core.state.r[0] = Machine::kCode + 0x1001;
  machine.core.state.r[14] = 0x55;
  EXPECT_EQ(machine.core.run(10).reason, StopReason::WaitForInterrupt);
  EXPECT_EQ(machine.core.state.world, kSecure);
  EXPECT_EQ(machine.core.state.r[2], Machine::kData + 0x800) << "the Secure stack";
  EXPECT_EQ(machine.core.state.r[14], 0x54u);
}

TEST(Sau, SecureDataAndForeignCodeAreRefused) {
  Machine machine;
  divide(machine);
  machine.put(Machine::kCode, {0x6801});  // ldr r1, [r0]
  machine.core.state.r[0] = Machine::kCode + 0x2000;
  const Stop stop = machine.core.run(10);
  EXPECT_EQ(stop.reason, StopReason::SecureData);
  EXPECT_EQ(stop.address, Machine::kCode + 0x2000);
  machine.core.state.world = kSecure;
  EXPECT_EQ(machine.core.run(10).reason, StopReason::SecureExit);
}

TEST(Sau, NonSecureFunctionsReturnToTheirCaller) {
  Machine machine;
  divide(machine);
  State& s = machine.core.state;
  s.world = kSecure;
  s.r[13] = Machine::kData + 0x800;
  s.sp[kNonSecure][0] = Machine::kData + 0x400;
  s.r[3] = Machine::kCode;
  machine.put(Machine::kCode + 0x2000, {0x479c, 0xbf30});  // blxns r3; wfi
  machine.put(Machine::kCode, {0x466a, 0x4770});           // mov r2, sp; bx lr
  s.pc = Machine::kCode + 0x2000;
  EXPECT_EQ(machine.core.run(10).reason, StopReason::WaitForInterrupt);
  EXPECT_EQ(s.world, kSecure);
  EXPECT_EQ(s.pc, Machine::kCode + 0x2004);
  EXPECT_EQ(s.r[2], Machine::kData + 0x400);
  EXPECT_EQ(s.r[13], Machine::kData + 0x800);
}

TEST(Sau, PrivatePeripheralsBelongToTheQueriedWorld) {
  Machine machine;
  machine.core.changeSau().secureRegions = 0xaaaa;
  machine.core.state.r[0] = 0xe000e000;
  machine.put(Machine::kCode, {0xe840, 0xf100, 0xe840, 0xf280, 0xbe00});  // tt r1, r0; tta r2, r0; bkpt
  EXPECT_EQ(machine.core.run(100).reason, StopReason::Breakpoint);
  EXPECT_EQ(machine.core.state.r[1], 0x004c0000u) << "Secure, and in no region of the board";
  EXPECT_EQ(machine.core.state.r[2], 0x003c0000u);
}

TEST(Sau, ControlOfBothWorldsFromASecureProgram) {
  Machine machine;
  State& s = machine.core.state;
  s.control[kSecure] = s.control[kNonSecure] = kControlFpActive;
  // msr control_ns, r0; mrs r1, control_ns; msr control, r2; msr control, r3; mrs r4, control; mrs r5,
  // control_ns
  machine.put(Machine::kCode, {0xf380, 0x8894, 0xf3ef, 0x8194, 0xf382, 0x8814, 0xf383, 0x8814, 0xf3ef, 0x8414,
                               0xf3ef, 0x8594, 0xbe00});
  s.r[0] = kControlProcessStack;
  s.r[2] = kControlUnprivileged | kControlFpActive;
  s.r[3] = kControlSecureFpActive;
  EXPECT_EQ(machine.core.run(100).reason, StopReason::Breakpoint);
  EXPECT_EQ(s.r[1], kControlProcessStack | kControlFpActive) << "NSACR does not give FPCA to the other world";
  EXPECT_EQ(s.r[4], kControlUnprivileged | kControlFpActive | kControlSecureFpActive)
      << "only SFPA is written";
  EXPECT_EQ(s.r[5], kControlProcessStack | kControlFpActive) << "also read without privileges";
}

}  // namespace
}  // namespace carina::cpu_m
