// SPDX-License-Identifier: Apache-2.0
#include "platform/hardware.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace carina::platform {
namespace {

using testing::HasSubstr;

const ImageNote kNote{"corstone-300", "cortex-m33", "ethos-u65-512", "Ethos_U65_High_End", "Sram_Only"};

std::string targetOf(const HardwareChoice& choice, const std::optional<ImageNote>& note = {}) {
  const auto hardware = chooseHardware(choice, note);
  return hardware.ok() ? std::string(hardware->machine.target->name) : hardware.error().str();
}

TEST(Hardware, TheUsualNpu) {
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

TEST(Hardware, TheImageKnows) {
  const auto hardware = chooseHardware({}, kNote);
  ASSERT_TRUE(hardware.ok());
  EXPECT_EQ(hardware->board->name, "corstone-300");
  EXPECT_EQ(hardware->machine.target->name, "ethos-u65-512");
  EXPECT_EQ(hardware->machine.memory.name, "Sram_Only");
  // Said otherwise.
  EXPECT_EQ(targetOf({"", "", "", "", 32}, kNote), "ethos-u55-32");
  EXPECT_EQ(chooseHardware({"", "", "", "Dedicated_Sram", 0}, kNote)->machine.memory.name, "Dedicated_Sram");
  EXPECT_EQ(targetOf({}, ImageNote{"corstone-320", "cortex-m33", "cpu", "", ""}), "ethos-u85-256");
  EXPECT_EQ(chooseHardware({"", "ethos-u55-128", "", "", 0}, kNote)->machine.memory.name, "Shared_Sram");
}

TEST(Hardware, WhatDoesNotFit) {
  EXPECT_THAT(targetOf({}), HasSubstr("--platform"));
  EXPECT_THAT(targetOf({"corstone-320", "", "", "", 0}, kNote), HasSubstr("built for corstone-300"));
  EXPECT_THAT(targetOf({"corstone-320", "ethos-u55-128", "", "", 0}), HasSubstr("has no Ethos-U55"));
  EXPECT_THAT(targetOf({"corstone-315", "ethos-u55-128", "", "", 0}),
              HasSubstr("corstone-315 carries Ethos-U65"));
  EXPECT_THAT(targetOf({"corstone-300", "", "", "", 77}), HasSubstr("ethos-u55-77"));
  EXPECT_THAT(targetOf({"corstone-9", "", "", "", 0}),
              HasSubstr("corstone-300, corstone-310, corstone-315, corstone-320"));
}

}  // namespace
}  // namespace carina::platform
