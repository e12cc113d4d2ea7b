// SPDX-License-Identifier: Apache-2.0
#include "delivery/compile_cache.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>
#include <fstream>

#include "base/file.hpp"
#include "delivery/build_identity.hpp"
#include "support/temp_dir.hpp"

namespace carina::delivery {
namespace {

pte::ByteVector bytesOf(std::string_view text) {
  const ByteSpan bytes = asBytes(text);
  return {bytes.begin(), bytes.end()};
}

std::filesystem::path onlyEntry(const std::filesystem::path& folder) {
  const std::filesystem::directory_iterator entries(folder);
  return begin(entries)->path();
}

TEST(CompileCache, FindsWhatWasStored) {
  const test::TempDir folder;
  const CompileCache cache(folder / "made" / "on demand");
  const std::string key = CompileCache::keyOf(asBytes("graph"), "settings");
  EXPECT_EQ(key.size(), 64u);
  EXPECT_FALSE(cache.find(key).blob);
  EXPECT_FALSE(cache.find(key).damaged);
  ASSERT_TRUE(cache.store(key, bytesOf("compiled")).ok());
  EXPECT_EQ(cache.find(key).blob, bytesOf("compiled"));
}

TEST(CompileCache, KeysDistinguishContentFromSettings) {
  const std::string key = CompileCache::keyOf(asBytes("ab"), "c");
  EXPECT_NE(key, CompileCache::keyOf(asBytes("a"), "bc"));
  EXPECT_NE(key, CompileCache::keyOf(asBytes("ab"), "d"));
  EXPECT_NE(key, CompileCache::keyOf(asBytes("c"), "ab"));
  EXPECT_EQ(key, CompileCache::keyOf(asBytes("ab"), "c"));
}

RC_GTEST_PROP(CompileCacheProperties, EveryChangeOfAnEntryIsDetected, ()) {
  const test::TempDir folder;
  const CompileCache cache(folder.path());
  const std::string key = CompileCache::keyOf(asBytes("graph"), "settings");
  const auto blob = *rc::gen::arbitrary<std::string>();
  RC_ASSERT(cache.store(key, asBytes(blob)).ok());
  const std::filesystem::path path = onlyEntry(folder.path());
  const auto size = static_cast<int>(std::filesystem::file_size(path));
  if (*rc::gen::arbitrary<bool>()) {
    std::filesystem::resize_file(path, static_cast<uintmax_t>(*rc::gen::inRange(0, size)));
  } else {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    const int at = *rc::gen::inRange(0, size);
    file.seekg(at);
    const int before = file.get();
    file.seekp(at);
    file.put(static_cast<char>(before ^ *rc::gen::inRange(1, 256)));
  }
  const CompileCache::Found found = cache.find(key);
  RC_ASSERT(!found.blob);
  RC_ASSERT(found.damaged);
}

TEST(CompileCache, RejectsAnEntryUnderAnotherName) {
  const test::TempDir folder;
  const CompileCache cache(folder.path());
  const std::string key = CompileCache::keyOf(asBytes("graph"), "settings");
  const std::string other = CompileCache::keyOf(asBytes("other graph"), "settings");
  ASSERT_TRUE(cache.store(key, bytesOf("compiled")).ok());
  const std::filesystem::path path = onlyEntry(folder.path());
  std::filesystem::rename(path, folder / (other + path.extension().string()));
  EXPECT_TRUE(cache.find(other).damaged);
}

TEST(CompileCache, EvictsTheLeastRecentlyUsedEntry) {
  const test::TempDir folder;
  const CompileCache cache(folder.path(), 3000);
  const auto store = [&](const std::string& name) {
    std::string key = CompileCache::keyOf(asBytes(name), "");
    EXPECT_TRUE(cache.store(key, pte::ByteVector(1000)).ok());
    return key;
  };
  const std::string first = store("first"), second = store("second");
  std::ofstream(folder / "somebody's file") << "stays";
  // A day old: file timestamps are coarse.
  const auto yesterday = std::filesystem::file_time_type::clock::now() - std::chrono::hours(24);
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    std::filesystem::last_write_time(entry.path(), yesterday);
  EXPECT_TRUE(cache.find(first).blob);  // makes it the more recently used one
  const std::string third = store("third");
  EXPECT_TRUE(cache.find(first).blob);
  EXPECT_FALSE(cache.find(second).blob);
  EXPECT_TRUE(cache.find(third).blob);
  EXPECT_TRUE(std::filesystem::exists(folder / "somebody's file"));
}

TEST(BuildIdentity, NamesVersionAndBuild) {
  const std::string& identity = buildIdentity();
  EXPECT_NE(identity.find('.'), std::string::npos);
  EXPECT_EQ(&identity, &buildIdentity());
#ifndef __clang__  // its linker writes no build ID by default
  EXPECT_GE(identity.size() - identity.find(' '), 41u) << identity;
#endif
}

}  // namespace
}  // namespace carina::delivery
