// SPDX-License-Identifier: Apache-2.0
// The device as seen by a driver: identification, reset, running a stream, interrupts, faults, counters.
#include <gtest/gtest.h>

#include <cstring>

#include "base/work_budget.hpp"
#include "format/ethosu_registers.hpp"
#include "npu/isa/stream.hpp"
#include "npu/model/small_program.hpp"
#include "npu/timing/timing.hpp"

namespace carina::test {
namespace {

using namespace npu;
namespace reg = format::ethosu_reg;
namespace status = format::ethosu_status;
namespace pmu = format::ethosu_pmu;

/// A device whose bus maps a program's stream and arena.
struct Board {
  static constexpr uint64_t kStream = 0x10000, kArena = 0x200000;

  explicit Board(SmallProgram& program, const ModelOptions& options = {})
      : words(program.words()), npu(program.machine(), bus, options) {
    bus.map(kStream, std::as_bytes(std::span<const uint32_t>(words)));
    bus.map(kArena, std::span<std::byte>(program.arena()));
    npu.write32(reg::kReset, 0);
    npu.write32(reg::kQBase, kStream);
    npu.write32(reg::kQSize, static_cast<uint32_t>(words.size() * 4));
    npu.write32(reg::kBaseP + 8, kArena);
  }
  uint32_t go() {
    npu.write32(reg::kCmd, format::ethosu_cmd::kRun);
    npu.run();
    return npu.read32(reg::kStatus);
  }

