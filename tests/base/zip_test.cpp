// SPDX-License-Identifier: Apache-2.0
#include "base/zip.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <zlib.h>

#include <set>

#include "base/file.hpp"
#include "support/require.hpp"

namespace carina {
namespace {

using Members = std::vector<std::pair<std::string, std::string>>;

Result<ZipArchive> open(const std::string& text) {
  return ZipArchive::open(asBytes(text), nullptr);
}

std::string readText(const ZipArchive& archive, const std::string& name) {
  const auto contents = archive.read(*archive.find(name));
  return contents.ok() ? std::string(asText(contents->bytes)) : "error: " + contents.error().message();
}

std::string errorOf(const std::string& text) {
  const auto archive = open(text);
  if (!archive.ok()) return archive.error().str();
  for (const auto& member : archive->members()) {
    if (const auto contents = archive->read(member); !contents.ok()) return contents.error().str();
  }
  return "";
}

void put(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>((value >> (8 * i)) & 0xffu);
}

struct RawMember {
  std::string name, data;
  uint32_t method = 0, crc = 0;
  uint64_t size = 0;
  uint16_t flags = 0;
};

/// An archive as other programs write it: sizes only in the directory, data descriptors, any method.
std::string streamedArchive(const std::vector<RawMember>& members) {
  std::string out, directory;
  for (const RawMember& m : members) {
    const uint64_t offset = out.size();
    put(out, 0x04034b50, 4);
    put(out, 20, 2);
    put(out, m.flags | 8u, 2);
    put(out, m.method, 2);
    for (int i = 0; i < 4; ++i) put(out, 0, 4);  // time zero; the checksum and both sizes follow the data
    put(out, m.name.size(), 2);
    put(out, 0, 2);
    out += m.name + m.data;
    put(out, 0x08074b50, 4);
    put(out, m.crc, 4);
    put(out, m.data.size(), 4);
    put(out, m.size, 4);
    put(directory, 0x02014b50, 4);
    put(directory, 20, 2);
    put(directory, 20, 2);
    put(directory, m.flags | 8u, 2);
    put(directory, m.method, 2);
    put(directory, 0, 4);
    put(directory, m.crc, 4);
    put(directory, m.data.size(), 4);
    put(directory, m.size, 4);
    put(directory, m.name.size(), 2);
    put(directory, 0, 6);
    put(directory, 0, 6);
    put(directory, offset, 4);
    directory += m.name;
  }
  const uint64_t at = out.size();
  out += directory;
  put(out, 0x06054b50, 4);
  put(out, 0, 4);
  put(out, members.size(), 2);
  put(out, members.size(), 2);
  put(out, directory.size(), 4);
  put(out, at, 4);
  put(out, 0, 2);
  return out;
}

uint32_t crcOf(const std::string& text) {
  return static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(text.data()), text.size()));
}

