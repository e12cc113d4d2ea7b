// SPDX-License-Identifier: Apache-2.0
#include "platform/hex_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.hpp"

namespace carina::platform {
namespace {

using testing::HasSubstr;

TEST(HexFiles, AreReadAsRuns) {
  const auto runs =
      readHexFile(asBytes(":020000041000EA\r\n"
                          ":0400100001020304E2\n"
                          ":020014000506DF\n"
                          "\n"
                          ":01000000AA55\n"
                          ":020000021200EA\n"
                          ":01000100ffFF\n"
                          ":0400000510000425BE\n"
                          ":00000001FF\n"
                          "nobody reads what is behind the end\n"));
  ASSERT_TRUE(runs.ok()) << runs.error().str();
  ASSERT_EQ(runs->runs.size(), 3u);
  EXPECT_EQ(runs->runs[0].address, 0x10000010u);
  EXPECT_EQ(runs->runs[0].bytes.size(), 6u);
  EXPECT_EQ(runs->runs[1].address, 0x10000000u);
  EXPECT_EQ(runs->runs[2].address, 0x12001u);
  EXPECT_EQ(runs->entry, 0x10000425u);
  const ElfImage image = imageOf(*runs);
  EXPECT_EQ(image.entry, 0x10000425u);
  ASSERT_EQ(image.segments.size(), 3u);
  EXPECT_EQ(image.segments[0].bytes[5], std::byte{6});
}

TEST(HexFiles, DamagedOnesAreRefusedWithTheirLine) {
  const auto refused = [](const char* line, const char* why) {
    const auto file = readHexFile(asBytes(std::string(":020014000506DF\n") + line));
    ASSERT_FALSE(file.ok()) << line;
    EXPECT_THAT(file.error().str(), HasSubstr(why)) << line;
  };
  refused("x", "line 2");
  refused(":0", "length");
  refused(":00000001F", "length");
  refused(":0200140005DF", "does not have the length");
  refused(":020014000506DE", "checksum");
  refused(":02001400G506DF", "hexadecimal digit");
  refused(":00000006FA", "type");
  refused(":0100000410EB", "type");
  refused("", "no end record");
  EXPECT_TRUE(isHexFile(asBytes(":")));
  EXPECT_FALSE(
      isHexFile(asBytes("\x7f"
                        "ELF")));
  EXPECT_FALSE(isHexFile({}));
}

}  // namespace
}  // namespace carina::platform
