// SPDX-License-Identifier: Apache-2.0
#include "ethosn/compiler/sram_uses.hpp"

#include <gtest/gtest.h>

namespace carina::ethosn::compiler {
namespace {

TEST(EthosNSramUses, OverwritingSplitsRanges) {
  SramUses uses;
  uses.replace(0, 100, Until{5});
  uses.replace(40, 60, Until{7});
  EXPECT_EQ(uses.until(0, 40)[0], 5U);
  EXPECT_EQ(uses.until(40, 60)[0], 7U);
  EXPECT_EQ(uses.until(60, 61)[0], 5U);
  EXPECT_EQ(uses.until(39, 41)[0], 7U);
  EXPECT_EQ(uses.until(100, 200)[0], 0U);
}

TEST(EthosNSramUses, AddedUsesAreMerged) {
  SramUses uses;
  uses.replace(0, 100, Until{5, 1});
  uses.add(50, 150, Until{3, 4});
  EXPECT_EQ(uses.until(0, 50), (Until{5, 1}));
  EXPECT_EQ(uses.until(50, 60), (Until{5, 4}));
  EXPECT_EQ(uses.until(140, 150)[1], 4U);
  uses.replace(0, 150, Until{});
  EXPECT_EQ(uses.until(0, 150), Until{});
}

}  // namespace
}  // namespace carina::ethosn::compiler