  std::vector<uint32_t> words;
  MappedMemory bus;
  Npu npu;
};

TEST(ModelDevice, IdentifiesItselfPerVariant) {
  for (const Target& target : allTargets()) {
    SmallProgram program(std::string(target.name).c_str());
    Board board(program);
    EXPECT_EQ(board.npu.read32(reg::kConfig), target.configWord);
    const uint32_t id = board.npu.read32(reg::kId);
    EXPECT_EQ(format::ethosu_id::archMajor(id), format::ethosu_id::archMajor(target.idWord));
    EXPECT_GE(format::ethosu_id::archMinor(id), format::ethosu_id::archMinor(target.idWord));
    const uint32_t pmcr = (target.isU85() ? reg::kPmuBaseU85 : reg::kPmuBaseU55U65);
    EXPECT_EQ(board.npu.read32(pmcr), target.isU85() ? pmu::kPmcrResetU85 : pmu::kPmcrResetU55U65);
    EXPECT_EQ(board.npu.read32(reg::kStatus), 0u);
  }
}

TEST(ModelDevice, RunsAndRaisesTheInterrupt) {
  for (const char* target : {"ethos-u55-128", "ethos-u65-512", "ethos-u85-2048"}) {
    SmallProgram program(target);
    const KernelOperation op = program.copy(2, 2, 2, ElementType::Int8, {1, -2, 3, -4, 5, -6, 7, -8});
    program.add(op);
    program.add(Stop{0x1234});
    Board board(program);
    EXPECT_FALSE(board.npu.interrupt());
    EXPECT_EQ(board.go(), status::kIrqRaised | status::kCmdEndReached | 0x12340000u);
    EXPECT_TRUE(board.npu.interrupt());
    EXPECT_EQ(board.npu.read32(reg::kQRead), board.words.size() * 4);
    EXPECT_EQ(program.values(op.ofm), program.values(op.ifm));
    board.npu.write32(reg::kCmd, format::ethosu_cmd::kClearIrq | 0x12340000u);
    EXPECT_FALSE(board.npu.interrupt());
    EXPECT_EQ(board.npu.read32(reg::kStatus), status::kCmdEndReached);
  }
}

TEST(ModelDevice, StopsOnRequestBetweenCommands) {
  for (const char* target : {"ethos-u55-128", "ethos-u65-256", "ethos-u85-512"}) {
    SmallProgram program(target);
    const KernelOperation op = program.copy(1, 1, 1, ElementType::Int8, {7});
    program.add(op);
    program.add(Stop{1});
    Board board(program);
    board.npu.write32(reg::kCmd, format::ethosu_cmd::kStopRequest);  // nothing runs: nothing to stop
    board.npu.write32(reg::kCmd, format::ethosu_cmd::kRun);
    EXPECT_TRUE(board.npu.run(3));
    const uint32_t position = board.npu.read32(reg::kQRead);
    EXPECT_GT(position, 0u);
    board.npu.write32(reg::kCmd, format::ethosu_cmd::kStopRequest);
    EXPECT_TRUE(board.npu.running());  // until the device's time advances
    EXPECT_FALSE(board.npu.run());
    EXPECT_EQ(board.npu.read32(reg::kQRead), position);
    EXPECT_EQ(board.npu.read32(reg::kStatus), status::kIrqRaised);
    EXPECT_NE(program.values(op.ofm), program.values(op.ifm));
    board.npu.write32(reg::kCmd, format::ethosu_cmd::kClearIrq);
    EXPECT_EQ(board.go(), status::kIrqRaised | status::kCmdEndReached | 0x10000u);  // from the beginning
    EXPECT_EQ(program.values(op.ofm), program.values(op.ifm));
  }
}

TEST(ModelDevice, RunsInBoundedSteps) {
  SmallProgram program("ethos-u55-64");
  program.add(program.copy(1, 1, 1, ElementType::Int8, {1}));
  program.add(Stop{});
  Board board(program);
  board.npu.write32(reg::kCmd, format::ethosu_cmd::kRun);
  EXPECT_TRUE(board.npu.run(5));
  EXPECT_TRUE(board.npu.read32(reg::kStatus) & status::kRunning);
  const uint32_t first = board.npu.read32(reg::kQRead);
  EXPECT_GE(first, 20u);
  EXPECT_FALSE(board.npu.run());
  EXPECT_GT(board.npu.read32(reg::kQRead), first);
}

TEST(ModelDevice, FaultsNameCommandAndReason) {
  SmallProgram program("ethos-u55-128");
  KernelOperation op = program.copy(1, 1, 4, ElementType::Int8, {1, 2, 3, 4});
  op.ofm.base[0] = 0x10000000;
  program.add(op);
  program.add(Stop{});
  Board board(program);
  const uint32_t value = board.go();
  EXPECT_TRUE(value & status::kBusStatus);
  EXPECT_TRUE(value & status::kIrqRaised);
  EXPECT_FALSE(value & status::kCmdEndReached);
  EXPECT_EQ(value >> status::kFaultingChannelShift & 0xf,
            static_cast<uint32_t>(format::EthosUFaultChannel::Ofm));
  ASSERT_TRUE(board.npu.fault());
  EXPECT_EQ(board.npu.fault()->offset, board.words.size() * 4 - 8);
  EXPECT_NE(board.npu.fault()->reason.find("OFM"), std::string::npos);
  // The device runs again only after a reset.
  EXPECT_EQ(board.go() & status::kRunning, 0u);
  board.npu.write32(reg::kReset, 1);
  EXPECT_EQ(board.npu.read32(reg::kStatus), 0u);
  EXPECT_EQ(board.npu.read32(reg::kProt), 1u);
}

TEST(ModelDevice, IllegalCommandsAreParseErrors) {
  SmallProgram program("ethos-u55-128");
  Board board(program);
  const std::vector<uint32_t> words{0x000003ff};
  board.bus.map(0x900000, std::as_bytes(std::span<const uint32_t>(words)));
  board.npu.write32(reg::kQBase, 0x900000);
  board.npu.write32(reg::kQSize, 4);
  EXPECT_TRUE(board.go() & status::kCmdParseError);
  EXPECT_EQ(board.npu.fault()->offset, 0u);
}

TEST(ModelDevice, AStreamThatCannotBeReadIsABusFault) {
  SmallProgram program("ethos-u85-256");
  program.add(Stop{});
  Board board(program);
  board.npu.write32(reg::kQBase, 0x7000000);
  EXPECT_TRUE(board.go() & status::kBusStatus);
}

TEST(ModelDevice, CountersFollowTheRun) {
  for (const char* target : {"ethos-u55-256", "ethos-u85-512"}) {
    SmallProgram program(target);
    program.add(program.copy(8, 8, 16, ElementType::Int8, std::vector<int64_t>(1024, 3)));
    program.add(Stop{});
    Board board(program);
    const uint32_t base = program.target().isU85() ? reg::kPmuBaseU85 : reg::kPmuBaseU55U65;
    board.npu.write32(base + reg::kPmcr, pmu::kEnable | pmu::kResetCycles | pmu::kResetEvents);
    board.npu.write32(base + reg::kPmEvTyper0, pmu::kNpuActive);
    board.npu.write32(base + reg::kPmEvTyper0 + 4, pmu::kPort0WriteBeats);
    board.npu.write32(base + reg::kPmEvTyper0 + 8, 132);   // write transactions of port 0
    board.npu.write32(base + reg::kPmEvTyper0 + 12, 300);  // not an event of any family
    board.npu.write32(base + reg::kPmCntEnSet, pmu::kCycleCounterBit | 15);
    board.go();
    const auto cycles = board.npu.read32(base + reg::kPmCcntrLo);
    EXPECT_GT(cycles, 0u);
    EXPECT_EQ(static_cast<int64_t>(cycles), board.npu.stats().cycles);
    EXPECT_EQ(board.npu.read32(base + reg::kPmEvCntr0), cycles);
    const uint32_t beats = board.npu.read32(base + reg::kPmEvCntr0 + 4);
    EXPECT_GE(beats, 1024u / 16);
    const uint32_t bursts = board.npu.read32(base + reg::kPmEvCntr0 + 8);
    EXPECT_GT(bursts, 0u);
    EXPECT_LT(bursts, beats);
    EXPECT_EQ(board.npu.read32(base + reg::kPmEvCntr0 + 12), 0u);
    board.npu.write32(base + reg::kPmcr, pmu::kEnable | pmu::kResetCycles | pmu::kResetEvents);
    EXPECT_EQ(board.npu.read32(base + reg::kPmCcntrLo), 0u);
  }
}

TEST(ModelDevice, RunTakesTheCyclesOfItsTimeline) {
  for (const char* target : {"ethos-u55-256", "ethos-u85-512"}) {
    SmallProgram program(target);
    for (int i = 0; i < 3; ++i)
      program.add(program.copy(2, 2, 4, ElementType::Int8, std::vector<int64_t>(16, i)));
    ASSERT_EQ(program.run(), "");
    const auto operations = decodeStream(program.words(), program.target());
    ASSERT_TRUE(operations.ok());
    Timeline timeline(program.machine());
    for (const PlacedOperation& placed : *operations) timeline.add(placed.operation, placed.offset);
    EXPECT_EQ(program.result().stats.cycles, timeline.total());
  }
}

TEST(ModelDevice, TheWorkOfARunIsLimited) {
  SmallProgram program("ethos-u55-128");
  for (int i = 0; i < 8; ++i)
    program.add(program.copy(8, 8, 16, ElementType::Int8, std::vector<int64_t>(1024, i)));
  ModelOptions options;
  EXPECT_EQ(program.run(options), "");
  options.maxRunWork = 10000;  // each operation needs several thousand
  const std::string fault = program.run(options);
  EXPECT_NE(fault.find("of which"), std::string::npos) << fault;
  EXPECT_GT(program.result().stats.kernelOperations, 0);
  EXPECT_LT(program.result().stats.kernelOperations, 8);
}

TEST(ModelDevice, WorkLimitGrowsWithTheProgram) {
  constexpr uint64_t kKiB = 1024;
  // A program of less than a megabyte ends in less than two seconds.
  EXPECT_LT(workFor(4 * kKiB), 1'100'000'000);
  EXPECT_LT(workFor(1'000'000), 1'400'000'000);
  // Networks stay far below the limit: mobilenet_v2 needs 63 million steps, no small network more than 100
  // million.
  EXPECT_GT(workFor(3500 * kKiB), int64_t{63'000'000} * 100);
  EXPECT_GT(workFor(UINT64_MAX), workFor(3500 * kKiB));
}

TEST(ModelDevice, LimitsEndOversizedOperations) {
  SmallProgram program("ethos-u85-256");
  KernelOperation op = program.copy(1, 1, 1, ElementType::Int8, {1});
  // Strides of zero: every element is the same byte, so memory does not bound the work.
  op.ifm.strideX = op.ifm.strideY = op.ofm.strideX = op.ofm.strideY = 0;
  op.ofm.height = op.ofm.width = op.ifm.height = op.ifm.width = 65536;
  op.ofm.height0 = op.ofm.height1 = op.ofm.width0 = op.ifm.height0 = op.ifm.height1 = op.ifm.width0 = 65536;
  program.add(op);
  ModelOptions options;
  options.maxOperationWork = 1 << 20;
  EXPECT_NE(program.run(options).find("model limit"), std::string::npos);
  // The default limit refuses a larger operation before it starts, and the fault names it.
  SmallProgram larger("ethos-u85-256");
  op.ofm.depth = op.ifm.depth = 512;
  larger.add(op);
  const std::string fault = larger.run();
  EXPECT_NE(fault.find("65536x65536x512"), std::string::npos) << fault;
  EXPECT_NE(fault.find("the model's limit for this run"), std::string::npos) << fault;
}

}  // namespace
}  // namespace carina::test