std::string deflated(const std::string& text) {
  std::string out(text.size() + 1000, '\0');
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

RawMember stored(const std::string& name, const std::string& text) {
  return {name, text, 0, crcOf(text), text.size(), 0};
}

TEST(Zip, ReadsWhatItWrites) {
  const Members members{{"a/one.txt", "first"}, {"empty", ""}, {"two", std::string(1000, 'x')}};
  const std::string text = writeZip(members);
  const auto archive = require(open(text));
  ASSERT_EQ(archive.members().size(), 3u);
  for (size_t i = 0; i < members.size(); ++i) {
    EXPECT_EQ(archive.members()[i].name, members[i].first);
    EXPECT_EQ(readText(archive, members[i].first), members[i].second);
    EXPECT_TRUE(archive.members()[i].stored);
  }
  EXPECT_EQ(archive.find("three"), nullptr);
}

RC_GTEST_PROP(Zip, ContentsRoundTripAndAreAligned, (const std::vector<std::string>& contents)) {
  Members members;
  for (size_t i = 0; i < contents.size(); ++i) members.emplace_back(std::string(i + 1, 'm'), contents[i]);
  const size_t alignment = *rc::gen::element<size_t>(1, 16, 64, 4096);
  const std::string text = writeZip(members, alignment);
  const auto archive = require(open(text));
  RC_ASSERT(archive.members().size() == members.size());
  for (size_t i = 0; i < members.size(); ++i) {
    const auto& member = archive.members()[i];
    RC_ASSERT(readText(archive, member.name) == contents[i]);
    RC_ASSERT(contents[i].empty() || member.dataOffset % alignment == 0);
  }
}

TEST(Zip, AnEmptyArchiveHasNoMembers) {
  const auto archive = require(open(writeZip({})));
  EXPECT_TRUE(archive.members().empty());
}

TEST(Zip, HoldsMoreMembersThan16BitsCount) {
  Members members;
  for (int i = 0; i < 66000; ++i) members.emplace_back(std::to_string(i), i % 1000 == 0 ? "data" : "");
  const std::string text = writeZip(members);
  const auto archive = require(open(text));
  EXPECT_EQ(archive.members().size(), members.size());
  EXPECT_EQ(readText(archive, "65000"), "data");
}

TEST(Zip, SizesComeFromTheDirectory) {
  const std::string text = streamedArchive({stored("a", "hello"), stored("b", "world!")});
  const auto archive = require(open(text));
  EXPECT_EQ(readText(archive, "a"), "hello");
  EXPECT_EQ(readText(archive, "b"), "world!");
}

TEST(Zip, StoredMembersAreViews) {
  const std::string text = writeZip(Members{{"a", "hello"}});
  const auto archive = open(text);
  const auto contents = require(archive->read(archive->members()[0]));
  EXPECT_GE(reinterpret_cast<const char*>(contents.bytes.data()), text.data());
  EXPECT_LT(reinterpret_cast<const char*>(contents.bytes.data()), text.data() + text.size());
}

TEST(Zip, DeflatedMembersAreInflated) {
  std::string plain;
  for (int i = 0; i < 5000; ++i) plain += std::to_string(i * i % 97);
  const std::string packed = deflated(plain);
  const std::string text = streamedArchive({{"a", packed, 8, crcOf(plain), plain.size(), 0}});
  const auto archive = require(open(text));
  EXPECT_FALSE(archive.members()[0].stored);
  EXPECT_EQ(readText(archive, "a"), plain);
}

/// An archive of one stored member whose sizes and offset are in Zip64 fields, after `prefix`.
std::string zip64Archive(const std::string& name, const std::string& data, uint64_t claimed,
                         const std::string& prefix) {
  constexpr uint64_t kMax32 = 0xffffffffu;
  std::string local, directory, end;
  put(local, 0x04034b50, 4);
  put(local, 45, 2);
  put(local, 0, 4);  // flags, method
  put(local, 0, 4);  // time
  put(local, crcOf(data), 4);
  put(local, kMax32, 4);
  put(local, kMax32, 4);
  put(local, name.size(), 2);
  put(local, 20, 2);
  local += name;
  put(local, 1, 2);
  put(local, 16, 2);
  put(local, claimed, 8);
  put(local, claimed, 8);
  local += data;
  put(directory, 0x02014b50, 4);
  put(directory, 45, 2);
  put(directory, 45, 2);
  put(directory, 0, 4);
  put(directory, 0, 4);
  put(directory, crcOf(data), 4);
  put(directory, kMax32, 4);
  put(directory, kMax32, 4);
  put(directory, name.size(), 2);
  put(directory, 4 + 3 + 28, 2);
  put(directory, 0, 2);
  put(directory, 0, 2);
  put(directory, 0, 6);
  put(directory, kMax32, 4);
  directory += name;
  put(directory, 0x4246, 2);  // a meaningless field comes first
  put(directory, 3, 2);
  directory += "ZZZ";
  put(directory, 1, 2);
  put(directory, 24, 2);
  put(directory, claimed, 8);
  put(directory, claimed, 8);
  put(directory, 0, 8);
  put(end, 0x06054b50, 4);
  put(end, 0, 4);
  put(end, 1, 2);
  put(end, 1, 2);
  put(end, directory.size(), 4);
  put(end, local.size(), 4);
  put(end, 0, 2);
  return prefix + local + directory + end;
}

TEST(Zip, SizesAndOffsetsComeFromZip64Fields) {
  for (const std::string prefix : {"", "#!/bin/sh\n"}) {
    const std::string text = zip64Archive("a", "hello", 5, prefix);
    const auto archive = require(open(text));
    EXPECT_EQ(readText(archive, "a"), "hello");
  }
  for (const uint64_t claim : {uint64_t{1} << 33, ~uint64_t{0}, ~uint64_t{0} - 40}) {
    EXPECT_NE(errorOf(zip64Archive("a", "hello", claim, "")).find("reaches beyond the end"),
              std::string::npos)
        << claim;
  }
}

TEST(Zip, InflationIsBounded) {
  const std::string zeros(1 << 20, '\0');
  const std::string packed = deflated(zeros);
  std::vector<RawMember> members;
  for (const char* name : {"0", "1", "2"})
    members.push_back({name, packed, 8, crcOf(zeros), zeros.size(), 0});
  const std::string text = streamedArchive(members);
  const auto archive =
      require(ZipArchive::open(asBytes(text), nullptr, std::make_shared<Budget>(zeros.size() * 2)));
  EXPECT_TRUE(archive.read(archive.members()[0]).ok());
  EXPECT_TRUE(archive.read(archive.members()[1]).ok());
  const std::string third = errorOf(archive.read(archive.members()[2]));
  EXPECT_NE(third.find("inflates to 1048576 bytes"), std::string::npos) << third;
  EXPECT_TRUE(open(text)->read(open(text)->members()[2]).ok());
}

TEST(Zip, InconsistentArchivesAreRefused) {
  const std::string plain(3000, 'y');
  const std::string packed = deflated(plain);
  RawMember encrypted = stored("a", "hello");
  encrypted.flags = 1;
  RawMember wrongCrc = stored("a", "hello");
  wrongCrc.crc ^= 1;
  RawMember twoSizes = stored("a", "hello");
  twoSizes.size = 6;
  const std::pair<std::string, std::string> cases[] = {
      {"plain text, no archive at all", "not a zip archive"},
      {"", "not a zip archive"},
      {streamedArchive({stored("a", "1"), stored("a", "2")}), "two members named 'a'"},
      {streamedArchive({encrypted}), "encrypted"},
      {streamedArchive({wrongCrc}), "damaged: its checksum"},
      {streamedArchive({twoSizes}), "two sizes, 6 and 5"},
      {streamedArchive({{"a", "hello", 12, 0, 5, 0}}), "compression method 12"},
      {streamedArchive({{"a", packed, 8, crcOf(plain), plain.size() + 1, 0}}),
       "compressed bytes are damaged"},
      {streamedArchive({{"a", packed, 8, crcOf(plain), plain.size() - 1, 0}}),
       "compressed bytes are damaged"},
      {streamedArchive({{"a", packed.substr(0, packed.size() / 2), 8, crcOf(plain), plain.size(), 0}}),
       "damaged"},
      {streamedArchive({{"a", packed, 8, crcOf(plain), 4000000000u, 0}}), "more than its"},
      {streamedArchive({stored(std::string("a\0b", 3), "1")}), "impossible name"},
  };
  for (const auto& [text, reason] : cases) {
    EXPECT_NE(errorOf(text).find(reason), std::string::npos) << reason << " / " << errorOf(text);
  }
}

TEST(Zip, OverlappingMembersAreRefused) {
  // Both directory entries of this archive point at the first member.
  std::string text = streamedArchive({stored("a", "hello"), stored("b", "hello")});
  const size_t second = text.rfind(std::string("\x50\x4b\x01\x02", 4));
  const size_t localName = text.find('b', 0);
  text.replace(second + 42, 4, std::string(4, '\0'));
  text[localName] = 'a';
  EXPECT_NE(errorOf(text).find("overlap"), std::string::npos) << errorOf(text);
}

TEST(Zip, EveryTruncationIsRefused) {
  const std::string text = writeZip(Members{{"a", "hello"}, {"b", "world"}});
  for (size_t n = 0; n < text.size(); ++n) EXPECT_NE(errorOf(text.substr(0, n)), "") << n;
}

TEST(Zip, FlippedBytesNeverGiveWrongContents) {
  const Members members{{"a", "hello"}, {"b", std::string(100, 'z')}};
  const std::string text = writeZip(members);
  for (size_t at = 0; at < text.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::string damaged = text;
      damaged[at] = static_cast<char>(static_cast<unsigned char>(damaged[at]) ^ (1u << bit));
      const auto archive = open(damaged);
      if (!archive.ok()) continue;
      for (const auto& [name, contents] : members) {
        const auto* member = archive->find(name);
        if (!member) continue;
        const auto read = archive->read(*member);
        if (!read.ok()) continue;
        ASSERT_EQ(asText(read->bytes), contents) << "bit " << bit << " of byte " << at;
      }
    }
  }
}

}  // namespace
}  // namespace carina
