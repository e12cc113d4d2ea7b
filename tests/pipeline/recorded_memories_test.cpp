// SPDX-License-Identifier: Apache-2.0
// Programs built for a memory system of one's own carry it: everybody times them as the compiler did.
#include "npu/targets/recorded_memories.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.hpp"
#include "device/npu_setup.hpp"
#include "device/run.hpp"
#include "pipeline/profile.hpp"
#include "support/fixtures.hpp"
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

TEST_F(RecordedMemories, TheTextIsReadBackAsItWas) {
  const auto machine = npu::makeMachine("ethos-u55-128", "Board_U55", "Board_Sram", folder_ / "board.ini");
  ASSERT_TRUE(machine.ok()) << machine.error().str();
  const std::string text = npu::describeMemories(*machine);
  const auto again = npu::makeMachine("ethos-u55-128", "Board_U55", "Board_Sram", {}, text);
  ASSERT_TRUE(again.ok()) << again.error().str();
  EXPECT_EQ(npu::describeMemories(*again), text);
  EXPECT_EQ(again->system.clockHz, 4e8);
  EXPECT_EQ(again->system.ports[0].clockScale, 0.3);
  EXPECT_EQ(again->system.ports[1].readLatency, 80);
  EXPECT_EQ(again->system.ports[1].pulseOn, 320);
  EXPECT_EQ(again->system.ports[1].pulseOff, 80);
  EXPECT_EQ(again->system.ports[1].firstPulse, 100);
  EXPECT_EQ(npu::describeMemories(*npu::makeMachine("ethos-u85-256", "", "")), "") << "stock";
}

TEST_F(RecordedMemories, ProgramsAreTimedByWhatTheyCarry) {
  const auto built = build(options());
  ASSERT_TRUE(built.ok()) << built.error().str();
  ASSERT_TRUE(writeOutput(*built, folder_ / "digits8.pte").ok());
  const Profile compiled = profileBuild(*built);
  Options finished;
  finished.model = folder_ / "digits8.pte";
  const auto profiled = profile(finished);
  ASSERT_TRUE(profiled.ok()) << profiled.error().str();
  EXPECT_EQ(profiled->machine.system.clockHz, 4e8);
  EXPECT_EQ(profiled->parts[0].cycles, compiled.parts[0].cycles);

  const auto file = MappedFile::open(folder_ / "digits8.pte");
  ASSERT_TRUE(file.ok());
  const Tensor input = Tensor::zeros(DType::Float32, {1, 1, 8, 8});
  const auto run = device::runProgram((*file)->bytes(), std::span(&input, 1));
  ASSERT_TRUE(run.ok()) << run.error().str();
  EXPECT_EQ(run->stats.systemConfig, "Board_U55");
  EXPECT_TRUE(run->stats.warnings.empty());
  device::RunOptions told;
  told.configFile = folder_ / "board.ini";
  const auto explicitly = device::runProgram((*file)->bytes(), std::span(&input, 1), told);
  ASSERT_TRUE(explicitly.ok()) << explicitly.error().str();
  EXPECT_EQ(run->stats.npuCycles, explicitly->stats.npuCycles);
  // Names that are given hold over those of the program.
  device::RunOptions stock;
  stock.systemConfig = "Ethos_U55_High_End_Embedded";
  const auto other = device::runProgram((*file)->bytes(), std::span(&input, 1), stock);
  ASSERT_TRUE(other.ok()) << other.error().str();
  EXPECT_NE(other->stats.npuCycles, run->stats.npuCycles);
}

TEST_F(RecordedMemories, WhatOthersNameWithoutDescribingItIsSaid) {
  const pte::EthosUSettings settings{"ethos-u55-128", "Board_U55", "Shared_Sram", false};
  const auto machine = device::machineFor(settings);
  ASSERT_TRUE(machine.ok());
  const auto warning = device::substitution(settings, *machine);
  ASSERT_TRUE(warning);
  EXPECT_THAT(warning->message, HasSubstr("system configuration 'Board_U55', which it does not describe"));
  EXPECT_THAT(warning->message, HasSubstr("Ethos_U55_High_End_Embedded"));
  EXPECT_FALSE(device::substitution({"ethos-u55-128", "", "", false}, *machine));
}

TEST_F(RecordedMemories, ADamagedDescriptionIsAnError) {
  pte::EthosUSettings settings{"ethos-u55-128", "Board_U55", "Shared_Sram", false};
  settings.memories = "[System_Config.Board_U55]\ncore_clock=fast\n";
  const auto machine = device::machineFor(settings);
  ASSERT_FALSE(machine.ok());
  EXPECT_THAT(machine.error().str(), HasSubstr("that the program records"));
}

TEST_F(RecordedMemories, AModeThatTheNpuCannotUseSaysWhy) {
  const auto u55 = npu::makeMachine("ethos-u55-128", "", "Dtcm_Cache", folder_ / "board.ini");
  ASSERT_FALSE(u55.ok());
  EXPECT_THAT(u55.error().str(),
              HasSubstr("memory mode 'Dtcm_Cache' puts the arena on Axi1, which Ethos-U55 only reads"));
  EXPECT_THAT(u55.error().str(), HasSubstr("Shared_Sram"));
  const auto unknown = npu::makeMachine("ethos-u55-128", "", "Nowhere", folder_ / "board.ini");
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.error().str(), HasSubstr("there is no section [Memory_Mode.Nowhere]"));
  EXPECT_TRUE(npu::makeMachine("ethos-u65-256", "", "Dtcm_Cache", folder_ / "board.ini").ok());
}

}  // namespace
}  // namespace carina::pipeline
