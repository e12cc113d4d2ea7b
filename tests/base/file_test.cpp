// SPDX-License-Identifier: Apache-2.0
#include "base/file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "support/fixtures.hpp"
#include "support/temp_dir.hpp"

namespace carina {
namespace {

namespace fs = std::filesystem;

std::string contentsOf(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

size_t entriesIn(const fs::path& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

/// Runs as an ordinary user for a while, so that permissions count even where tests run as root.
class Unprivileged {
 public:
  Unprivileged() : root_(::geteuid() == 0 && ::seteuid(65534) == 0) {}
  ~Unprivileged() {
    if (root_) {
      EXPECT_EQ(::seteuid(0), 0);
    }
  }
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;

 private:
  bool root_;
};

TEST(MappedFile, ReadsWhatWasWritten) {
  const test::TempDir folder;
  const std::string text = "first\nsecond\0third";
  ASSERT_TRUE(writeFile(folder / "a.bin", text).ok());
  const auto file = MappedFile::open(folder / "a.bin");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(asText((*file)->bytes()), text);
  EXPECT_EQ((*file)->path(), (folder / "a.bin").string());
}

TEST(MappedFile, EmptyFilesAreFine) {
  const test::TempDir folder;
  ASSERT_TRUE(writeFile(folder / "empty", "").ok());
  const auto file = MappedFile::open(folder / "empty");
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE((*file)->bytes().empty());
}

TEST(MappedFile, ErrorsNameFileAndReason) {
  const test::TempDir folder;
  const auto missing = MappedFile::open(folder / "missing.pt2");
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().str().find("missing.pt2: cannot open: No such file"), std::string::npos);
  const auto directory = MappedFile::open(folder.path());
  ASSERT_FALSE(directory.ok());
  EXPECT_NE(directory.error().str().find("is a folder"), std::string::npos);
  EXPECT_FALSE(MappedFile::open("/dev/null").ok());
}

TEST(MappedFile, UnreadableFilesAreRefused) {
  const test::TempDir folder;
  ASSERT_TRUE(writeFile(folder / "secret", "x").ok());
  fs::permissions(folder.path(), fs::perms::all);
  fs::permissions(folder / "secret", fs::perms::none);
  const Unprivileged user;
  const auto file = MappedFile::open(folder / "secret");
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.error().str().find("Permission denied"), std::string::npos);
}

TEST(OutputFiles, NothingAppearsBeforeCommit) {
  const test::TempDir folder;
  {
    OutputFiles files;
    ASSERT_TRUE(files.add(folder / "a.txt", "a").ok());
    ASSERT_TRUE(files.add(folder / "b.txt", "b").ok());
    EXPECT_FALSE(fs::exists(folder / "a.txt"));
    ASSERT_TRUE(files.commit().ok());
  }
  EXPECT_EQ(contentsOf(folder / "a.txt"), "a");
  EXPECT_EQ(contentsOf(folder / "b.txt"), "b");
  EXPECT_EQ(entriesIn(folder.path()), 2u);
}

TEST(OutputFiles, WithoutCommitNothingRemains) {
  const test::TempDir folder;
  ASSERT_TRUE(writeFile(folder / "kept.txt", "old").ok());
  {
    OutputFiles files;
    ASSERT_TRUE(files.add(folder / "kept.txt", "new").ok());
    ASSERT_TRUE(files.add(folder / "new.txt", "new").ok());
  }
  EXPECT_EQ(contentsOf(folder / "kept.txt"), "old");
  EXPECT_EQ(entriesIn(folder.path()), 1u);
}

TEST(OutputFiles, ExistingFilesAreReplaced) {
  const test::TempDir folder;
  ASSERT_TRUE(writeFile(folder / "a.txt", "a long text").ok());
  ASSERT_TRUE(writeFile(folder / "a.txt", "short").ok());
  EXPECT_EQ(contentsOf(folder / "a.txt"), "short");
}

TEST(OutputFiles, AMappedFileSurvivesItsReplacement) {
  const test::TempDir folder;
  ASSERT_TRUE(writeFile(folder / "a.txt", "old").ok());
  const auto file = MappedFile::open(folder / "a.txt");
  ASSERT_TRUE(writeFile(folder / "a.txt", "new contents").ok());
  EXPECT_EQ(asText((*file)->bytes()), "old");
}

TEST(OutputFiles, LinksAreFollowed) {
  const test::TempDir folder;
  ASSERT_TRUE(writeFile(folder / "real.txt", "old").ok());
  fs::create_symlink("real.txt", folder / "link.txt");
  ASSERT_TRUE(writeFile(folder / "link.txt", "new").ok());
  EXPECT_TRUE(fs::is_symlink(folder / "link.txt"));
  EXPECT_EQ(contentsOf(folder / "real.txt"), "new");
}

TEST(OutputFiles, MissingFoldersAreErrorsUnlessWanted) {
  const test::TempDir folder;
  const auto status = writeFile(folder.path() / "no" / "such" / "a.txt", "a");
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().str().find("does not exist"), std::string::npos);
  OutputFiles files;
  ASSERT_TRUE(files.add(folder.path() / "x" / "y" / "a.txt", "a", true).ok());
  ASSERT_TRUE(files.commit().ok());
  EXPECT_EQ(contentsOf(folder.path() / "x" / "y" / "a.txt"), "a");
}

TEST(OutputFiles, ReadOnlyFoldersAreErrors) {
  const test::TempDir folder;
  fs::permissions(folder.path(), fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_read |
                                     fs::perms::others_exec);
  {
    const Unprivileged user;
    const auto status = writeFile(folder / "a.txt", "a");
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().str().find("cannot write into"), std::string::npos);
    EXPECT_NE(status.error().str().find("Permission denied"), std::string::npos);
  }
  EXPECT_EQ(entriesIn(folder.path()), 0u);
  fs::permissions(folder.path(), fs::perms::owner_all);
}

TEST(OutputFiles, DirectoriesAreNotReplaced) {
  const test::TempDir folder;
  fs::create_directory(folder / "sub");
  EXPECT_FALSE(writeFile(folder / "sub", "a").ok());
  EXPECT_FALSE(writeFile(folder.path() / "", "a").ok());
  EXPECT_TRUE(fs::is_directory(folder / "sub"));
}

TEST(OutputFiles, DevicesAreWrittenInPlace) {
  ASSERT_TRUE(writeFile("/dev/null", "gone").ok());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST(FixturesDir, ComesFromTheEnvironment) {
  const test::TempDir folder;
  const char* before = std::getenv("CARINA_FIXTURES");
  const std::string kept = before ? before : "";
  ::setenv("CARINA_FIXTURES", folder.path().c_str(), 1);
  EXPECT_EQ(test::fixturesDir(), folder.path());
  ::setenv("CARINA_FIXTURES", (folder / "missing").c_str(), 1);
  EXPECT_EQ(test::fixturesDir(), std::nullopt);
  before ? ::setenv("CARINA_FIXTURES", kept.c_str(), 1) : ::unsetenv("CARINA_FIXTURES");
}

}  // namespace
}  // namespace carina
