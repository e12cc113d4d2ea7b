// SPDX-License-Identifier: Apache-2.0
// Programs on boards: placement in memories, missing memory, proposed fixes, and generated files that build.
#include "firmware/fit.hpp"

#include <gmock/gmock.h>

#include "base/file.hpp"
#include "images.hpp"
#include "report/fit.hpp"
#include "support/require.hpp"
#include "support/temp_dir.hpp"

namespace carina::firmware {
namespace {

using testing::HasSubstr;

FitOptions optionsFor(const std::string& network, const Board& board) {
  FitOptions options;
  options.board = &board;
  options.build.model = test::modelFile(network + ".pt2");
  options.build.calibration = test::modelFile(network + ".npz");
  return options;
}

/// A board with this many bytes of static RAM.
Board withSram(const std::string& name, int64_t bytes) {
  Board board = **findBoardRow(name);
  for (BoardMemory& memory : board.memories) {
    if (memory.takes("Sram")) memory.bytes = bytes;
  }
  return board;
}

TEST(Boards, HaveMemoriesForAllAreasOfTheirMachines) {
  EXPECT_GE(boards().size(), 14u);
  for (const Board& board : boards()) {
    SCOPED_TRACE(board.name);
    EXPECT_FALSE(board.source.empty());
    EXPECT_FALSE(board.date.empty());
    const auto machine = machineOf(board, "", "");
    EXPECT_EQ(machine.ok(), !board.npus.empty());
    if (!machine.ok()) {
      EXPECT_THAT(machine.error().str(), HasSubstr("Neutron"));
      continue;
    }
    for (const std::string& npu : board.npus) EXPECT_TRUE(machineOf(board, npu, "").ok()) << npu;
    const auto takes = [&](std::string_view kind) {
      return std::any_of(board.memories.begin(), board.memories.end(),
                         [&](const BoardMemory& memory) { return memory.takes(kind); });
    };
    EXPECT_TRUE(takes("data"));
    for (const npu::Area area : {npu::Area::Constants, npu::Area::Arena, npu::Area::Cache})
      EXPECT_TRUE(takes(npu::memoryKindName(machine->timing(area).kind)));
    for (const BoardMemory& a : board.memories) {
      EXPECT_GT(a.bytes, 0);
      for (const BoardMemory& b : board.memories) {
        const bool apart = a.address + static_cast<uint64_t>(a.bytes) <= b.address ||
                           b.address + static_cast<uint64_t>(b.bytes) <= a.address;
        EXPECT_TRUE(&a == &b || apart) << a.name << " and " << b.name << " overlap";
      }
    }
  }
}

TEST(Boards, UseTheirOwnClockAndMemories) {
  const auto himax = require(machineOf(**findBoardRow("himax-we2"), "", ""));
  EXPECT_EQ(himax.system.clockHz, 400e6);
  EXPECT_EQ(himax.system.ports[1].clockScale, 0.015625);
  const auto nuvoton = require(machineOf(**findBoardRow("nuvoton-m55m1"), "", ""));
  EXPECT_EQ(nuvoton.system.clockHz, 220e6);
  EXPECT_FALSE(machineOf(**findBoardRow("himax-we2"), "ethos-u85-256", "").ok());
}

TEST(Boards, MisspeltNamesSuggestTheNearest) {
  EXPECT_THAT(errorOf(findBoardRow("himax-we3")), HasSubstr("did you mean 'himax-we2'?"));
}

TEST(Fit, PlacesEveryBlockInAMemory) {
  const Board& board = **findBoardRow("alif-e7-hp");
  const auto result = require(fit(optionsFor("mobile", board)));
  EXPECT_TRUE(result.fits());
  EXPECT_TRUE(result.fixes.empty());
  ASSERT_NE(result.memoryOf("arena"), nullptr);
  EXPECT_EQ(result.memoryOf("arena")->memory.name, "SRAM0");
  EXPECT_EQ(result.memoryOf("program")->memory.name, "MRAM");
  EXPECT_EQ(result.memoryOf("stack")->memory.name, "DTCM");
  EXPECT_GT(result.constantBytes, 0);
  const std::string text = report::fitText(result);
  EXPECT_THAT(text, HasSubstr("inference "));
  EXPECT_THAT(text, HasSubstr("\nfits\n"));
}

TEST(Fit, CountsTheSameForANetworkAndItsProgram) {
  test::TempDir folder;
  ASSERT_TRUE(compileNetwork("residual", "ethos-u55-128", "Shared_Sram", folder / "x.pte").ok());
  const Board& board = **findBoardRow("corstone-300");
  FitOptions options = optionsFor("residual", board);
  options.build.target = "ethos-u55-128";
  options.build.memoryMode = "Shared_Sram";
  const auto network = require(fit(options));
  FitOptions ofProgram;
  ofProgram.board = &board;
  ofProgram.build.model = folder / "x.pte";
  const auto program = require(fit(ofProgram));
  EXPECT_TRUE(program.warnings.empty());
  ASSERT_EQ(program.memories.size(), network.memories.size());
  for (size_t i = 0; i < program.memories.size(); ++i)
    EXPECT_EQ(program.memories[i].used(), network.memories[i].used()) << program.memories[i].memory.name;
  EXPECT_EQ(program.inference->cycles(), network.inference->cycles());
  // An NPU that the board lacks is reported.
  ofProgram.board = *findBoardRow("himax-we2");
  EXPECT_THAT(errorOf(fit(ofProgram)), HasSubstr("himax-we2 has no ethos-u55-128"));
}

TEST(Fit, ReportsWhatIsMissingAndWhatWouldHelp) {
  const auto roomy = require(fit(optionsFor("mobile", **findBoardRow("himax-we2"))));
  // The arena alone: blocks that only the CPU needs move to other memory.
  const int64_t needed = roomy.memoryOf("arena")->blocks.front().bytes;
  ASSERT_EQ(roomy.memoryOf("arena")->blocks.front().what, "arena");
  const Board tight = withSram("himax-we2", needed - 1024);
  const auto result = require(fit(optionsFor("mobile", tight)));
  EXPECT_FALSE(result.fits());
  EXPECT_FALSE(result.peak.empty());
  ASSERT_FALSE(result.fixes.empty());
  EXPECT_TRUE(result.fixes.front().fits);
  EXPECT_GT(result.fixes.front().cycles, 0);
  for (size_t i = 1; i < result.fixes.size(); ++i) {
    const FitFix &a = result.fixes[i - 1], &b = result.fixes[i];
    EXPECT_TRUE(a.fits || !b.fits);
    EXPECT_TRUE(!a.fits || !b.fits || a.cycles <= b.cycles);
  }
  const std::string text = report::fitText(result);
  EXPECT_THAT(text, HasSubstr("what would help"));
  EXPECT_THAT(text, HasSubstr(": fits, "));
  // The change delivers what the fix promises.
  const std::string change = result.fixes.front().change;
  FitOptions again = optionsFor("mobile", tight);
  if (change == "--optimize size") again.build.optimize = compiler::Optimize::Size;
  if (change.starts_with("--arena-size ")) again.build.arenaLimit = std::stoll(change.substr(13));
  if (change == "--io int8") again.build.inputs = again.build.outputs = pipeline::ProgramIo::Int8;
  if (change.starts_with("--memory-mode ")) again.build.memoryMode = change.substr(14);
  const auto fixed = require(fit(again));
  EXPECT_TRUE(fixed.fits()) << change;
  EXPECT_EQ(fixed.inference->cycles(), result.fixes.front().cycles);
}

TEST(Fit, ReportsWhenNoChangeHelps) {
  const auto result = require(fit(optionsFor("mobile", withSram("himax-we2", 256))));
  EXPECT_FALSE(result.fits());
  for (const FitFix& fix : result.fixes) EXPECT_FALSE(fix.fits) << fix.change;
  EXPECT_GT(result.over(), 0);
}

TEST(Fit, TheHeaderAndTheLinkerFragmentBuild) {
  CARINA_NEED_CROSS_COMPILER();
  test::TempDir folder;
  const auto result = require(fit(optionsFor("mobile", **findBoardRow("nuvoton-m55m1"))));
  ASSERT_TRUE(writeFile(folder / "carina_memory.h", memoryHeader(result)).ok());
  ASSERT_TRUE(writeFile(folder / "carina.ld", linkerFragment(result)).ok());
  ASSERT_TRUE(writeFile(folder / "x.c", std::string_view(R"(
#include "carina_memory.h"
CARINA_IN_ARENA unsigned char arena[CARINA_ARENA_BYTES];
CARINA_IN_PROGRAM const unsigned char program[CARINA_PROGRAM_BYTES] = {1};
CARINA_IN_STACK unsigned char stack[CARINA_STACK_BYTES];
int main(void) { return 0; }
)"))
                  .ok());
  const auto linked = require(
      runCommand({"arm-none-eabi-gcc", "-mcpu=cortex-m55", "-Wall", "-Werror", "-nostdlib",
                  "-Wl,--no-warn-rwx-segments", "-e", "main", "x.c", "-T", "carina.ld", "-o", "x.elf"},
                 folder.path()));
  ASSERT_EQ(linked.status, 0) << linked.output;
  const auto symbols = require(runCommand({"arm-none-eabi-nm", "x.elf"}, folder.path()));
  EXPECT_THAT(symbols.output, HasSubstr("20100010 B arena"));  // after main, which may be anywhere
  EXPECT_THAT(symbols.output, HasSubstr("00100000 R program"));
}

}  // namespace
}  // namespace carina::firmware
