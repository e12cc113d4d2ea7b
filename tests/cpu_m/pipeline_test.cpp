// SPDX-License-Identifier: Apache-2.0
// Cycles of short sequences, by the rules in pipeline.cpp.
#include "cpu_m/pipeline.hpp"

#include <gtest/gtest.h>

#include "machine.hpp"

namespace carina::cpu_m {
namespace {

struct Timed : Machine {
  explicit Timed(Pipeline pipeline) : Machine(kAllFeatures, pipeline) {}
};

/// Cycles and instructions of straight code up to a breakpoint.
struct Count {
  uint64_t cycles, instructions;
};
Count count(Pipeline pipeline, std::initializer_list<uint16_t> code) {
  Timed machine(pipeline);
  machine.core.setDefaultFpscr(0x00040000);
  std::vector<uint16_t> halfwords(code);
  for (size_t i = 0; i < halfwords.size(); ++i)
    machine.put(Machine::kCode + 2 * static_cast<uint32_t>(i), {halfwords[i]});
  machine.put(Machine::kCode + 2 * static_cast<uint32_t>(halfwords.size()), {0xbe00});  // bkpt
  machine.core.state.r[4] = machine.core.state.r[5] = Machine::kData;
  EXPECT_EQ(machine.core.run(1'000'000).reason, StopReason::Breakpoint);
  return {machine.core.cycles(), machine.core.instructions()};
}
uint64_t cycles(Pipeline pipeline, std::initializer_list<uint16_t> code) {
  return count(pipeline, code).cycles;
}

constexpr Pipeline kM33 = Pipeline::M33, kM55 = Pipeline::M55, kM85 = Pipeline::M85;

TEST(Pipeline, WithoutAPipelineEveryInstructionTakesACycle) {
  const Count both = count(Pipeline::None, {0x6820, 0x3001, 0xfbb0, 0xf0f1, 0xbf00});  // ldr, adds, udiv, nop
  EXPECT_EQ(both.cycles, 4u);
  EXPECT_EQ(both.instructions, 4u);
}

TEST(Pipeline, LoadedValuesAreAvailableACycleLater) {
  for (const Pipeline pipeline : {kM33, kM55, kM85}) {
    const uint64_t used = cycles(pipeline, {0x6820, 0x4041});    // ldr r0, [r4]; eors r1, r0
    const uint64_t unused = cycles(pipeline, {0x6820, 0x4051});  // ldr r0, [r4]; eors r1, r2
    EXPECT_EQ(used, unused + 1) << pipelineName(pipeline);
  }
}

TEST(Pipeline, DualIssueRules) {
  EXPECT_EQ(cycles(kM55, {0x4041, 0x3201}), 1u) << "eors r1, r0; adds r2, #1: the second is simple";
  EXPECT_EQ(cycles(kM55, {0x4041, 0x4053}), 2u) << "eors r1, r0; eors r3, r2: neither is";
  EXPECT_EQ(cycles(kM85, {0x4041, 0x4053}), 1u);
  EXPECT_EQ(cycles(kM55, {0x3001, 0x3001}), 2u) << "adds r0, #1; adds r0, #1: one needs the other";
  EXPECT_EQ(cycles(kM85, {0x3001, 0x3001}), 2u);
  EXPECT_EQ(cycles(kM55, {0x4041, 0xf102, 0x0201}), 2u) << "eors r1, r0; add.w r2, r2, #1: 32 bits";
  EXPECT_EQ(cycles(kM85, {0x4341, 0x4353}), 2u) << "muls r1, r0; muls r3, r2: one multiplier";
  EXPECT_EQ(cycles(kM33, {0x4041, 0x3201, 0x3301}), 2u) << "never three";
}

TEST(Pipeline, DivisionsBlock) {
  EXPECT_EQ(cycles(kM55, {0xfbb0, 0xf1f2, 0x3301}), 7u);  // udiv r1, r0, r2; adds r3, #1
}

TEST(Pipeline, MultipleTransfersTakeACyclePerBusBeat) {
  EXPECT_EQ(cycles(kM33, {0xcc0f}), 4u);  // ldmia r4!, {r0-r3}
  EXPECT_EQ(cycles(kM55, {0xcc0f}), 2u);
}

TEST(Pipeline, VectorInstructionsOverlapInDifferentPipes) {
  // vldrw.u32 q0, [r4]; vadd.i32 q1, q1, q2; vmul.i32 q3, q3, q2: each half a beat ahead of the next.
  EXPECT_EQ(cycles(kM55, {0xed94, 0x1f00, 0xef22, 0x2844, 0xef26, 0x6954}), 3u);
  // Two loads, then an addition: the second load waits for the pipe.
  EXPECT_EQ(cycles(kM55, {0xed94, 0x1f00, 0xed95, 0x3f00, 0xef24, 0x4844}), 4u);
}

TEST(Pipeline, TakenBranchesCostUnlessPredicted) {
  // movs r0, #100; again: subs r0, #1; bne again. The branch issues together with the subtraction.
  const std::initializer_list<uint16_t> loop = {0x2064, 0x3801, 0xd1fd};
  const uint64_t m55 = cycles(kM55, loop), m85 = cycles(kM85, loop);
  EXPECT_EQ(m55, 1 + 100 + 99 * uint64_t{branchCosts(kM55).taken});
  EXPECT_EQ(m85, 1 + 100 + uint64_t{branchCosts(kM85).mispredicted}) << "only the loop exit is mispredicted";
  // movs r0, #100; dls lr, r0; again: adds r1, #1; le lr, again
  EXPECT_LE(cycles(kM55, {0x2064, 0xf040, 0xe001, 0x3101, 0xf00f, 0xc803}), 105u);
}

TEST(Pipeline, CyclesInTheMiddleOfABlock) {
  // A device access sees the time of its own instruction, not that of the end of the block.
  struct Clocked final : Devices {
    uint32_t read(uint32_t, uint32_t) override {
      seen.push_back(core->cycles());
      return 0;
    }
    void write(uint32_t, uint32_t, uint32_t) override {}
    bool stopWanted() const override { return false; }
    std::vector<uint64_t> seen;
    Core* core = nullptr;
  } clocked;
  Timed machine(kM55);
  clocked.core = &machine.core;
  machine.core.memory.setDevices(&clocked);
  machine.core.state.r[4] = Machine::kDevice;
  // ldr r0, [r4]; udiv r1, r1, r2; ldr r3, [r4]; bkpt
  machine.put(Machine::kCode, {0x6820, 0xfbb1, 0xf1f2, 0x6823, 0xbe00});
  EXPECT_EQ(machine.core.run(1000).reason, StopReason::Breakpoint);
  EXPECT_EQ(clocked.seen, (std::vector<uint64_t>{0, 7}));
}

TEST(Pipeline, ExecutionsAreCounted) {
  Machine machine;
  machine.core.countExecutions();
  // movs r0, #3; again: subs r0, #1; bne again; ldr r1, [r6] (unmapped); adds r2, #1
  machine.put(Machine::kCode, {0x2003, 0x3801, 0xd1fd, 0x6831, 0x3201});
  machine.core.state.r[6] = 0x70000000;
  EXPECT_EQ(machine.core.run(1000).reason, StopReason::ReadFault);
  const auto executions = machine.core.executions();
  ASSERT_EQ(executions.size(), 3u);
  EXPECT_EQ(executions[0].begin, Machine::kCode);
  EXPECT_EQ(executions[0].count, 1u);
  EXPECT_EQ(executions[1].begin, Machine::kCode + 2);
  EXPECT_EQ(executions[1].end, Machine::kCode + 6);
  EXPECT_EQ(executions[1].count, 3u);
  EXPECT_EQ(executions[2].end, Machine::kCode + 8) << "not the code after the fault";
  EXPECT_EQ(executions[2].count, 1u);
}

}  // namespace
}  // namespace carina::cpu_m
