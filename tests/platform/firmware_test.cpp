// SPDX-License-Identifier: Apache-2.0
// Bare-metal programs (firmware/*.c) on the virtual platform. They check themselves; these tests check what
// is visible from outside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "platform/platform.hpp"
#include "support/contents.hpp"
#include "support/temp_dir.hpp"

namespace carina::platform {
namespace {

using testing::ContainsRegex;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

struct Observed {
  Outcome outcome;
  std::string text;                // of UART 0
  std::vector<std::string> trace;  // if `traced`
};

class Firmware : public testing::Test {
 protected:
  Firmware() {
    use("corstone-300", "ethos-u55-128");
    options.secondsLimit = 120;
  }
  void use(const char* board, const char* target) {
    options.board = *findBoard(board);
    options.machine = *npu::makeMachine(target, "", "");
  }
  static std::filesystem::path image(const std::string& name) {
    return std::filesystem::path(CARINA_IMAGES) / name;
  }
  Observed run(const std::string& name, bool traced = false) {
    Observed result;
    options.output = [&](uint32_t uart, char byte) {
      if (uart == 0) result.text += byte;
    };
    if (traced) options.trace = [&](const std::string& line) { result.trace.push_back(line); };
    auto outcome = runElf(image(name), options);
    EXPECT_TRUE(outcome.ok()) << (outcome.ok() ? "" : outcome.error().str());
    if (outcome.ok()) result.outcome = std::move(*outcome);
    return result;
  }
  /// Runs a program that must exit with code 0.
  Observed good(const std::string& name) {
    Observed result = run(name);
    EXPECT_EQ(result.outcome.reason, EndReason::Exit) << result.outcome.explanation;
    EXPECT_EQ(result.outcome.exitCode, 0) << result.text;
    EXPECT_THAT(result.text, EndsWith("Application exit code: 0.\n"));
    return result;
  }
  Observed fault(const std::string& mode) {
    options.commandLine = "faults " + mode;
    return run("faults-300.elf");
  }

