// SPDX-License-Identifier: Apache-2.0
// System configurations and memory modes from a --config file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "npu/targets/target.hpp"
#include "support/require.hpp"
#include "support/temp_dir.hpp"

namespace carina::npu {
namespace {

using testing::HasSubstr;

Result<Machine> machineOf(const std::string& keys) {
  const test::TempDir folder;
  const auto path = folder / "board.ini";
  std::ofstream(path) << "[System_Config.Board]\n" << keys;
  return makeMachine("ethos-u55-128", "Board", "", path);
}

TEST(ConfigFile, NumbersAreFiniteAndInRange) {
  EXPECT_TRUE(machineOf("core_clock=400e6\naxi0_port=Sram\n").ok());
  for (const char* value : {"nan", "inf", "-inf", "1e999", "0x", "", "4e8Hz"}) {
    EXPECT_THAT(errorOf(machineOf("core_clock=" + std::string(value) + "\n")), HasSubstr("is not a number"))
        << value;
  }
  EXPECT_THAT(errorOf(machineOf("Sram_ports_used=0\n")),
              HasSubstr("Sram_ports_used = 0 is too small; expected at least 1"));
}

}  // namespace
}  // namespace carina::npu
