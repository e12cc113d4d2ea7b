// SPDX-License-Identifier: Apache-2.0
#include "cpu_m/fp_context.hpp"

#include <gtest/gtest.h>

#include "machine.hpp"

namespace carina::cpu_m {
namespace {

TEST(FpContext, EachWorldSeesItsBitsOfFpccr) {
  FpContextControl fp;
  EXPECT_EQ(fp.control(kSecure, false), 0xc0000004u);
  EXPECT_EQ(fp.control(kNonSecure, false), 0xc0000000u);
  fp.setControl(kNonSecure, 0xffffffff, false);
  EXPECT_EQ(fp.control(kNonSecure, false), 0xd000062bu);
  EXPECT_EQ(fp.control(kSecure, false), 0xd0000004u) << "banked bits differ, shared ones do not";
  fp.setControl(kNonSecure, 0xffffffff, true);
  EXPECT_EQ(fp.control(kNonSecure, true), 0xd000067bu) << "it owns BusFault and HardFault";
  fp.setControl(kSecure, 0xffffffff, false);
  EXPECT_EQ(fp.control(kSecure, false), 0xfc0007ffu);
  fp.setControl(kNonSecure, 0, false);
  EXPECT_EQ(fp.control(kNonSecure, false), 0x50000000u) << "LSPENS and CLRONRETS";
  fp.setAddress(kNonSecure, 0x2000000f);
  EXPECT_EQ(fp.address(kNonSecure), 0x20000008u);
  EXPECT_EQ(fp.address(kSecure), 0u);
}

/// A program whose context has yet to be stored, about to execute vmov.f32 s0, #1.0; bkpt.
struct Interrupted : Machine {
  static constexpr uint32_t kRoom = kData + 0x100;
  explicit Interrupted(Pipeline pipeline = Pipeline::None) : Machine(kAllFeatures, pipeline) {
    put(kCode, {0xeeb7, 0x0a00, 0xbe00});
    std::memset(at(kRoom), 0xee, 0x100);
    for (uint32_t i = 0; i < 32; ++i) core.state.setElement<uint32_t>(i, 0x100 + i);
    core.state.setFpscrWord(0x20040010);
    core.state.vpr = 0x77;
  }
  Stop go() {
    core.deferContext(kRoom, false);
    return core.run(100);
  }
};

TEST(FpContext, TheFirstFloatingPointInstructionStoresIt) {
  for (const bool hidden : {false, true}) {
    Interrupted m;
    if (hidden) m.core.fp.setControl(kSecure, 0xc4000004, false);
    m.core.fp.setDefaultFpscr(kSecure, 0x00c40000);
    ASSERT_EQ(m.go().reason, StopReason::Breakpoint);
    for (uint32_t i = 0; i < 16; ++i) EXPECT_EQ(m.word(m.kRoom + 4 * i), 0x100 + i);
    EXPECT_EQ(m.word(m.kRoom + 0x40), 0x20040010u);
    EXPECT_EQ(m.word(m.kRoom + 0x44), 0x77u);
    EXPECT_EQ(m.word(m.kRoom + 0x48), hidden ? 0x110u : 0xeeeeeeeeu);
    EXPECT_EQ(m.core.state.element<uint32_t>(31), hidden ? 0u : 0x11fu);
    EXPECT_EQ(m.core.state.element<uint32_t>(0), 0x3f800000u) << "the instruction itself";
    EXPECT_EQ(m.core.state.element<uint32_t>(1), 0u) << "a new context";
    EXPECT_EQ(m.core.state.fpscrWord(), 0x00c40000u);
    EXPECT_EQ(m.core.state.vpr, 0u);
    EXPECT_FALSE(m.core.fp.pending(kSecure));
  }
}

TEST(FpContext, LazyStoresTakeTransferCycles) {
  for (const Pipeline pipeline : {Pipeline::M33, Pipeline::M55, Pipeline::M85}) {
    Interrupted plain(pipeline), late(pipeline);
    plain.core.run(100);
    late.go();
    EXPECT_EQ(late.core.cycles() - plain.core.cycles(), transferCycles(pipeline, 18));
  }
  EXPECT_EQ(transferCycles(Pipeline::M33, 18), 18u);
  EXPECT_EQ(transferCycles(Pipeline::M55, 18), 9u);
}

TEST(FpContext, FaultsReportWhyItCannotBeStored) {
  Interrupted m;
  m.core.deferContext(0x70000000, false);
  Stop stop = m.core.run(100);
  EXPECT_EQ(stop.reason, StopReason::LazyStacking);
  EXPECT_EQ(stop.value, static_cast<uint32_t>(StopReason::WriteFault));
  EXPECT_EQ(stop.address, 0x70000000u);
  EXPECT_EQ(m.core.state.pc, Machine::kCode);
  EXPECT_TRUE(m.core.fp.pending(kSecure));
  EXPECT_EQ(m.core.state.element<uint32_t>(1), 0x101u);

  // From an unprivileged program, to memory that only privileged ones may access.
  Interrupted user;
  Mpu& mpu = user.core.changeMpu(kSecure);
  mpu.control = Mpu::kEnable | Mpu::kPrivilegedDefault;
  user.core.state.control[kSecure] = kControlUnprivileged;
  user.core.deferContext(user.kRoom, false);
  user.core.state.control[kSecure] = 0;  // a handler runs
  stop = user.core.run(100);
  EXPECT_EQ(stop.reason, StopReason::LazyStacking);
  EXPECT_EQ(stop.value, static_cast<uint32_t>(StopReason::DataViolation));

  // A context that did not fit is lost without a second fault.
  Interrupted full;
  full.core.deferContext(0x70000000, true);
  EXPECT_EQ(full.core.run(100).reason, StopReason::Breakpoint);
  EXPECT_FALSE(full.core.fp.pending(kSecure));
}

TEST(FpContext, EntryFunctionsSaveNothingIfTheUnitIsOff) {
  // What compilers generate around an entry function: vstr fpcxtns, [sp, #-4]!; vscclrm {s0-s15, vpr}; vldr
  // fpcxtns, [sp], #4; bkpt.
  for (const bool active : {false, true}) {
    Machine m;
    m.put(Machine::kCode, {0xed6d, 0xcf81, 0xec9f, 0x0a10, 0xecfd, 0xcf81, 0xbe00});
    m.core.setCoprocessorAccess(kSecure, 0);
    m.core.fp.setDefaultFpscr(kNonSecure, 0x00c40000);
    m.core.state.control[kSecure] = active ? kControlFpActive | kControlSecureFpActive : 0;
    const uint32_t top = Machine::kData + 0x200;
    m.core.state.r[13] = top;
    const Stop stop = m.core.run(100);
    EXPECT_EQ(stop.reason, active ? StopReason::NoCoprocessor : StopReason::Breakpoint);
    EXPECT_EQ(m.core.state.r[13], top);
    EXPECT_EQ(m.word(top - 4), active ? 0u : 0x00c40000u);
  }
}

TEST(FpContext, VlldmAfterACallFindsItInTheRegisters) {
  Interrupted m;
  // vadd.f32 s0, s0, s1 (a context); vlstm r0; vlldm r0; vlstm r0; vlstm r0
  m.put(Machine::kCode, {0xee30, 0x0a20, 0xec20, 0x0a00, 0xec30, 0x0a00, 0xec20, 0x0a00, 0xec20, 0x0a00});
  m.core.state.r[0] = m.kRoom;
  const Stop stop = m.core.run(100);
  EXPECT_EQ(stop.reason, StopReason::LazyState) << "a second one";
  EXPECT_EQ(m.core.state.pc, Machine::kCode + 16);
  EXPECT_EQ(m.word(m.kRoom + 4), 0xeeeeeeeeu) << "nothing was stored";
  EXPECT_EQ(m.core.state.element<uint32_t>(2), 0x102u);
}

TEST(FpContext, ALoopThatIsNotEnteredCreatesNone) {
  for (const uint32_t count : {0u, 5u}) {
    Machine m;
    m.put(Machine::kCode, {0xf000, 0xc001, 0xbe00});  // wlstp.8 lr, r0, with an empty body; bkpt
    m.core.state.r[0] = count;
    m.core.state.vpr = 0x77;
    EXPECT_EQ(m.core.run(100).reason, StopReason::Breakpoint);
    EXPECT_EQ(m.core.state.vpr, count == 0 ? 0x77u : 0u);
    EXPECT_EQ(m.core.state.control[kSecure], count == 0 ? 0u : kControlFpActive | kControlSecureFpActive);
  }
}

TEST(FpContext, EntryFunctionsKeepASecureCallersState) {
  for (const bool secure : {false, true}) {
    Machine m;
    m.put(Machine::kCode, {0xed6d, 0xcf81, 0xbe00});  // vstr fpcxtns, [sp, #-4]!; bkpt
    m.core.fp.setDefaultFpscr(kNonSecure, 0x00c40000);
    m.core.state.setFpscrWord(0x04040000);
    m.core.state.control[kSecure] = kControlFpActive | (secure ? kControlSecureFpActive : 0);
    m.core.state.r[13] = Machine::kData + 0x200;
    EXPECT_EQ(m.core.run(100).reason, StopReason::Breakpoint);
    EXPECT_EQ(m.word(Machine::kData + 0x1fc), 0x04040000u | (secure ? 1u << 31 : 0));
    EXPECT_EQ(m.core.state.fpscrWord(), secure ? 0x04040000u : 0x00c40000u);
    EXPECT_EQ((m.core.state.control[kSecure] & kControlSecureFpActive) != 0, secure);
  }
}

}  // namespace
}  // namespace carina::cpu_m