  Options options;
};

TEST_F(Firmware, Console) {
  const Observed result = run("hello-300.elf");
  EXPECT_EQ(result.text, "Hello from the firmware\nApplication exit code: 3.\n");
  EXPECT_EQ(result.outcome.exitCode, 3);
  EXPECT_EQ(result.outcome.reason, EndReason::Exit);
  EXPECT_GT(result.outcome.instructions, 100u);
}

TEST_F(Firmware, InterruptsOn300) {
  const Observed result = good("interrupts-300.elf");
  EXPECT_THAT(result.text, StartsWith("systick\npriorities\nmasks\ncalls\nevents\n"));
  // WFI passes time without instructions.
  EXPECT_GT(result.outcome.cycles, result.outcome.instructions + 9000);
}

TEST_F(Firmware, InterruptsOn320) {
  use("corstone-320", "ethos-u85-256");
  good("interrupts-320.elf");
}

TEST_F(Firmware, SleepsWhenHandlersReturn) {
  const Observed result = good("sleep-300.elf");
  EXPECT_LT(result.outcome.instructions, 2000u) << "time passes without instructions";
  EXPECT_GT(result.outcome.cycles, 15'000u);
}

TEST_F(Firmware, ThreadsKeepTheirRegisters) {
  good("tasks-300.elf");
}

TEST_F(Firmware, CycleCounters) {
  good("cycles-300.elf");
}

TEST_F(Firmware, AliasesAndChangedCode) {
  good("alias-300.elf");
}

TEST_F(Firmware, SecureAndNonSecurePrograms) {
  const Observed result = good("worlds-300.elf");
  EXPECT_THAT(result.text, StartsWith("attributes\ncalls\ninterrupts\nfaults\n"));
}

/// What QEMU 7.2's Cortex-M55 (mps3-an547) prints for the image of a program that prints what it sees.
std::string expectedText(const std::string& name) {
  return test::contentsOf(std::filesystem::path(CARINA_FIRMWARE_SOURCES) / (name + ".txt"));
}

TEST_F(Firmware, FloatingPointStateIsStoredLazily) {
  EXPECT_EQ(good("lazy.elf").text, expectedText("lazy"));
}

TEST_F(Firmware, FloatingPointStateOfBothWorlds) {
  EXPECT_EQ(good("lazy_worlds.elf").text, expectedText("lazy_worlds"));
}

TEST_F(Firmware, ProtectionControllers) {
  // The same transactions pass as on QEMU's mps3-an547. QEMU always answers those that its memory controllers
  // refuse with bus errors, and never those that its peripheral controllers refuse.
  const Observed result = good("gates-300.elf");
  EXPECT_EQ(result.text, expectedText("gates"));
  EXPECT_EQ(result.outcome.faults.size(), 2u);
  options.gating = false;
  EXPECT_THAT(run("gates-300.elf").text,
              HasSubstr("a Secure block\n  Secure 00001234\n  not Secure 00001234\n"));
}

TEST_F(Firmware, DebugMonitorVectorsAndStacksOfHardFaults) {
  const Observed result = good("monitor-300.elf");
  EXPECT_THAT(result.text, StartsWith("monitored\nvectors\nstack limits\n"));
  ASSERT_EQ(result.outcome.faults.size(), 4u);
  EXPECT_EQ(result.outcome.faults[2].what, "no memory for the vector of interrupt 56 at 0x100800a0");
  // Without CCR.STKOFHFNMIGN.
  options.commandLine = "monitor -";
  const Observed limited = run("monitor-300.elf");
  EXPECT_EQ(limited.outcome.reason, EndReason::Lockup);
  EXPECT_THAT(limited.outcome.explanation, HasSubstr("stack overflow"));
}

TEST_F(Firmware, ProtectedReturnsAndBranches) {
  if (!std::filesystem::exists(image("pacbti.elf"))) GTEST_SKIP() << "clang is missing (Debian: clang-14)";
  for (const auto& [board, target] :
       {std::pair("corstone-320", "ethos-u85-256"), {"corstone-315", "ethos-u65-256"}}) {
    use(board, target);
    const Observed result = good("pacbti.elf");
    EXPECT_THAT(result.text, StartsWith("calls\ncodes\nlandings\n"));
    ASSERT_EQ(result.outcome.faults.size(), 2u);
    EXPECT_EQ(result.outcome.faults[0].what, "pointer authentication code that does not match");
    EXPECT_THAT(result.outcome.faults[0].function, StartsWith("smash+"));
    EXPECT_EQ(result.outcome.faults[1].what,
              "indirect branch to an instruction that is not a landing pad (BTI)");
    EXPECT_EQ(result.outcome.faults[1].function, "triple+0x4");
  }
}

TEST_F(Firmware, RunsAreRepeatable) {
  const Observed first = good("tasks-300.elf"), second = good("tasks-300.elf");
  EXPECT_EQ(first.outcome.instructions, second.outcome.instructions);
  EXPECT_EQ(first.outcome.cycles, second.outcome.cycles);
}

TEST_F(Firmware, TracesEveryInstruction) {
  std::vector<std::string> lines;
  options.cpuTrace = [&](const std::string& line) { lines.push_back(line); };
  const Observed traced = good("interrupts-300.elf");
  options.cpuTrace = nullptr;
  const Observed plain = good("interrupts-300.elf");
  EXPECT_EQ(traced.text, plain.text);
  EXPECT_EQ(traced.outcome.reason, plain.outcome.reason);
  // Tracing changes nothing.
  EXPECT_EQ(traced.outcome.instructions, plain.outcome.instructions);
  EXPECT_EQ(traced.outcome.cycles, plain.outcome.cycles);
  // The first one, a register that it changed, a store to memory, an exception, a skipped instruction.
  ASSERT_FALSE(lines.empty());
  EXPECT_THAT(lines[0], StartsWith("0 clk IT (0) 100"));
  EXPECT_THAT(lines[0], HasSubstr(" T thread_s : "));
  EXPECT_THAT(lines[0], EndsWith("; Reset_Handler"));
  EXPECT_THAT(lines, testing::Contains(HasSubstr(" clk R r")));
  EXPECT_THAT(lines, testing::Contains(HasSubstr(" clk MW4 e000ed88 00f00000")));
  EXPECT_THAT(lines, testing::Contains(testing::ContainsRegex(" clk E 1000.* SysTick")));
  const auto executed = std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
    return line.find(" clk IT (") != std::string::npos || line.find(" clk IS (") != std::string::npos;
  });
  EXPECT_EQ(static_cast<uint64_t>(executed), traced.outcome.instructions);
}

TEST_F(Firmware, TracingDoesNotChangeTheCycles) {
  for (const auto& [board, target, file] : {std::tuple("corstone-300", "ethos-u55-128", "tasks-300.elf"),
                                            {"corstone-300", "ethos-u55-128", "npu-300.elf"},
                                            {"corstone-320", "ethos-u85-256", "interrupts-320.elf"},
                                            {"corstone-320", "ethos-u85-256", "npu-320.elf"}}) {
    use(board, target);
    options.cpuTrace = nullptr;
    const Observed plain = good(file);
    uint64_t last = 0;
    options.cpuTrace = [&](const std::string& line) {
      const uint64_t cycle = std::stoull(line);
      EXPECT_GE(cycle, last) << line;
      last = cycle;
    };
    const Observed traced = good(file);
    EXPECT_EQ(traced.outcome.cycles, plain.outcome.cycles) << file;
    EXPECT_EQ(traced.outcome.instructions, plain.outcome.instructions) << file;
    EXPECT_LE(last, plain.outcome.cycles);
  }
}

TEST_F(Firmware, CountersOverTime) {
  options.pmuInterval = 100;
  const Observed traced = good("npu-300.elf");
  options.pmuInterval = 0;
  const Observed plain = good("npu-300.elf");
  EXPECT_EQ(traced.outcome.cycles, plain.outcome.cycles);
  EXPECT_EQ(traced.outcome.instructions, plain.outcome.instructions);
  EXPECT_TRUE(plain.outcome.pmu.samples.empty());
  // One sample per interval; the last one equals the totals of the run.
  const PmuRecord& record = traced.outcome.pmu;
  ASSERT_EQ(record.samples.size(), (plain.outcome.cycles + 99) / 100 + 1);
  for (size_t i = 0; i + 1 < record.samples.size(); ++i) {
    const PmuSample &sample = record.samples[i], &next = record.samples[i + 1];
    ASSERT_EQ(sample.cycle, 100 * i);
    ASSERT_LE(sample.instructions, next.instructions);
    ASSERT_LE(sample.coreCycles, next.coreCycles);
    ASSERT_LE(sample.npu.active, next.npu.active);
    ASSERT_LE(sample.npu.readBeats[0], next.npu.readBeats[0]);
    // A working NPU is active in every cycle; both ends of an interval are rounded. The last job is cut off
    // by a fault.
    if (next.cycle < plain.outcome.jobs.back().start) {
      ASSERT_LE(next.npu.active - sample.npu.active, 101);
    }
  }
  const PmuSample& last = record.samples.back();
  EXPECT_EQ(last.cycle, plain.outcome.cycles);
  EXPECT_EQ(last.instructions, plain.outcome.instructions);
  EXPECT_LT(last.coreCycles, last.cycle);  // it waited for the NPU
  npu::PmuCounts all;
  for (const NpuJob& job : plain.outcome.jobs) {
    all.active += job.stats.pmu.active;
    all.readBeats[0] += job.stats.pmu.readBeats[0];
    all.writeBeats[1] += job.stats.pmu.writeBeats[1];
  }
  EXPECT_GT(all.active, 0);
  EXPECT_EQ(last.npu.active, all.active);
  EXPECT_EQ(last.npu.readBeats, (std::array{all.readBeats[0], last.npu.readBeats[1]}));
  EXPECT_EQ(last.npu.writeBeats[1], all.writeBeats[1]);
  // Each job begins at position 0; its operation is the first of the stream or follows settings.
  ASSERT_GE(record.positions.size(), 2u);
  EXPECT_EQ(record.positions[0].cycle, plain.outcome.jobs[0].start);
  EXPECT_LT(record.positions[0].qread, record.positions[1].qread);
  EXPECT_EQ(record.positions[1].cycle,
            plain.outcome.jobs[0].start + static_cast<uint64_t>(plain.outcome.jobs[0].stats.cycles));
}

TEST(PmuTexts, AreTablesAndTraces) {
  PmuRecord record;
  record.samples.resize(3);
  record.samples[1].cycle = 100;
  record.samples[1].instructions = 70;
  record.samples[1].coreCycles = 90;
  record.samples[2] = record.samples[1];
  record.samples[2].cycle = 150;
  record.samples[2].instructions = 75;
  record.samples[2].npu.macActive = 40;
  EXPECT_EQ(
      pmuCsv(record),
      "cycle,cpu_instructions,cpu_active,npu_active,mac_active,output_active,weight_active,blockdep_stall,"
      "axi0_read_beats,axi0_write_beats,axi1_read_beats,axi1_write_beats\n"
      "100,70,90,0,0,0,0,0,0,0,0,0\n"
      "150,5,0,0,40,0,0,0,0,0,0,0\n");
  record.positions = {{100, 0}, {130, 16}};
  const std::string json = pmuJson(record);
  EXPECT_THAT(
      json,
      StartsWith("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
                 "{\"name\":\"qread\",\"ph\":\"i\",\"s\":\"t\",\"pid\":\"npu\",\"tid\":\"qread\",\"ts\":0,"
                 "\"args\":{\"qread\":0}},\n"
                 "{\"name\":\"qread\",\"ph\":\"i\",\"s\":\"t\",\"pid\":\"npu\",\"tid\":\"qread\",\"ts\":30,"
                 "\"args\":{\"qread\":4}},\n"));
  // Counters begin with the first job.
  EXPECT_THAT(
      json,
      HasSubstr("{\"name\":\"mac_active\",\"ph\":\"C\",\"pid\":\"pmu\",\"ts\":0,\"args\":{\"count\":40}}"));
  EXPECT_THAT(json, Not(HasSubstr("\"count\":70")));
  EXPECT_THAT(json, EndsWith("}}\n]}\n"));
  EXPECT_THAT(pmuFile(record, "a.csv"), StartsWith("cycle,"));
  EXPECT_THAT(pmuFile(record, "a.json"), StartsWith("{"));
  EXPECT_THAT(pmuFile(record, "a.json.gz"), StartsWith("\x1f\x8b"));
}

TEST_F(Firmware, CoverageCountsExecutedLines) {
  options.coverage = true;
  const Observed result = run("hello-300.elf");
  std::ifstream source(std::filesystem::path(CARINA_FIRMWARE_SOURCES) / "hello.c");
  size_t printing = 0, number = 0;
  for (std::string line; std::getline(source, line);) {
    ++number;
    if (line.find("print(") != std::string::npos) printing = number;
  }
  ASSERT_NE(printing, 0u);
  const std::string& lcov = result.outcome.lcov;
  const size_t file = lcov.find("hello.c\n");
  ASSERT_NE(file, std::string::npos) << lcov;
  const std::string record = lcov.substr(file, lcov.find("end_of_record", file) - file);
  EXPECT_THAT(record, HasSubstr("FNDA:1,main\n"));
  EXPECT_THAT(record, HasSubstr(fmt::format("DA:{},1\n", printing)));
  // put() runs once for each character, and for the one that ends the run; handlers that nothing calls do not
  // run.
  EXPECT_THAT(lcov, HasSubstr(fmt::format("FNDA:{},put\n", result.text.size() + 1)));
  EXPECT_THAT(lcov, HasSubstr("FNDA:0,HardFault_Handler\n"));
}

TEST_F(Firmware, UartReceives) {
  const std::string given = "by interrupts\nby polling\n";
  options.uartInput = [&given, at = size_t{0}]() mutable {
    return at < given.size() ? static_cast<unsigned char>(given[at++]) : -1;
  };
  const Observed result = good("receive-300.elf");
  EXPECT_THAT(result.text, StartsWith("received 14\ncombined 14\nby interrupts\nby polling\n!\nsent 2\n"));
  // A byte takes ten bits of 217 cycles.
  EXPECT_GT(result.outcome.cycles, given.size() * 2170);
}

TEST_F(Firmware, WaitingForMissingInputIsADeadlock) {
  const Observed result = run("receive-300.elf");
  EXPECT_EQ(result.outcome.reason, EndReason::Deadlock);
}

// --- semihosting

TEST_F(Firmware, FilesArgumentsAndExitCode) {
  const test::TempDir folder;
  std::ofstream(folder / "in.bin", std::ios::binary) << std::string(5000, 'x') << "end";
  options.semihostingFolder = folder.path();
  options.commandLine = "files in.bin out.bin";
  const Observed result = run("files.elf");
  EXPECT_THAT(result.text, StartsWith("argc 3, in.bin out.bin\n5003 bytes, sum "));
  EXPECT_EQ(result.outcome.exitCode, 7) << result.text;
  EXPECT_EQ(test::contentsOf(folder / "renamed.bin"), "dne" + std::string(5000, 'x'));
  EXPECT_FALSE(std::filesystem::exists(folder / "in.bin"));
}

TEST_F(Firmware, NoFilesWithoutAFolder) {
  options.commandLine = "files in.bin out.bin";
  const Observed result = run("files.elf");
  EXPECT_EQ(result.outcome.exitCode, 4);
  EXPECT_EQ(result.outcome.refusedFile, "in.bin");
}

TEST_F(Firmware, SemihostingCanBeOff) {
  options.semihosting = false;
  const Observed result = fault("u");
  EXPECT_THAT(result.text, HasSubstr("Hard fault. cfsr=00000000 hfsr=80000000"));
  ASSERT_EQ(result.outcome.faults.size(), 1u);
  EXPECT_EQ(result.outcome.faults[0].what, "BKPT 171 without a debugger");
}

// --- faults

TEST_F(Firmware, UndefinedInstruction) {
  const Observed result = fault("u");
  EXPECT_THAT(result.text, HasSubstr("Hard fault. cfsr=00010000 hfsr=40000000"));
  EXPECT_EQ(result.outcome.exitCode, 1);
  ASSERT_EQ(result.outcome.faults.size(), 1u);
  EXPECT_EQ(result.outcome.faults[0].what, "undefined instruction");
  EXPECT_THAT(result.outcome.faults[0].function, StartsWith("main+0x"));
}

TEST_F(Firmware, HandlersRecover) {
  const Observed result = fault("h");
  EXPECT_EQ(result.outcome.exitCode, 0) << result.text;
}

TEST_F(Firmware, LoadFromUnmappedAddress) {
  const Observed result = fault("l");
  EXPECT_THAT(result.text, HasSubstr("cfsr=00008200 hfsr=40000000 bfar=f0000000"));
  ASSERT_EQ(result.outcome.faults.size(), 1u);
  EXPECT_EQ(result.outcome.faults[0].function, "load");
}

TEST_F(Firmware, BusFaultHandler) {
  const Observed result = fault("s");
  EXPECT_THAT(result.text, StartsWith("BusFault\n"));
  EXPECT_EQ(result.outcome.exitCode, 2);
}

TEST_F(Firmware, BranchToUnmappedAddress) {
  EXPECT_THAT(fault("x").text, HasSubstr("cfsr=00000001"));  // no code is allowed there
}

TEST_F(Firmware, MemoryProtection) {
  const Observed result = fault("g");
  EXPECT_THAT(result.text, HasSubstr("cfsr=00000082 hfsr=40000000"));
  ASSERT_EQ(result.outcome.faults.size(), 1u);
  EXPECT_EQ(result.outcome.faults[0].what, "access to 0x30040010, which the MPU refuses");
}

TEST_F(Firmware, BranchToArmState) {
  EXPECT_THAT(fault("a").text, HasSubstr("cfsr=00020000"));
}

TEST_F(Firmware, StackLimit) {
  EXPECT_THAT(fault("o").text, HasSubstr("cfsr=00100000"));
}

TEST_F(Firmware, ExceptionFramesThatDoNotFit) {
  const Observed limit = fault("k");
  EXPECT_THAT(limit.text, HasSubstr("Hard fault. cfsr=00100000"));
  EXPECT_EQ(limit.outcome.exitCode, 1);
  ASSERT_EQ(limit.outcome.faults.size(), 1u);
  EXPECT_THAT(limit.outcome.faults[0].what, HasSubstr("exception frame"));
  const Observed refused = fault("v");
  EXPECT_THAT(refused.text, HasSubstr("Hard fault. cfsr=00000010"));
  EXPECT_EQ(refused.outcome.exitCode, 1);
}

TEST_F(Firmware, Unprivileged) {
  EXPECT_EQ(fault("p").outcome.exitCode, 0);
}

TEST_F(Firmware, SystemRegistersArePrivileged) {
  const Observed result = fault("q");
  EXPECT_THAT(result.text, HasSubstr("cfsr=00008200 hfsr=40000000 bfar=e000ed94"));
  ASSERT_EQ(result.outcome.faults.size(), 1u);
  EXPECT_EQ(result.outcome.faults[0].what, "store to 0xe000ed94, which only privileged programs may access");
}

TEST_F(Firmware, FaultInTheFaultHandlerLocksUp) {
  const Observed result = fault("d");
  EXPECT_EQ(result.outcome.reason, EndReason::Lockup);
  EXPECT_EQ(result.outcome.exitCode, 1);
  EXPECT_THAT(result.outcome.explanation, HasSubstr("store to 0xf0000000"));
}

// --- ends

TEST_F(Firmware, EndlessWaitsAreReported) {
  const Observed result = fault("w");
  EXPECT_EQ(result.outcome.reason, EndReason::Deadlock);
  EXPECT_THAT(result.outcome.explanation, HasSubstr("waits for an interrupt at 0x100"));
}

TEST_F(Firmware, EndlessLoopsAreReported) {
  EXPECT_EQ(fault("e").outcome.reason, EndReason::EndlessLoop);
  EXPECT_EQ(fault("m").outcome.reason, EndReason::EndlessLoop);
}

TEST_F(Firmware, TimeLimit) {
  options.secondsLimit = 0.2;
  const Observed result = fault("t");
  EXPECT_EQ(result.outcome.reason, EndReason::TimeLimit);
  EXPECT_EQ(result.outcome.exitCode, 1);
}

TEST_F(Firmware, CycleLimit) {
  options.cyclesLimit = 12'345;
  const Observed result = fault("t");
  EXPECT_EQ(result.outcome.reason, EndReason::CycleLimit);
  EXPECT_GE(result.outcome.cycles, 12'345u);
  EXPECT_LT(result.outcome.cycles, 12'400u);
  EXPECT_THAT(result.outcome.explanation, HasSubstr("12345 cycles"));
}

TEST_F(Firmware, InstructionLimit) {
  options.instructionsLimit = 5000;
  const Observed result = fault("t");
  EXPECT_EQ(result.outcome.reason, EndReason::InstructionLimit);
  EXPECT_GE(result.outcome.instructions, 5000u);
  EXPECT_LT(result.outcome.instructions, 5100u);
}

TEST_F(Firmware, ResetRequest) {
  EXPECT_EQ(fault("r").outcome.reason, EndReason::Reset);
}

// --- NPU

TEST_F(Firmware, NpuU55) {
  const Observed result = good("npu-300.elf");
  EXPECT_THAT(result.text, HasSubstr("config 00001807\ncopied\nempty jobs done\nbus fault seen\n"));
  ASSERT_EQ(result.outcome.jobs.size(), 103u);
  const npu::RunStats& copy = result.outcome.jobs[0].stats;
  EXPECT_EQ(copy.dmaOperations, 1);
  EXPECT_GT(copy.cycles, 0);
  EXPECT_TRUE(result.outcome.jobs[0].fault.empty());
  EXPECT_THAT(result.outcome.jobs[102].fault, HasSubstr("bus fault"));
}

TEST_F(Firmware, NpuBehindProtectionControllers) {
  const Observed result = good("npu_gates-300.elf");
  ASSERT_EQ(result.outcome.jobs.size(), 2u);
  EXPECT_TRUE(result.outcome.jobs[0].fault.empty()) << result.outcome.jobs[0].fault;
  EXPECT_THAT(result.outcome.jobs[1].fault, HasSubstr("bus fault"));
  options.gating = false;
  EXPECT_THAT(run("npu_gates-300.elf").text, HasSubstr("wrong: not Secure"));
}

TEST_F(Firmware, NpuU65) {
  use("corstone-300", "ethos-u65-512");
  EXPECT_THAT(good("npu-300.elf").text, StartsWith("id 1006"));
}

TEST_F(Firmware, NpuU85) {
  use("corstone-320", "ethos-u85-1024");
  EXPECT_THAT(good("npu-320.elf").text, StartsWith("id 2000"));
}

TEST_F(Firmware, TimingAdaptersApplyOnlyWhenEnabled) {
  const npu::Cycles plain = good("npu-300.elf").outcome.jobs.at(0).stats.cycles;
  EXPECT_EQ(good("adapters-300.elf").outcome.jobs.at(0).stats.cycles, plain);
  options.timingAdapters = true;
  // 512 bytes written at one byte a cycle, after 250 cycles of latency; region 0 is read through the other
  // port.
  const npu::Cycles slow = good("adapters-300.elf").outcome.jobs.at(0).stats.cycles;
  EXPECT_GE(slow, 762);
  EXPECT_GT(slow, plain + 100);
  EXPECT_EQ(good("npu-300.elf").outcome.jobs.at(0).stats.cycles, plain);
}

TEST_F(Firmware, UnmappedDeviceAccessesAreReportedOnce) {
  const auto unknown = fault("n").outcome.unknownPeripherals;
  ASSERT_EQ(unknown.size(), 3u);
  EXPECT_THAT(text(unknown[0]),
              ContainsRegex("read of 0x40123454, where there is no device, at 0x1000.... .main"));
  EXPECT_THAT(text(unknown[1]),
              ContainsRegex("write to 0x50123458, where there is no device, at 0x1000.... .main"));
  EXPECT_GT(unknown[1].pc, unknown[0].pc);
  // Of the core's own registers, accesses that would have an effect; reading that a unit is off is not
  // reported.
  EXPECT_THAT(
      text(unknown[2]),
      ContainsRegex(
          "write to 0xe0002000, the breakpoint unit \\(FPB\\), which is not modelled, at 0x1000.... .main"));
  // Known devices are named.
  EXPECT_EQ(text(UnknownAccess{0x41400050, false, 0x100, "main",
                               std::string(absentDevice(*options.board, 0x51400050))}),
            "read of 0x41400050, the Ethernet controller, which is not modelled, at 0x00000100 (main)");
  EXPECT_EQ(absentDevice(**findBoard("corstone-320"), 0x41400050), "");
}

TEST_F(Firmware, TraceNamesDevicesAndExceptions) {
  const Observed result = run("npu-300.elf", true);
  std::string all;
  for (const std::string& line : result.trace) all += line + "\n";
  EXPECT_THAT(all, HasSubstr("read  npu+0x0"));
  EXPECT_THAT(all, HasSubstr("take  interrupt 56"));
  EXPECT_THAT(all, HasSubstr("return 0xfffffff9"));
}

// --- under the names of the FVPs

TEST_F(Firmware, FvpCommandLine) {
  const auto status = [&](const std::string& command) {
    const int state =
        std::system((std::string(CARINA_FVP_FOLDER) + "/" + command + " >/dev/null 2>&1").c_str());
    return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
  };
  const std::string end = " -C mps3_board.uart0.shutdown_on_eot=1 -C mps3_board.uart0.out_file='-' ";
  EXPECT_EQ(status("FVP_Corstone_SSE-300_Ethos-U55" + end + "-a " + image("hello-300.elf").string()), 3);
  EXPECT_EQ(status("FVP_Corstone_SSE-320 -C mps4_board.uart0.shutdown_on_eot=1 -C "
                   "mps4_board.subsystem.ethosu.num_macs=512 " +
                   image("npu-320.elf").string()),
            0);
  EXPECT_EQ(
      status("FVP_Corstone_SSE-300_Ethos-U65 -C ethosu.num_macs=512" + end + image("npu-300.elf").string()),
      0);
  EXPECT_EQ(status("FVP_Corstone_SSE-300_Ethos-U55 -C ethosu.num_macs=77 " + image("npu-300.elf").string()),
            1);
}

// --- images for other cores, and for another board

TEST_F(Firmware, ImagesForOtherCoresRun) {
  for (const char* name : {"m55.elf", "m7.elf"}) EXPECT_EQ(run(name).text, run("hello-300.elf").text) << name;
}

TEST_F(Firmware, HexadecimalFilesRun) {
  const Observed elf = run("hello-300.elf"), hex = run("hello-300.hex");
  EXPECT_EQ(hex.text, elf.text);
  EXPECT_EQ(hex.outcome.cycles, elf.outcome.cycles);
}

TEST_F(Firmware, AnotherBoardsImageDoesNotFindItsConsole) {
  const auto outcome = runElf(image("hello-320.elf"), options);
  // Its boot ROM is the other board's BRAM: it loads, but does not find its console.
  ASSERT_TRUE(outcome.ok());
  EXPECT_NE(outcome->reason, EndReason::Exit);
}

}  // namespace
}  // namespace carina::platform
