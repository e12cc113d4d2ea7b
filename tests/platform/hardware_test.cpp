// SPDX-License-Identifier: Apache-2.0
#include "platform/hardware.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "platform/memory_timing.hpp"

namespace carina::platform {
namespace {

using testing::HasSubstr;

const ImageNote kNote{"corstone-300", "cortex-m33", "ethos-u65-512", "Ethos_U65_High_End", "Sram_Only"};

std::string targetOf(const HardwareChoice& choice, const std::optional<ImageNote>& note = {}) {
  const auto hardware = chooseHardware(choice, note);
  return hardware.ok() ? std::string(hardware->machine.target->name) : hardware.error().str();
}

TEST(Hardware, DefaultNpus) {
  EXPECT_EQ(targetOf({"corstone-300", "", "", "", 0}), "ethos-u55-128");
  EXPECT_EQ(targetOf({"corstone-300", "", "", "", 256}), "ethos-u55-256");
  EXPECT_EQ(targetOf({"corstone-300", "", "", "", 512}), "ethos-u65-512");
  EXPECT_EQ(targetOf({"corstone-300", "ethos-u65-256", "", "", 0}), "ethos-u65-256");
  EXPECT_EQ(targetOf({"corstone-320", "", "", "", 0}), "ethos-u85-256");
  EXPECT_EQ(targetOf({"corstone-320", "", "", "", 2048}), "ethos-u85-2048");
  EXPECT_EQ(targetOf({"corstone-310", "", "", "", 0}), "ethos-u55-128");
  EXPECT_EQ(targetOf({"corstone-310", "", "", "", 512}), "ethos-u65-512");
  EXPECT_EQ(targetOf({"corstone-315", "", "", "", 0}), "ethos-u65-256");
}

TEST(Hardware, FollowsTheImageNote) {
  const auto hardware = chooseHardware({}, kNote);
  ASSERT_TRUE(hardware.ok());
  EXPECT_EQ(hardware->board->name, "corstone-300");
  EXPECT_EQ(hardware->machine.target->name, "ethos-u65-512");
  EXPECT_EQ(hardware->machine.memory.name, "Sram_Only");
  // Overridden by options.
  EXPECT_EQ(targetOf({"", "", "", "", 32}, kNote), "ethos-u55-32");
  EXPECT_EQ(chooseHardware({"", "", "", "Dedicated_Sram", 0}, kNote)->machine.memory.name, "Dedicated_Sram");
  EXPECT_EQ(targetOf({}, ImageNote{"corstone-320", "cortex-m33", "cpu", "", ""}), "ethos-u85-256");
  EXPECT_EQ(chooseHardware({"", "ethos-u55-128", "", "", 0}, kNote)->machine.memory.name, "Shared_Sram");
}

TEST(Hardware, RefusesMismatches) {
  EXPECT_THAT(targetOf({}), HasSubstr("--platform"));
  EXPECT_THAT(targetOf({"corstone-320", "", "", "", 0}, kNote), HasSubstr("built for corstone-300"));
  EXPECT_THAT(targetOf({"corstone-320", "ethos-u55-128", "", "", 0}), HasSubstr("has no Ethos-U55"));
  EXPECT_THAT(targetOf({"corstone-315", "ethos-u55-128", "", "", 0}),
              HasSubstr("corstone-315 carries Ethos-U65"));
  EXPECT_THAT(targetOf({"corstone-300", "", "", "", 77}), HasSubstr("ethos-u55-77"));
  EXPECT_THAT(targetOf({"corstone-9", "", "", "", 0}),
              HasSubstr("corstone-300, corstone-310, corstone-315, corstone-320"));
}

std::string timingOf(std::string_view text) {
  const auto timing = parseMemoryTiming(text, *allBoards().begin());
  if (!timing) return timing.error().str();
  std::string result = std::to_string(timing->cacheKiB);
  for (const MemoryTiming::Entry& entry : timing->entries)
    result += " " + std::string(entry.memory->name) + " " + std::to_string(entry.cycles);
  return result;
}

TEST(MemoryTiming, NamesMemoriesOfTheBoard) {
  EXPECT_EQ(timingOf(""), "32");
  EXPECT_EQ(timingOf("sram=1,ddr=30,cache=16"), "16 SRAM 1 DDR 30");
  EXPECT_THAT(timingOf("flash=1"), HasSubstr("'flash' is not a memory of corstone-300"));
  EXPECT_THAT(timingOf("itcm=1"), HasSubstr("tightly coupled"));
  EXPECT_THAT(timingOf("sram"), HasSubstr("sram= is not a number from 0 to 10000"));
  EXPECT_THAT(timingOf("sram=-1"), HasSubstr("sram=-1 is not a number"));
  EXPECT_THAT(timingOf("cache=12"), HasSubstr("a cache cannot have 12 KiB"));
  EXPECT_FALSE(waitStatesOf(*parseMemoryTiming("sram=0,cache=4", *allBoards().begin())));
  const auto waits = waitStatesOf(*parseMemoryTiming("sram=2", *allBoards().begin()));
  ASSERT_TRUE(waits);
  EXPECT_TRUE(waits->concerns(0x31000000));
  EXPECT_TRUE(waits->concerns(0x21000000)) << "its other address";
  EXPECT_FALSE(waits->concerns(0x20000000));
}

}  // namespace
}  // namespace carina::platform
