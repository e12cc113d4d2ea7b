// SPDX-License-Identifier: Apache-2.0
// Floating-point and vector instructions one by one: worked examples, predication, faults, system registers.
#include <gtest/gtest.h>

#include "cpu_m/core.hpp"
#include "machine.hpp"

namespace carina::cpu_m {
namespace {

using Words = std::array<uint32_t, 4>;

/// Executes 32-bit instructions from the start of the code memory.
struct VectorMachine : Machine {
  using Machine::Machine;

  Stop execute(std::initializer_list<uint32_t> codes) {
    uint32_t address = kCode;
    for (const uint32_t code : codes) {
      setWord(address, code << 16 | code >> 16);
      address += 4;
    }
    setWord(address, 0xbf30);  // WFI
    core.codeChanged();
    core.state.pc = kCode;
    return core.run(1000);
  }
  void setQ(uint32_t q, Words words) {
    for (uint32_t i = 0; i < 4; ++i) core.state.setElement<uint32_t>(4 * q + i, words[i]);
  }
  Words q(uint32_t number) const {
    Words words;
    for (uint32_t i = 0; i < 4; ++i) words[i] = core.state.element<uint32_t>(4 * number + i);
    return words;
  }
  /// Activates the context, so that the first instruction does not reset it.
  void activate() {
    execute({0xeef10a10});  // vmrs r0, fpscr
    core.state.setFpscrWord(0x00040000);
  }
};

TEST(Vector, SaturatesAndSetsQc) {
  VectorMachine m;
  m.activate();
  m.setQ(1, {0x80000000, 0x80000000, 0x40000000, 5});
  m.setQ(2, {0x80000000, 0x7fffffff, 1, 7});
  m.execute({0xef220b44});  // vqdmulh.s32 q0, q1, q2
  EXPECT_EQ(m.q(0), (Words{0x7fffffff, 0x80000001, 0, 0}));
  EXPECT_EQ(m.core.state.fpscr & (1u << 27), 1u << 27);
}

TEST(Vector, MergesByBytesAndSetsQcByElements) {
  VectorMachine m;
  m.activate();
  m.setQ(0, {0x11111111, 0x22222222, 0x33333333, 0x44444444});
  m.setQ(1, {0x7fffffff, 1, 2, 3});
  m.core.state.vpr = 0x00880000 | 0x5a30;  // lane 0 is not active
  m.execute({0xef220052});                 // vqadd.s32 q0, q1, q1
  // Only bytes with a bit in P0: 0000, 0011, 1010, 0101.
  EXPECT_EQ(m.q(0), (Words{0x11111111, 0x22220002, 0x00330033, 0x44004406}));
  EXPECT_EQ(m.core.state.fpscr & (1u << 27), 0u);
}

TEST(Vector, VptBlockInvertsForElse) {
  VectorMachine m;
  m.activate();
  m.core.state.vpr = 0x00ff;
  m.setQ(0, {0, 0, 0, 0});
  m.core.state.r[1] = 1;
  m.core.state.r[2] = 2;
  // vpste; vdupt.32 q0, r1; vdupe.32 q0, r2
  m.execute({0xfe718f4d, 0xeea01b10, 0xeea02b10});
  EXPECT_EQ(m.q(0), (Words{1, 1, 2, 2}));
  EXPECT_EQ(m.core.state.vpr, 0xff00u);
}

TEST(Vector, LoopTailsLeaveElementsUnchanged) {
  VectorMachine m;
  m.activate();
  m.core.state.r[0] = Machine::kData;
  m.core.state.r[14] = 5;
  m.core.state.ltpsize = 0;
  std::memset(m.at(Machine::kData), 0xaa, 32);
  m.setQ(1, {0x01010101, 0x02020202, 0x03030303, 0x04040404});
  m.execute({0xeca03e10});  // vstrb.8 q1, [r0], #16
  EXPECT_EQ(m.word(Machine::kData), 0x01010101u);
  EXPECT_EQ(m.word(Machine::kData + 4), 0xaaaaaa02u);
  EXPECT_EQ(m.core.state.r[0], Machine::kData + 16);
  m.execute({0xed105e10});  // vldrb.8 q2, [r0, #-16]
  EXPECT_EQ(m.q(2), (Words{0x01010101, 0x02, 0, 0}));
}

TEST(Vector, ReducesWithExchangeAndSubtraction) {
  VectorMachine m;
  m.activate();
  m.setQ(1, {1, 2, 0, 0});
  m.setQ(2, {0x10, 0x20, 0, 0});
  m.execute({0xeef30e04, 0xeef33e04, 0xeef34e05, 0xeef37e05});
  // vmladav.s32 r0; vmladavx.s32 r2; vmlsdav.s32 r4; vmlsdavx.s32 r6
  EXPECT_EQ(m.core.state.r[0], 0x50u);
  EXPECT_EQ(m.core.state.r[2], 0x40u);
  EXPECT_EQ(m.core.state.r[4], 0xffffffd0u);
  EXPECT_EQ(m.core.state.r[6], 0u);
}

TEST(Vector, ShiftsThroughTheCarryRegister) {
  VectorMachine m;
  m.activate();
  m.setQ(0, {0x80000001, 0, 0xffffffff, 0x12345678});
  m.core.state.r[1] = 0x55;
  m.execute({0xeea40fc1});  // vshlc q0, r1, #4
  EXPECT_EQ(m.q(0), (Words{0x15, 8, 0xfffffff0, 0x2345678f}));
  EXPECT_EQ(m.core.state.r[1], 1u);
}

TEST(Vector, DeinterleavesFourVectors) {
  VectorMachine m;
  m.activate();
  for (uint32_t i = 0; i < 64; ++i) *m.at(Machine::kData + i) = static_cast<uint8_t>(i);
  m.core.state.r[0] = Machine::kData;
  m.execute({0xfc901e01, 0xfc901e21, 0xfc901e41, 0xfcb01e61});  // vld40.8 ... vld43.8 {q0-q3}, [r0]!
  EXPECT_EQ(m.q(0), (Words{0x0c080400, 0x1c181410, 0x2c282420, 0x3c383430}));
  EXPECT_EQ(m.q(3), (Words{0x0f0b0703, 0x1f1b1713, 0x2f2b2723, 0x3f3b3733}));
  EXPECT_EQ(m.core.state.r[0], Machine::kData + 64);
}

TEST(Vector, CountersWrap) {
  VectorMachine m;
  m.activate();
  m.core.state.r[0] = 12;
  m.core.state.r[1] = 16;
  m.execute({0xee210fe0});  // viwdup.u32 q0, r0, r1, #4
  EXPECT_EQ(m.q(0), (Words{12, 0, 4, 8}));
  EXPECT_EQ(m.core.state.r[0], 12u);
}

TEST(Vector, FloatingPointFlushesRegardlessOfFpscr) {
  VectorMachine m;
  m.activate();
  m.core.state.fpscr = 1u << 22;  // towards plus infinity, for scalars
  m.setQ(1, {0x3f800001, 0x00000001, 0x7f800000, 0x40000000});
  m.setQ(2, {0x33000000, 0x00000001, 0xff800000, 0x40400000});
  m.execute({0xef020d44});  // vadd.f32 q0, q1, q2
  EXPECT_EQ(m.q(0), (Words{0x3f800001, 0, 0x7fc00000, 0x40a00000}));
  EXPECT_EQ(m.core.state.fpscr & 0x9f, 0x91u);
  m.execute({0xee320a04});  // vadd.f32 s0, s4, s8
  EXPECT_EQ(m.core.state.element<uint32_t>(0), 0x3f800002u);
}

TEST(Vector, UpperHalfConversionsRaiseFlagsOnlyIfActive) {
  VectorMachine m;
  m.activate();
  m.setQ(1, {0x7d000000, 0, 0, 0});  // a signalling NaN
  m.core.state.vpr = 0x00880003;     // the lower half is active, the upper one is not
  m.execute({0xfe3f1e03});           // vcvtt.f32.f16 q0, q1
  EXPECT_EQ(m.core.state.fpscr & 0x9f, 0u);
  m.core.state.vpr = 0x0088000c;
  m.execute({0xfe3f1e03});
  EXPECT_EQ(m.core.state.fpscr & 0x9f, 1u);
}

TEST(Vector, LongProductsOfWordsSetQcInEitherBeat) {
  VectorMachine m;
  m.activate();
  m.setQ(1, {0, 0x80000000, 0, 0});
  m.core.state.vpr = 0x00880001;  // the upper word is not active
  m.execute({0xfe321f03});        // vqdmullt.s32 q0, q1, q1
  EXPECT_EQ(m.core.state.fpscr >> 27 & 1, 1u);
}

TEST(Vector, MisalignedElementsFault) {
  VectorMachine m;
  m.activate();
  m.core.state.r[0] = Machine::kData + 2;
  const Stop stop = m.execute({0xed101f00});  // vldrw.u32 q0, [r0]
  EXPECT_EQ(stop.reason, StopReason::Unaligned);
  EXPECT_EQ(m.core.state.pc, Machine::kCode);
}

TEST(Vector, FaultsLeaveBaseAndVectorUnchanged) {
  VectorMachine m;
  m.activate();
  m.setQ(0, {1, 2, 3, 4});
  m.core.state.r[0] = 0x50000000;
  const Stop stop = m.execute({0xecb01e04});  // vldrb.8 q0, [r0], #4
  EXPECT_EQ(stop.reason, StopReason::ReadFault);
  EXPECT_EQ(stop.address, 0x50000000u);
  EXPECT_EQ(m.core.state.r[0], 0x50000000u);
  EXPECT_EQ(m.q(0), (Words{1, 2, 3, 4}));
}

TEST(SystemRegisters, ReflectTheFeaturesOfTheCore) {
  VectorMachine m;
  m.activate();
  m.core.state.r[0] = 0xffffffff;
  m.execute({0xeee10a10, 0xeef11a10, 0xeef22a10, 0xeeec0a10, 0xeefc3a10, 0xeefd4a10});
  EXPECT_EQ(m.core.state.r[1], 0xffcf009fu);  // FPSCR
  EXPECT_EQ(m.core.state.r[2], 0xf8000000u);  // FPSCR_nzcvqc
  EXPECT_EQ(m.core.state.r[3], 0x00ffffffu);  // VPR: the rest is RES0
  EXPECT_EQ(m.core.state.r[4], 0x0000ffffu);  // P0
  VectorMachine small(kDsp | kFloat);
  small.activate();
  small.core.state.r[0] = 0xffffffff;
  small.execute({0xeee10a10, 0xeef11a10});
  EXPECT_EQ(small.core.state.r[1], 0xf7c0009fu);
  EXPECT_EQ(small.execute({0xeefc3a10}).reason, StopReason::Undefined);
}

TEST(SystemRegisters, VprIsPrivileged) {
  VectorMachine m;
  m.activate();
  m.core.state.control[m.core.state.world] |= kControlUnprivileged;
  m.core.state.vpr = 0x00881234;
  m.core.state.r[0] = 0x5678;
  m.execute({0xeefc1a10, 0xeeec0a10, 0xeefd2a10});
  EXPECT_EQ(m.core.state.r[1], 0u);
  EXPECT_EQ(m.core.state.r[2], 0x1234u);
}

TEST(Vector, IsDisassembled) {
  const auto text = [](uint32_t code) { return disassemble(code, true, 0x1000, Machine::kAllFeatures); };
  EXPECT_EQ(text(0xef220844), "vadd.i32 q0, q1, q2");
  EXPECT_EQ(text(0xfe71af4d), "vpstett");
  EXPECT_EQ(text(0xfe718f4d), "vpste");
  EXPECT_EQ(text(0xfe390f8e), "vcmp.f16 ne, q4, q7");
  EXPECT_EQ(text(0xedba7f33), "vldrw.32 q3, [r10, #204]!");
  EXPECT_EQ(text(0xecb93e38), "vldrb.8 q1, [r9], #56");
  EXPECT_EQ(text(0xecd00a19), "vldmia r0, {s1-s25}");
  EXPECT_EQ(text(0xed2d8b10), "vstmdb sp!, {d8-d15}");
  EXPECT_EQ(text(0xed6d8f82), "vstr vpr, [sp, #-8]!");
  EXPECT_EQ(text(0xec539b13), "vmov r9, r3, d3");
  EXPECT_EQ(text(0xec4bea11), "vmov s2, s3, lr, r11");
  EXPECT_EQ(text(0xec154f0b), "vmov q2[2], q2[0], r11, r5");
  EXPECT_EQ(text(0xeef72a00), "vmov.f32 s5, #1065353216");
  EXPECT_EQ(text(0xf020e801), "vctp.32 r0");
}

TEST(Worlds, ASecureContextIsSavedAndRestored) {
  VectorMachine m;
  m.core.fp.setControl(kSecure, fpccr::kAutomatic, false);  // not lazily
  m.activate();
  m.core.state.r[0] = Machine::kData;
  for (uint32_t i = 0; i < 32; ++i) m.core.state.setElement<uint32_t>(i, 0x100 + i);
  m.core.state.fpscr = 0x80000010;
  m.core.state.vpr = 0x1234;
  m.execute({0xec200a00});  // vlstm r0
  EXPECT_EQ(m.core.state.control[kSecure] & kControlFpActive, 0u);
  EXPECT_EQ(m.core.state.element<uint32_t>(15), 0u);
  EXPECT_EQ(m.word(Machine::kData + 60), 0x10fu);
  m.execute({0xec300a00});  // vlldm r0
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(m.core.state.element<uint32_t>(i), 0x100 + i);
  EXPECT_EQ(m.core.state.fpscrWord(), 0x80040010u);
  EXPECT_EQ(m.core.state.vpr, 0x1234u);
  EXPECT_NE(m.core.state.control[kSecure] & kControlFpActive, 0u);

  VectorMachine idle;  // nothing to save: memory is not touched
  idle.core.state.r[0] = 0x70000000;
  EXPECT_EQ(idle.execute({0xec200a00, 0xec300a00}).reason, StopReason::WaitForInterrupt);
}

TEST(Worlds, TheCallersFpscrIsSavedInAWord) {
  VectorMachine m;
  m.activate();
  m.core.fp.setDefaultFpscr(kNonSecure, 0x00040000);
  m.core.state.fpscr = 0x08400000;
  m.core.state.control[kSecure] &= ~kControlSecureFpActive;  // as on entry to a Secure gateway
  m.core.state.r[1] = Machine::kData + 64;
  m.execute({0xed61cf81});  // vstr fpcxtns, [r1, #-4]!
  EXPECT_EQ(m.core.state.r[1], Machine::kData + 60);
  EXPECT_EQ(m.word(Machine::kData + 60), 0x08440000u);
  EXPECT_EQ(m.core.state.fpscrWord(), 0x00040000u);
  m.execute({0xecf1cf81});  // vldr fpcxtns, [r1], #4
  EXPECT_EQ(m.core.state.r[1], Machine::kData + 64);
  EXPECT_EQ(m.core.state.fpscrWord(), 0x08440000u);
}

// --- resumed instructions (EPSR.ECI)

TEST(Resumed, CompletedBeatsAreNotRepeated) {
  VectorMachine m;
  State& s = m.core.state;
  m.activate();
  // vadd.i32 q0, q1, q2 resumed after A0, A0A1, A0A1A2, and with B0 of the vadd.i32 q3, q1, q2 that follows.
  for (const uint32_t eci : {1u, 2u, 4u, 5u}) {
    for (uint32_t i = 0; i < 4; ++i) {
      s.setElement<uint32_t>(i, 7);
      s.setElement<uint32_t>(12 + i, 9);
      s.setElement<uint32_t>(4 + i, 100 * i);
      s.setElement<uint32_t>(8 + i, i);
    }
    s.it = eci << 4;
    ASSERT_EQ(m.execute({0xef220844, 0xef226844}).reason, StopReason::WaitForInterrupt);
    const uint32_t done = eci == 5 ? 3 : eci == 4 ? 3 : eci;
    for (uint32_t i = 0; i < 4; ++i) {
      EXPECT_EQ(s.element<uint32_t>(i), i < done ? 7 : 101 * i) << "ECI " << eci;
      EXPECT_EQ(s.element<uint32_t>(12 + i), eci == 5 && i == 0 ? 9 : 101 * i) << "ECI " << eci;
    }
    EXPECT_EQ(s.it, 0u);
    EXPECT_EQ(s.vpr & ~kVprBits, 0u);
  }
}

TEST(Resumed, OtherInstructionsAndValuesAreInvalid) {
  for (const uint32_t eci : {3u, 6u, 7u, 8u, 15u}) {
    VectorMachine m;
    m.core.state.it = eci << 4;
    EXPECT_EQ(m.execute({0xef220844}).reason, StopReason::InvalidState) << eci;
    EXPECT_EQ(m.core.state.it, eci << 4);
  }
  VectorMachine m;
  m.core.state.it = 1 << 4;
  EXPECT_EQ(m.execute({0xf1010001}).reason, StopReason::InvalidState) << "add.w r0, r1, #1";
  VectorMachine scalar(kDsp);
  scalar.core.state.it = 1 << 4;
  EXPECT_EQ(scalar.execute({0xef220844}).reason, StopReason::InvalidState) << "no vectors";
  // Moves of several registers restart (ICI), the end of a loop leaves it to the next instruction.
  VectorMachine several;
  several.core.state.it = 4 << 4;
  several.core.state.r[0] = Machine::kData;
  several.setWord(Machine::kData + 4, 55);
  EXPECT_EQ(several.execute({0xe8900006}).reason, StopReason::WaitForInterrupt) << "ldm r0, {r1, r2}";
  EXPECT_EQ(several.core.state.r[2], 55u);
}

TEST(Resumed, AFaultKeepsCompletedBeats) {
  VectorMachine m;
  m.activate();
  m.core.state.it = 2 << 4;
  m.core.state.r[0] = 0x70000000;
  EXPECT_EQ(m.execute({0xed901f00}).reason, StopReason::ReadFault) << "vldrw.u32 q0, [r0]";
  EXPECT_EQ(m.core.state.it, 2u << 4);
  EXPECT_EQ(m.core.state.vpr & ~kVprBits, 0u);
}

TEST(FloatingPoint, NeedsItsUnit) {
  VectorMachine m;
  m.core.setCoprocessorAccess(0);
  EXPECT_EQ(m.execute({0xee300a00}).reason, StopReason::NoCoprocessor);  // vadd.f32 s0, s0, s0
  VectorMachine single(kFloat);
  EXPECT_EQ(single.execute({0xee300b00}).reason, StopReason::Undefined);  // vadd.f64 d0, d0, d0
}

TEST(FloatingPoint, MultipleRegistersGoThroughMemory) {
  VectorMachine m;
  m.activate();
  for (uint32_t i = 0; i < 32; ++i) m.core.state.setElement<uint32_t>(i, 0x100 + i);
  const uint32_t top = m.core.state.r[13];
  m.execute({0xed2d8b10, 0xecbd0b10});  // vpush {d8-d15}; vpop {d0-d7}
  EXPECT_EQ(m.core.state.r[13], top);
  for (uint32_t i = 0; i < 16; ++i) EXPECT_EQ(m.core.state.element<uint32_t>(i), 0x110 + i);
}

}  // namespace
}  // namespace carina::cpu_m
