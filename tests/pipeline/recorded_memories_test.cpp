// SPDX-License-Identifier: Apache-2.0
// Programs built for a custom memory system record it: every tool times them as the compiler did.
#include "npu/targets/recorded_memories.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.hpp"
#include "device/npu_setup.hpp"
#include "device/run.hpp"
#include "pipeline/profile.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"
#include "support/temp_dir.hpp"

namespace carina::pipeline {
namespace {

using testing::HasSubstr;

constexpr std::string_view kVendor =
    "[System_Config.Board_U55]\n"
    "core_clock=400e6\naxi0_port=Sram\naxi1_port=OffChipFlash\n"
    "Sram_clock_scale=0.3\nSram_burst_length=32\nSram_read_latency=48\nSram_write_latency=40\n"
    "OffChipFlash_clock_scale=0.05\nOffChipFlash_burst_length=64\nOffChipFlash_read_latency=80\n"
    "OffChipFlash_pulse_on=320\nOffChipFlash_pulse_off=80\nOffChipFlash_first_pulse=100\n"
    "[Memory_Mode.Board_Sram]\nconst_mem_area=Axi1\narena_mem_area=Axi0\ncache_mem_area=Axi0\n"
    "[Memory_Mode.Dtcm_Cache]\nconst_mem_area=Axi1\narena_mem_area=Axi1\ncache_mem_area=Axi0\n";

class RecordedMemories : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(writeFile(folder_ / "board.ini", kVendor).ok()); }

  Options options() const {
    Options options;
    options.model = test::modelFile("digits8.pt2");
    options.calibration = test::modelFile("digits8.npz");
    options.target = "ethos-u55-128";
    options.systemConfig = "Board_U55";
    options.memoryMode = "Board_Sram";
    options.configFile = folder_ / "board.ini";
    return options;
  }

  test::TempDir folder_;
};

TEST_F(RecordedMemories, TheDescriptionIsReadBackUnchanged) {
  const auto machine =
      require(npu::makeMachine("ethos-u55-128", "Board_U55", "Board_Sram", folder_ / "board.ini"));
  const std::string text = npu::describeMemories(machine);
  const auto again = require(npu::makeMachine("ethos-u55-128", "Board_U55", "Board_Sram", {}, text));
  EXPECT_EQ(npu::describeMemories(again), text);
  EXPECT_EQ(again.system.clockHz, 4e8);
  EXPECT_EQ(again.system.ports[0].clockScale, 0.3);
  EXPECT_EQ(again.system.ports[1].readLatency, 80);
  EXPECT_EQ(again.system.ports[1].pulseOn, 320);
  EXPECT_EQ(again.system.ports[1].pulseOff, 80);
  EXPECT_EQ(again.system.ports[1].firstPulse, 100);
  EXPECT_EQ(npu::describeMemories(*npu::makeMachine("ethos-u85-256", "", "")), "") << "stock";
}

TEST_F(RecordedMemories, ProgramsAreTimedByTheirRecordedMemories) {
  const auto built = require(build(options()));
  ASSERT_TRUE(writeOutput(built, folder_ / "digits8.pte").ok());
  const Profile compiled = profileBuild(built);
  Options finished;
  finished.model = folder_ / "digits8.pte";
  const auto profiled = require(profile(finished));
  EXPECT_EQ(profiled.machine.system.clockHz, 4e8);
  EXPECT_EQ(profiled.parts[0].cycles, compiled.parts[0].cycles);

  const auto file = require(MappedFile::open(folder_ / "digits8.pte"));
  const Tensor input = Tensor::zeros(DType::Float32, {1, 1, 8, 8});
  const auto run = require(device::runProgram(file->bytes(), std::span(&input, 1)));
  EXPECT_EQ(run.stats.systemConfig, "Board_U55");
  EXPECT_TRUE(run.stats.warnings.empty());
  device::RunOptions told;
  told.configFile = folder_ / "board.ini";
  const auto explicitly = require(device::runProgram(file->bytes(), std::span(&input, 1), told));
  EXPECT_EQ(run.stats.npuCycles, explicitly.stats.npuCycles);
  // Names that are given override those of the program.
  device::RunOptions stock;
  stock.systemConfig = "Ethos_U55_High_End_Embedded";
  const auto other = require(device::runProgram(file->bytes(), std::span(&input, 1), stock));
  EXPECT_NE(other.stats.npuCycles, run.stats.npuCycles);
}

TEST_F(RecordedMemories, NamesWithoutADescriptionAreReported) {
  const pte::EthosUSettings settings{"ethos-u55-128", "Board_U55", "Shared_Sram", false};
  const auto machine = require(device::machineFor(settings));
  const auto warning = device::substitution(settings, machine);
  ASSERT_TRUE(warning);
  EXPECT_THAT(warning->message, HasSubstr("system configuration 'Board_U55', which it does not describe"));
  EXPECT_THAT(warning->message, HasSubstr("Ethos_U55_High_End_Embedded"));
  EXPECT_FALSE(device::substitution({"ethos-u55-128", "", "", false}, machine));
}

TEST_F(RecordedMemories, ADamagedDescriptionIsAnError) {
  pte::EthosUSettings settings{"ethos-u55-128", "Board_U55", "Shared_Sram", false};
  settings.memories = "[System_Config.Board_U55]\ncore_clock=fast\n";
  EXPECT_THAT(errorOf(device::machineFor(settings)), HasSubstr("that the program records"));
}

TEST_F(RecordedMemories, AnUnusableModeIsRefusedWithTheReason) {
  const auto u55 = npu::makeMachine("ethos-u55-128", "", "Dtcm_Cache", folder_ / "board.ini");
  ASSERT_FALSE(u55.ok());
  EXPECT_THAT(u55.error().str(),
              HasSubstr("memory mode 'Dtcm_Cache' puts the arena on Axi1, which Ethos-U55 only reads"));
  EXPECT_THAT(u55.error().str(), HasSubstr("Shared_Sram"));
  EXPECT_THAT(errorOf(npu::makeMachine("ethos-u55-128", "", "Nowhere", folder_ / "board.ini")),
              HasSubstr("there is no section [Memory_Mode.Nowhere]"));
  EXPECT_TRUE(npu::makeMachine("ethos-u65-256", "", "Dtcm_Cache", folder_ / "board.ini").ok());
}

}  // namespace
}  // namespace carina::pipeline
