// SPDX-License-Identifier: Apache-2.0
// When an integer network is so far from the float network that the user is told.
#include "quantize/accuracy.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace carina::quantize {
namespace {

TEST(PoorAccuracy, IsAWarningThatNamesRemedies) {
  const auto poor = poorAccuracy({4.26, 2, 4}, true);
  ASSERT_TRUE(poor);
  EXPECT_EQ(
      poor->message,
      "the integer network differs from the float network: the worst of 2 outputs has about 4.3 dB SQNR");
  EXPECT_NE(poor->remedy.find("--auto-precision"), std::string::npos);
  const auto wide = poorAccuracy({-3, 1, 4}, false);
  ASSERT_TRUE(wide);
  EXPECT_NE(wide->message.find("the output has about -3.0 dB"), std::string::npos);
  EXPECT_EQ(wide->remedy.find("--auto-precision"), std::string::npos);
}

TEST(PoorAccuracy, IsNoneOfUsableNetworks) {
  EXPECT_FALSE(poorAccuracy({12, 1, 4}, true));
  EXPECT_FALSE(poorAccuracy({std::numeric_limits<double>::infinity(), 1, 4}, true));
}

}  // namespace
}  // namespace carina::quantize
