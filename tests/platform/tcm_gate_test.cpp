// SPDX-License-Identifier: Apache-2.0
#include "platform/tcm_gate.hpp"

#include <gtest/gtest.h>

namespace carina::platform {
namespace {

TEST(TcmGate, DescribesAndKeepsItsBlocks) {
  TcmGate gate;
  const uint32_t configuration = gate.read(4);
  EXPECT_EQ(configuration >> 31, 1u);
  const uint32_t blocks = 1u << (configuration >> 8 & 15), size = 1u << ((configuration & 15) + 5);
  EXPECT_EQ(blocks * size, 512u * 1024);
  gate.write(4, 0);
  EXPECT_EQ(gate.read(4), configuration);
  gate.write(0, 0xff);
  EXPECT_EQ(gate.read(0), 3u);
  gate.write(0x10, 0x12345678);
  gate.write(0x4c, 0xfedcba98);
  EXPECT_EQ(gate.read(0x10), 0x12345678u);
  EXPECT_EQ(gate.read(0x4c), 0xfedcba98u);
  gate.write(0x50, 1);
  EXPECT_EQ(gate.read(0x50), 0u);
}

}  // namespace
}  // namespace carina::platform
