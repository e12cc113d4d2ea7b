// SPDX-License-Identifier: Apache-2.0
// Pointer authentication and branch target identification.
#include <gtest/gtest.h>

#include "cpu_m/pac.hpp"
#include "machine.hpp"

namespace carina::cpu_m {
namespace {

constexpr uint32_t kPrivilegedCodes = 1u << 6, kUserCodes = 1u << 7, kPrivilegedLandings = 1u << 4,
                   kUserLandings = 1u << 5;
constexpr uint32_t kWithoutPacBti = Machine::kAllFeatures & ~kPacBti;

TEST(PacBti, TheCipherMatchesThePublishedVector) {
  // Avanzi's vector for QARMA-64, five rounds, sigma-2.
  EXPECT_EQ(qarma64(0xfb623599da6e8127, 0x477d469dec0b8762, 0x84be85ce9804e94b, 0xec2802d4e0a488e9),
            0xc003b93999b33765u);
  const PacKey key = {0xe0a488e9, 0xec2802d4, 0x9804e94b, 0x84be85ce};
  EXPECT_EQ(authenticationCode(0x1234, 0x5678, key),
            static_cast<uint32_t>(qarma64(0x1234, 0x5678, 0x84be85ce9804e94b, 0xec2802d4e0a488e9) >> 32));
}

TEST(PacBti, DisassemblyMatchesAssemblers) {
  // As llvm-mc encodes them.
  const auto text = [](uint32_t code, uint32_t features) { return disassemble(code, true, 0, features); };
  EXPECT_EQ(text(0xfb61f002, Machine::kAllFeatures), "pacg r0, r1, r2");
  EXPECT_EQ(text(0xfb510f02, Machine::kAllFeatures), "autg r0, r1, r2");
  EXPECT_EQ(text(0xfb510f12, Machine::kAllFeatures), "bxaut r0, r1, r2");
  EXPECT_EQ(text(0xf3af801d, Machine::kAllFeatures), "pac r12, lr, sp");
  EXPECT_EQ(text(0xf3af800d, Machine::kAllFeatures), "pacbti r12, lr, sp");
  EXPECT_EQ(text(0xf3af802d, Machine::kAllFeatures), "aut r12, lr, sp");
  EXPECT_EQ(text(0xf3af800f, Machine::kAllFeatures), "bti");
  EXPECT_EQ(text(0xf3af800f, kWithoutPacBti), "hint.w");
  EXPECT_EQ(text(0xfb610302, Machine::kAllFeatures).substr(0, 5), "smmls") << "a neighbouring encoding";
}

/// A core with words for keys in r4 to r7 and a return address in LR.
struct Signing : Machine {
  explicit Signing(uint32_t control = kPrivilegedCodes, uint32_t features = kAllFeatures)
      : Machine(features) {
    core.state.control[kSecure] = control;
    State& s = core.state;
    for (uint32_t i = 0; i < 4; ++i) s.r[4 + i] = 0x11111111 * (i + 1);
    s.r[14] = 0x10000101;
  }
  /// Runs `code` from kCode.
  Stop execute(std::initializer_list<uint16_t> code) {
    put(kCode, code);
    core.state.pc = kCode;
    return core.run(100);
  }
};

TEST(PacBti, KeysAreBankedByWorldAndPrivilege) {
  Signing m;
  // msr pac_key_p_0, r4; msr pac_key_u_3, r5; msr pac_key_p_1_ns, r6; mrs r0, ...; wfi
  m.execute({0xf384, 0x8820, 0xf385, 0x8827, 0xf386, 0x88a1, 0xf3ef, 0x8020, 0xf3ef, 0x8127, 0xf3ef, 0x82a1,
             0xbf30});
  EXPECT_EQ(m.core.state.r[0], 0x11111111u);
  EXPECT_EQ(m.core.state.r[1], 0x22222222u);
  EXPECT_EQ(m.core.state.r[2], 0x33333333u);
  EXPECT_EQ(m.core.pacKeys[kSecure][0][0], 0x11111111u);
  EXPECT_EQ(m.core.pacKeys[kSecure][1][3], 0x22222222u);
  EXPECT_EQ(m.core.pacKeys[kNonSecure][0][1], 0x33333333u);
  // Unprivileged code reads them as 0 and cannot change them; an M55 has none.
  m.core.state.control[kSecure] = kControlUnprivileged;
  m.execute({0xf386, 0x8820, 0xf3ef, 0x8020, 0xbf30});
  EXPECT_EQ(m.core.state.r[0], 0u);
  EXPECT_EQ(m.core.pacKeys[kSecure][0][0], 0x11111111u);
  Signing m55(0, kWithoutPacBti);
  EXPECT_EQ(m55.execute({0xf3ef, 0x8020}).reason, StopReason::Undefined);
}

TEST(PacBti, CodesAreComputedAndChecked) {
  Signing m;
  State& s = m.core.state;
  m.core.pacKeys[kSecure][0] = {1, 2, 3, 4};
  s.r[1] = 0x10000101, s.r[2] = 0x20000200;
  // pacg r0, r1, r2; autg r0, r1, r2; wfi
  EXPECT_EQ(m.execute({0xfb61, 0xf002, 0xfb51, 0x0f02, 0xbf30}).reason, StopReason::WaitForInterrupt);
  EXPECT_EQ(s.r[0], authenticationCode(0x10000101, 0x20000200, {1, 2, 3, 4}));
  s.r[2] ^= 8;
  const Stop stop = m.execute({0xfb51, 0x0f02, 0xbf30});
  EXPECT_EQ(stop.reason, StopReason::InvalidCode) << "another modifier";
  EXPECT_EQ(s.pc, Machine::kCode);
  // pac; aut; wfi. Then with another return address.
  EXPECT_EQ(m.execute({0xf3af, 0x801d, 0xf3af, 0x802d, 0xbf30}).reason, StopReason::WaitForInterrupt);
  EXPECT_EQ(s.r[12], authenticationCode(s.r[14], s.r[13], {1, 2, 3, 4}));
  s.r[14] += 4;
  EXPECT_EQ(m.execute({0xf3af, 0x802d, 0xbf30}).reason, StopReason::InvalidCode);
}

TEST(PacBti, CodesAreOffUnlessEnabled) {
  struct {
    uint32_t control;
    bool codes;
  } const cases[] = {{0, false},
                     {kUserCodes, false},
                     {kPrivilegedCodes, true},
                     {kControlUnprivileged | kPrivilegedCodes, false},
                     {kControlUnprivileged | kUserCodes, true}};
  for (const auto& which : cases) {
    Signing m(which.control);
    m.core.pacKeys[kSecure][0] = {1, 2, 3, 4};
    m.core.pacKeys[kSecure][1] = {5, 6, 7, 8};
    m.core.state.r[12] = 77;
    const Stop stop = m.execute({0xf3af, 0x802d, 0xbf30});  // aut; wfi
    EXPECT_EQ(stop.reason, which.codes ? StopReason::InvalidCode : StopReason::WaitForInterrupt);
    m.execute({0xf3af, 0x800d, 0xbf30});  // pacbti; wfi
    EXPECT_EQ(m.core.state.r[12] != 77, which.codes);
  }
  // Without the extension the hints do nothing, and the others are undefined.
  Signing m55(0, kWithoutPacBti);
  EXPECT_EQ(m55.execute({0xf3af, 0x800d, 0xf3af, 0x802d, 0xf3af, 0x800f, 0xbf30}).reason,
            StopReason::WaitForInterrupt);
  EXPECT_EQ(m55.execute({0xfb61, 0xf002}).reason, StopReason::Undefined);
}

TEST(PacBti, BxautChecksThenBranches) {
  Signing m;
  State& s = m.core.state;
  s.r[1] = Machine::kCode + 0x100 + 1;
  s.r[2] = 9;
  s.r[0] = authenticationCode(s.r[1], 9, {});
  m.put(Machine::kCode + 0x100, {0xbf30});
  EXPECT_EQ(m.execute({0xfb51, 0x0f12}).reason, StopReason::WaitForInterrupt);
  EXPECT_EQ(s.pc, Machine::kCode + 0x102);
  s.r[0] ^= 1;
  EXPECT_EQ(m.execute({0xfb51, 0x0f12}).reason, StopReason::InvalidCode);
}

/// Branches to r0 = kTarget, where `landing` is.
struct Landing : Machine {
  static constexpr uint32_t kTarget = kCode + 0x100;
  Landing(std::initializer_list<uint16_t> branch, std::initializer_list<uint16_t> landing,
          uint32_t control = kPrivilegedLandings) {
    State& s = core.state;
    s.control[kSecure] = control;
    s.r[0] = s.r[14] = kTarget + 1;
    s.r[1] = kData;
    s.r[13] = kData + 0x20;
    setWord(kData, kTarget + 1);
    setWord(kData + 0x20, kTarget + 1);
    put(kCode, branch);
    put(kTarget, landing);
  }
};

TEST(PacBti, IndirectBranchesNeedALandingPad) {
  const std::initializer_list<uint16_t> plain = {0xbf00, 0xbf30};  // nop; wfi
  struct {
    std::initializer_list<uint16_t> code;
    bool needs;
  } const branches[] = {
      {{0x4700}, true},           // bx r0
      {{0x4780}, true},           // blx r0
      {{0xf8d1, 0xf000}, true},   // ldr pc, [r1]
      {{0xe891, 0x8004}, true},   // ldm r1, {r2, pc}
      {{0x4770}, false},          // bx lr
      {{0x46f7}, false},          // mov pc, lr
      {{0x4687}, false},          // mov pc, r0
      {{0xf85d, 0xfb04}, false},  // ldr pc, [sp], #4
      {{0xbd00}, false},          // pop {pc}
      {{0xf000, 0xb87e}, false},  // b.w
  };
  for (const auto& branch : branches) {
    Landing m(branch.code, plain);
    m.setWord(Machine::kData + 4, Landing::kTarget + 1);
    const Stop stop = m.core.run(100);
    EXPECT_EQ(stop.reason, branch.needs ? StopReason::NoLanding : StopReason::WaitForInterrupt)
        << std::hex << *branch.code.begin();
    if (!branch.needs) continue;
    EXPECT_EQ(m.core.state.pc, Landing::kTarget);
    EXPECT_EQ(m.core.state.xpsr() & kXpsrLanding, kXpsrLanding);
    Landing off(branch.code, plain, kUserLandings);
    off.setWord(Machine::kData + 4, Landing::kTarget + 1);
    EXPECT_EQ(off.core.run(100).reason, StopReason::WaitForInterrupt) << "off";
  }
}

TEST(PacBti, LandingPadsAreBtiPacbtiAndGateways) {
  for (const auto& code : {std::initializer_list<uint16_t>{0xf3af, 0x800f, 0xbf30},
                           {0xf3af, 0x800d, 0xbf30},
                           {0xe97f, 0xe97f, 0xbf30}}) {
    Landing m({0x4700}, code);
    EXPECT_EQ(m.core.run(100).reason, StopReason::WaitForInterrupt);
    EXPECT_FALSE(m.core.state.landing);
  }
  // A debugger's breakpoint stops there; the instruction that it replaced is checked once it is removed.
  Landing m({0x4700}, {0xbe00, 0xbf30});
  EXPECT_EQ(m.core.run(100).reason, StopReason::Breakpoint);
}

TEST(PacBti, TheExpectedLandingSurvivesAPause) {
  Landing m({0x4700}, {0xbf00, 0xbf30});
  EXPECT_EQ(m.core.step().reason, StopReason::Budget);
  EXPECT_TRUE(m.core.state.landing);
  EXPECT_EQ(m.core.step().reason, StopReason::NoLanding);
  // A conditional branch that is not taken expects no landing pad: cmp r0, #0; it eq; bxeq r0; nop; wfi.
  Landing skipped({0x2800, 0xbf08, 0x4700, 0xbf00, 0xbf30}, {0xbf00});
  EXPECT_EQ(skipped.core.run(100).reason, StopReason::WaitForInterrupt);
  EXPECT_EQ(skipped.core.state.pc, Machine::kCode + 10);
  // Neither does a load of the program counter that faults.
  Landing fault({0xf8d1, 0xf000}, {0xbf00});
  fault.core.state.r[1] = 0x70000000;
  EXPECT_EQ(fault.core.run(100).reason, StopReason::ReadFault);
  EXPECT_FALSE(fault.core.state.landing);
}

TEST(PacBti, LandingChecksCanBeEnabledDuringARun) {
  // bx r0 (while disabled); at the target: bti; movs r1, #16; msr control, r1; bx r2 to a nop
  Landing m({0x4700}, {0xf3af, 0x800f, 0x2110, 0xf381, 0x8814, 0x4710}, 0);
  m.put(Landing::kTarget + 0x20, {0x4700});  // bx r0: decoded before
  m.core.state.r[2] = Landing::kTarget + 0x21;
  m.core.state.pc = Landing::kTarget + 0x20;
  const Stop stop = m.core.run(100);
  EXPECT_EQ(stop.reason, StopReason::NoLanding);
  EXPECT_EQ(m.core.state.pc, Landing::kTarget + 0x20);
}

}  // namespace
}  // namespace carina::cpu_m
