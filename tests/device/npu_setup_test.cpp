// SPDX-License-Identifier: Apache-2.0
// The NPU to run a program on, from the names that the program records.
#include "device/npu_setup.hpp"

#include <gtest/gtest.h>

#include "support/require.hpp"

namespace carina::device {
namespace {

TEST(NpuSetup, AcceptsNamesOfAMissingConfigurationFile) {
  const auto known = require(machineFor({"ethos-u85-256", "Ethos_U85_SYS_DRAM_High", "Shared_Sram", false}));
  EXPECT_EQ(known.system.name, "Ethos_U85_SYS_DRAM_High");
  EXPECT_EQ(fastScratchBytes(known), 0);

  const auto system = require(machineFor({"ethos-u85-256", "Board_7", "Shared_Sram", false}));
  EXPECT_EQ(system.memory.name, "Shared_Sram");

  // The program may keep intermediate results in fast scratch.
  const auto mode = require(machineFor({"ethos-u85-256", "Ethos_U85_SYS_DRAM_High", "Cache_64KB", false}));
  EXPECT_EQ(mode.system.name, "Ethos_U85_SYS_DRAM_High");
  EXPECT_EQ(fastScratchBytes(mode), 384 * 1024);

  const auto both = require(machineFor({"ethos-u65-256", "Board_7", "Cache_64KB", false}));
  EXPECT_EQ(fastScratchBytes(both), 384 * 1024);

  const auto u55 = require(machineFor({"ethos-u55-64", "Board_7", "Cache_64KB", false}));
  EXPECT_EQ(fastScratchBytes(u55), 0);

  EXPECT_FALSE(machineFor({"ethos-u99-1", "", "", false}).ok());
}

}  // namespace
}  // namespace carina::device
