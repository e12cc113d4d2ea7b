// SPDX-License-Identifier: Apache-2.0
#include "platform/end_of_test.hpp"

#include <gtest/gtest.h>

#include <string_view>

namespace carina::platform {
namespace {

/// Feeds text; returns the index of the byte that ends the test, or -1.
int endAfter(EndOfTest& end, std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (end.feed(text[i])) return static_cast<int>(i);
  }
  return -1;
}

TEST(EndOfTest, ExitCodeAndEot) {
  EndOfTest end;
  EXPECT_EQ(endAfter(end, "hello\r\nApplication exit code: 12.\r\n\x04 more"), 35);
  EXPECT_EQ(end.exitCode(), 12);
}

TEST(EndOfTest, EotAlone) {
  EndOfTest end;
  EXPECT_EQ(endAfter(end, "I [executorch:main.cpp:1 main()] \x04"), 33);
  EXPECT_EQ(end.exitCode(), 0);
}

TEST(EndOfTest, ExitTag) {
  EndOfTest end;
  EXPECT_EQ(endAfter(end, "~~~ALL TESTS PASSED~~~\nEXITTHESIM\n"), 32);
  EXPECT_EQ(end.exitCode(), 0);
}

TEST(EndOfTest, OtherConventions) {
  EndOfTest never(false, "");
  EXPECT_EQ(endAfter(never, "Application exit code: 5.\n\x04\nEXITTHESIM\n"), -1);
  EXPECT_EQ(never.exitCode(), 5);
  EndOfTest tag(false, "BYE");
  EXPECT_EQ(endAfter(tag, "\x04\nGOODBYE\n"), 8);
}

TEST(EndOfTest, FailuresInTheLog) {
  EndOfTest test;
  EXPECT_EQ(endAfter(test, "Test_result: FAIL\n"), -1);
  EXPECT_EQ(test.exitCode(), 1);
  EndOfTest fault;
  EXPECT_EQ(endAfter(fault, "Hard fault. irq=-13, pc=0x10000000\n"), -1);
  EXPECT_EQ(fault.exitCode(), 1);
  // The exit code that the firmware prints takes precedence.
  EXPECT_NE(endAfter(test, "Application exit code: 0.\n\x04"), -1);
  EXPECT_EQ(test.exitCode(), 0);
}

TEST(EndOfTest, LongLinesAndNegativeCodes) {
  EndOfTest end;
  EXPECT_EQ(endAfter(end, std::string(1 << 20, 'x')), -1);
  EXPECT_EQ(endAfter(end, "\nApplication exit code: -1.\n"), -1);
  EXPECT_EQ(end.exitCode(), -1);
}

}  // namespace
}  // namespace carina::platform
