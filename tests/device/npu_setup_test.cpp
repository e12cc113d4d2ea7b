// SPDX-License-Identifier: Apache-2.0
// The NPU that a program is run on, from the names that it records.
#include "device/npu_setup.hpp"

#include <gtest/gtest.h>

namespace carina::device {
namespace {

TEST(NpuSetup, NamesOfAConfigurationFileThatIsNotHere) {
  const auto known = machineFor({"ethos-u85-256", "Ethos_U85_SYS_DRAM_High", "Shared_Sram", false});
  ASSERT_TRUE(known.ok()) << known.error().str();
  EXPECT_EQ(known->system.name, "Ethos_U85_SYS_DRAM_High");
  EXPECT_EQ(fastScratchBytes(*known), 0);

  const auto system = machineFor({"ethos-u85-256", "Board_7", "Shared_Sram", false});
  ASSERT_TRUE(system.ok()) << system.error().str();
  EXPECT_EQ(system->memory.name, "Shared_Sram");

  // The program may keep intermediate results in fast scratch.
  const auto mode = machineFor({"ethos-u85-256", "Ethos_U85_SYS_DRAM_High", "Cache_64KB", false});
  ASSERT_TRUE(mode.ok()) << mode.error().str();
  EXPECT_EQ(mode->system.name, "Ethos_U85_SYS_DRAM_High");
  EXPECT_EQ(fastScratchBytes(*mode), 384 * 1024);

  const auto both = machineFor({"ethos-u65-256", "Board_7", "Cache_64KB", false});
  ASSERT_TRUE(both.ok()) << both.error().str();
  EXPECT_EQ(fastScratchBytes(*both), 384 * 1024);

  const auto u55 = machineFor({"ethos-u55-64", "Board_7", "Cache_64KB", false});
  ASSERT_TRUE(u55.ok()) << u55.error().str();
  EXPECT_EQ(fastScratchBytes(*u55), 0);

  EXPECT_FALSE(machineFor({"ethos-u99-1", "", "", false}).ok());
}

}  // namespace
}  // namespace carina::device
