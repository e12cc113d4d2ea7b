// SPDX-License-Identifier: Apache-2.0
#include "platform/line_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace carina::platform {
namespace {

/// Bytes of a section, put together piece by piece.
class Section {
 public:
  Section& fixed(uint64_t value, size_t size) {
    for (size_t i = 0; i < size; ++i) bytes_.push_back(static_cast<std::byte>(value >> 8 * i));
    return *this;
  }
  Section& bytes(std::initializer_list<uint8_t> values) {
    for (const uint8_t value : values) fixed(value, 1);
    return *this;
  }
  Section& text(std::string_view value) {
    for (const char c : value) fixed(static_cast<uint8_t>(c), 1);
    return fixed(0, 1);
  }
  Section& append(const Section& other) {
    bytes_.insert(bytes_.end(), other.bytes_.begin(), other.bytes_.end());
    return *this;
  }
  size_t size() const { return bytes_.size(); }
  const std::vector<std::byte>& all() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

/// A unit whose instructions have 2 bytes. From 0x10000000: line 3 (4 bytes), line 5 (2 bytes), then the end.
Section unit(uint32_t version, const Section& names) {
  Section header;
  header.fixed(2, 1);                    // minimum instruction length
  if (version >= 4) header.fixed(1, 1);  // maximum operations per instruction
  header.bytes({1, 0xfb, 14, 13});       // default_is_stmt, line_base -5, line_range 14, opcode_base 13
  header.bytes({0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1});
  header.append(names);
  Section body;
  body.fixed(version, 2);
  if (version == 5) body.bytes({4, 0});
  body.fixed(header.size(), 4).append(header);
  Section code;
  code.bytes({0, 5, 2}).fixed(0x10000000, 4);  // address
  code.bytes({3, 2, 1});                       // advance 2 lines; a row
  code.bytes({2, 2, 3, 2, 1});                 // advance 2 instructions and 2 lines; a row
  code.bytes({2, 1, 0, 1, 1});                 // advance an instruction; the end
  body.append(code);
  return Section().fixed(body.size(), 4).append(body);
}

Section version4() {
  return unit(4, Section().text("src").fixed(0, 1).text("a.c").bytes({1, 0, 0}).fixed(0, 1));
}
Section version5() {
  Section names;
  names.bytes({1, 1, 0x1f, 2}).fixed(0, 4).fixed(6, 4);  // folders, as offsets into the strings: /home, src
  names.bytes({2, 1, 0x08, 2, 0x0b, 2}).text("a.c").fixed(1, 1).text("a.c").fixed(1, 1);
  return unit(5, names);
}
Section strings5() {
  return Section().text("/home").text("src");
}

void expectLines(const LineTable& table, const std::string& file) {
  ASSERT_EQ(table.ranges.size(), 2u);
  EXPECT_EQ(table.ranges[0].begin, 0x10000000u);
  EXPECT_EQ(table.ranges[0].end, 0x10000004u);
  EXPECT_EQ(table.ranges[0].line, 3u);
  EXPECT_EQ(table.ranges[1].end, 0x10000006u);
  EXPECT_EQ(table.ranges[1].line, 5u);
  EXPECT_EQ(table.files.at(table.ranges[0].file), file);
}

TEST(LineTable, Version4) {
  const Section lines = version4();
  const auto table = readLineTable({lines.all(), {}, {}});
  ASSERT_TRUE(table.ok()) << table.error().str();
  expectLines(*table, "src/a.c");
}

TEST(LineTable, Version5WithStringsInAnotherSection) {
  const Section lines = version5(), strings = strings5();
  const auto table = readLineTable({lines.all(), strings.all(), {}});
  ASSERT_TRUE(table.ok()) << table.error().str();
  expectLines(*table, "/home/src/a.c");
}

TEST(LineTable, DamagedOnesAreRefusedOrRead) {
  for (const Section& whole : {version4(), version5()}) {
    for (size_t size = 1; size < whole.size(); ++size) {
      const std::vector<std::byte> part(whole.all().begin(),
                                        whole.all().begin() + static_cast<std::ptrdiff_t>(size));
      EXPECT_FALSE(readLineTable({part, {}, {}}).ok()) << size;
    }
    for (size_t at = 0; at < whole.size(); ++at) {
      for (const uint8_t value : {0x00, 0x7f, 0x80, 0xff}) {
        std::vector<std::byte> bytes = whole.all();
        bytes[at] = static_cast<std::byte>(value);
        const auto table = readLineTable({bytes, {}, {}});
        if (!table.ok()) continue;
        for (const SourceRange& range : table->ranges) {
          EXPECT_LT(range.file, table->files.size());
          EXPECT_LT(range.begin, range.end);
        }
      }
    }
  }
}

TEST(LineTable, OtherVersionsAreNamed) {
  const Section lines = unit(6, Section());
  const auto table = readLineTable({lines.all(), {}, {}});
  ASSERT_FALSE(table.ok());
  EXPECT_THAT(table.error().str(), testing::HasSubstr("version 6"));
}

}  // namespace
}  // namespace carina::platform
