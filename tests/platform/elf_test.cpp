// SPDX-License-Identifier: Apache-2.0
// Reading executables with arbitrary contents.
#include "platform/elf.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/file.hpp"
#include "platform/image_note.hpp"
#include "platform/loader.hpp"
#include "support/require.hpp"

namespace carina::platform {
namespace {

using testing::HasSubstr;

void put16(std::string& bytes, size_t at, uint32_t value) {
  for (int i = 0; i < 2; ++i) bytes[at + static_cast<size_t>(i)] = static_cast<char>(value >> 8 * i);
}
void put32(std::string& bytes, size_t at, uint32_t value) {
  for (int i = 0; i < 4; ++i) bytes[at + static_cast<size_t>(i)] = static_cast<char>(value >> 8 * i);
}

constexpr size_t kSegment = 52, kSections = 84, kNames = 164, kCode = 200, kAttributes = 216;

/// One segment of 16 bytes (a vector table and code) at 0x10000000, two sections.
std::string smallElf(const std::string& attributes = "") {
  std::string file(kAttributes, '\0');
  file.replace(0, 7, std::string("\177ELF\1\1\1", 7));
  put16(file, 16, 2);
  put16(file, 18, 40);
  put32(file, 24, 0x10000009);
  put32(file, 28, kSegment);
  put16(file, 42, 32);
  put16(file, 44, 1);
  put32(file, kSegment, 1);
  put32(file, kSegment + 4, kCode);
  put32(file, kSegment + 8, 0x10000000);
  put32(file, kSegment + 12, 0x10000000);
  put32(file, kSegment + 16, 16);
  put32(file, kSegment + 20, 16);
  put32(file, kCode, 0x30000100);
  put32(file, kCode + 4, 0x10000009);
  put32(file, kCode + 8, 0xe7fee7fe);
  // Section headers: the names, and the attributes.
  put32(file, 32, kSections);
  put16(file, 46, 40);
  put16(file, 48, 2);
  put16(file, 50, 0);
  put32(file, kSections + 4, 3);
  put32(file, kSections + 16, kNames);
  put32(file, kSections + 20, 10);
  file.replace(kNames + 1, 8, ".vectors");
  put32(file, kSections + 40 + 4, 0x70000003);
  put32(file, kSections + 40 + 16, kAttributes);
  put32(file, kSections + 40 + 20, static_cast<uint32_t>(attributes.size()));
  return file + attributes;
}

/// Build attributes with these tag and value bytes.
std::string attributes(const std::string& tags) {
  std::string part = "\1" + std::string(4, '\0') + tags;
  put32(part, 1, static_cast<uint32_t>(part.size()));
  std::string vendor = std::string(4, '\0') + std::string("aeabi\0", 6) + part;
  put32(vendor, 0, static_cast<uint32_t>(vendor.size()));
  return "A" + vendor;
}

std::string errorOf(const std::string& file) {
  return errorOf(readElf(asBytes(file)));
}

TEST(Elf, Small) {
  const std::string file = smallElf();
  const auto image = require(readElf(asBytes(file)));
  EXPECT_EQ(image.entry, 0x10000009u);
  ASSERT_EQ(image.segments.size(), 1u);
  EXPECT_EQ(image.segments[0].address, 0x10000000u);
  EXPECT_EQ(image.segments[0].bytes.size(), 16u);
  EXPECT_EQ(image.attributes.cpuArch, std::nullopt);
}

TEST(Elf, LoadsAndFindsItsVectors) {
  const std::string file = smallElf();
  const auto image = readElf(asBytes(file));
  auto bus = require(Bus::create(**findBoard("corstone-300")));
  ASSERT_TRUE(loadImage(*image, bus).ok());
  EXPECT_EQ(bus.load32(0x00000004), 0x10000009u);  // through the other alias
  EXPECT_EQ(*findVectorTable(*image, **findBoard("corstone-300"), bus, {}), 0x10000000u);
  EXPECT_EQ(*findVectorTable(*image, **findBoard("corstone-320"), bus, {}), 0x10000000u);
  EXPECT_FALSE(findVectorTable(*image, **findBoard("corstone-300"), bus, 0x31000000).ok());
}

TEST(Elf, NoMemoryAtTheAddress) {
  std::string file = smallElf();
  put32(file, kSegment + 12, 0x1007fff8);  // beyond the end of ITCM
  const auto image = readElf(asBytes(file));
  auto bus = Bus::create(**findBoard("corstone-300"));
  EXPECT_THAT(errorOf(loadImage(*image, *bus)), HasSubstr("16 bytes at 0x1007fff8"));
}

TEST(Elf, Malformed) {
  EXPECT_THAT(errorOf(""), HasSubstr("not an ELF file"));
  EXPECT_THAT(errorOf("\177ELF"), HasSubstr("cut off"));
  std::string file = smallElf();
  file[4] = 2;
  EXPECT_THAT(errorOf(file), HasSubstr("32-bit"));
  file = smallElf();
  put16(file, 18, 62);
  EXPECT_THAT(errorOf(file), HasSubstr("Arm"));
  file = smallElf();
  put16(file, 16, 1);
  EXPECT_THAT(errorOf(file), HasSubstr("not an executable"));
  file = smallElf();
  put16(file, 44, 0);
  EXPECT_THAT(errorOf(file), HasSubstr("no program headers"));
  file = smallElf();
  put32(file, 28, 0xfffffff0);
  EXPECT_THAT(errorOf(file), HasSubstr("outside the file"));
  file = smallElf();
  put32(file, kSegment + 16, 0xffffffff);
  EXPECT_THAT(errorOf(file), HasSubstr("segment 0"));
  file = smallElf();
  put32(file, kSegment + 12, 0xfffffff8);
  EXPECT_THAT(errorOf(file), HasSubstr("end of the address space"));
}

TEST(Elf, SectionsThatShareASymbolTableAreReadOnce) {
  std::string file = smallElf();
  const size_t table = file.size(), names = table + 16, sections = names + 16;
  file.resize(sections + 40 * 1000);
  put32(file, table, 1);
  put32(file, table + 4, 0x10000008);
  file[table + 12] = 2;
  file.replace(names + 1, 4, "main");
  put32(file, 32, static_cast<uint32_t>(sections));
  put16(file, 48, 1000);
  for (size_t i = 0; i < 1000; ++i) {  // section 1 holds the names, all others are symbol tables
    const size_t at = sections + 40 * i;
    put32(file, at + 4, i == 1 ? 3 : 2);
    put32(file, at + 16, static_cast<uint32_t>(i == 1 ? names : table));
    put32(file, at + 20, 16);
    put32(file, at + 24, 1);
  }
  const auto image = require(readElf(asBytes(file)));
  ASSERT_EQ(image.functions.size(), 1u);
  EXPECT_EQ(image.functions[0].name, "main");
}

TEST(Elf, BuildAttributes) {
  const std::string file = smallElf(attributes(std::string("\5cortex-m55\0\6\25\7M\12\6\33\0\60\2", 22)));
  const auto image = require(readElf(asBytes(file)));
  EXPECT_EQ(image.attributes.cpuName, "cortex-m55");
  EXPECT_EQ(image.attributes.cpuArch, 21u);
  EXPECT_EQ(image.attributes.profile, uint32_t{'M'});
  EXPECT_EQ(image.attributes.fpArch, 6u);
  EXPECT_EQ(image.attributes.mveArch, 2u);
}

TEST(Elf, NoteOfCarinaFirmware) {
  // The second section becomes the note.
  std::string note = std::string("\7\0\0\0\0\0\0\0\1\0\0\0Carina\0\0", 20);
  const std::string texts("corstone-300\0cortex-m33\0ethos-u55-128\0\0\0", 40);
  put32(note, 4, static_cast<uint32_t>(texts.size()));
  std::string file = smallElf(note + texts);
  put32(file, kSections + 40, 1);
  put32(file, kSections + 40 + 4, 7);
  file.replace(kNames + 1, 12, ".note.carina");
  put32(file, kSections + 20, 14);
  const auto read = readImageNote(asBytes(file));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->platform, "corstone-300");
  EXPECT_EQ(read->target, "ethos-u55-128");
  EXPECT_EQ(read->memoryMode, "");
  put32(file, kAttributes + 4, 1000);  // longer than the section
  EXPECT_FALSE(readImageNote(asBytes(file)));
}

TEST(Elf, AcceptsOnlyWhatTheCoreCanRun) {
  const auto refusal = [](const ArmAttributes& attributes) { return errorOf(checkForCortexM(attributes)); };
  ArmAttributes attributes;
  EXPECT_EQ(refusal(attributes), "");
  attributes.cpuArch = 21;
  attributes.profile = 'M';
  attributes.fpArch = 8;
  attributes.hardFpUse = 0;
  attributes.mveArch = 2;
  EXPECT_EQ(refusal(attributes), "");
  attributes.cpuArch = 14;
  attributes.profile = 'A';
  EXPECT_THAT(refusal(attributes), HasSubstr("Tag_CPU_arch 14"));
  EXPECT_THAT(refusal(attributes), HasSubstr("-mcpu=cortex-m33"));
  attributes.cpuArch = 22;  // Armv9-A
  attributes.profile.reset();
  EXPECT_NE(refusal(attributes), "");
}

RC_GTEST_PROP(Elf, DamagedFilesAreReadOrRefused, ()) {
  std::string file = smallElf(attributes(std::string("\5cortex-m33\0\6\21\7M", 16)));
  const int changes = *rc::gen::inRange(1, 6);
  for (int i = 0; i < changes; ++i) {
    const auto at = *rc::gen::inRange<size_t>(4, file.size());
    file[at] = static_cast<char>(*rc::gen::inRange(0, 256));
  }
  file.resize(*rc::gen::inRange<size_t>(file.size() / 2, file.size() + 1));
  const auto image = readElf(asBytes(file));
  if (!image.ok()) return;
  for (const ElfSegment& segment : image->segments) {
    RC_ASSERT(uint64_t{segment.offset} + segment.bytes.size() <= file.size());
    RC_ASSERT(uint64_t{segment.address} + segment.bytes.size() <= uint64_t{1} << 32);
  }
}

}  // namespace
}  // namespace carina::platform
