// SPDX-License-Identifier: Apache-2.0
#include "platform/board_events.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/require.hpp"

namespace carina::platform {
namespace {

using testing::HasSubstr;
using Kind = BoardEvent::Kind;

TEST(BoardEvents, AreRead) {
  const auto events =
      require(readBoardEvents("# what happens\n"
                              "\n"
                              "0.5 touch 100 4095  # a finger\r\n"
                              "0.5 release\n"
                              "  2\tgpio 3.15 1\n"
                              "3 button 1 0\n"
                              "3 switch 7 1\n"
                              "1000 signal 31 1"));
  ASSERT_EQ(events.size(), 6u);
  const auto& all = events;
  EXPECT_EQ(all[0].kind, Kind::Press);
  EXPECT_EQ(all[0].time, 12'500u);
  EXPECT_EQ(all[0].a, 100u);
  EXPECT_EQ(all[0].b, 4095u);
  EXPECT_EQ(all[1].kind, Kind::Release);
  EXPECT_EQ(all[2].kind, Kind::Pin);
  EXPECT_EQ(all[2].a, 63u);
  EXPECT_EQ(all[2].b, 1u);
  EXPECT_EQ(all[3].kind, Kind::Button);
  EXPECT_EQ(all[4].kind, Kind::Switch);
  EXPECT_EQ(all[5].kind, Kind::Signal);
  EXPECT_EQ(all[5].time, 25'000'000u);
}

TEST(BoardEvents, InvalidOnesAreRefusedWithTheirLine) {
  for (const char* line :
       {"touch 1 2", "1 touch 1", "1 touch 1 4096", "1 touch 1 2 3", "1 release 1", "1 gpio 4.0 1",
        "1 gpio 1 1", "1 gpio 1.16 0", "1 gpio 1.1 2", "1 button 8 1", "-1 release", "nan release",
        "1e13 release", "x release", "1", "1 dance", "1 touch a b"}) {
    const std::string error = errorOf(readBoardEvents(std::string("0 release\n") + line + "\n"));
    EXPECT_THAT(error, HasSubstr("line 2")) << line;
    EXPECT_THAT(error, HasSubstr("is not a board event")) << line;
  }
  EXPECT_THAT(errorOf(readBoardEvents("2 release\n1 release\n")), HasSubstr("before the line above"));
}

TEST(BoardEvents, FireAtTheirTimes) {
  std::vector<uint64_t> times;
  BoardEvents events(*readBoardEvents("1 release\n1 release\n2 release\n"),
                     [&](const BoardEvent& event) { times.push_back(event.time); });
  EXPECT_EQ(events.nextEvent(), 25'000u);
  events.advance(24'999);
  EXPECT_TRUE(times.empty());
  events.advance(25'000);
  EXPECT_EQ(times.size(), 2u);
  events.advance(1'000'000);
  EXPECT_EQ(times.size(), 3u);
  EXPECT_EQ(events.nextEvent(), kNever);
}

}  // namespace
}  // namespace carina::platform
