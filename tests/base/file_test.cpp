// SPDX-License-Identifier: Apache-2.0
#include "base/file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "base/idle_memory.hpp"
#include "support/contents.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"
#include "support/temp_dir.hpp"

namespace carina {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPage = 4096;

size_t entriesIn(const fs::path& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

/// Drops root privileges while it exists, so that permissions apply even if the tests run as root.
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
  const std::string text("first\nsecond\0third", 18);
  ASSERT_TRUE(writeFile(folder / "a.bin", text).ok());
  const auto file = require(MappedFile::open(folder / "a.bin"));
  EXPECT_EQ(asText(file->bytes()), text);
  EXPECT_EQ(file->path(), (folder / "a.bin").string());
}

TEST(MappedFile, OpensEmptyFiles) {
  const test::TempDir folder;
  ASSERT_TRUE(writeFile(folder / "empty", "").ok());
  const auto file = require(MappedFile::open(folder / "empty"));
  EXPECT_TRUE(file->bytes().empty());
}

TEST(MappedFile, ErrorsNameFileAndReason) {
  const test::TempDir folder;
  const auto missing = MappedFile::open(folder / "missing.pt2");
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().str().find("missing.pt2: cannot open: No such file"), std::string::npos);
  EXPECT_NE(errorOf(MappedFile::open(folder.path())).find("is a folder"), std::string::npos);
  EXPECT_FALSE(MappedFile::open("/dev/null").ok());
}

TEST(MappedFile, CopiedFilesSurviveTruncation) {
  const test::TempDir folder;
  const std::string text(100000, 'x');
  ASSERT_TRUE(writeFile(folder / "a.bin", text).ok());
  const auto file = require(MappedFile::open(folder / "a.bin"));
  ASSERT_EQ(::truncate((folder / "a.bin").c_str(), 0), 0);
  EXPECT_EQ(asText(file->bytes()), text);
}

/// Resident bytes of mapped files.
size_t residentFileBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssFile:")) return std::stoul(line.substr(line.find(':') + 1)) * 1024;
  }
  return 0;
}

TEST(MappedFile, ReleasedPagesAreReadAgainOnAccess) {
  const test::TempDir folder;
  const fs::path path = folder / "large.bin";
  std::ofstream(path) << "first";
  fs::resize_file(path, MappedFile::kCopiedBytes + 1);  // sparse
  {
    const auto file = require(MappedFile::open(path));
    const auto sum = [&] {
      size_t all = 0;
      for (size_t i = 0; i < file->bytes().size(); i += kPage) all += static_cast<size_t>(file->bytes()[i]);
      return all;
    };
    EXPECT_EQ(sum(), 'f');
    const size_t before = residentFileBytes();
    ASSERT_GE(before, MappedFile::kCopiedBytes);
    giveBackIdleMemory();
    EXPECT_LE(residentFileBytes() + MappedFile::kCopiedBytes / 2, before);
    EXPECT_EQ(sum(), 'f');
  }
  giveBackIdleMemory();  // nothing is mapped
}

TEST(MappedFileDeathTest, TruncatingAMappedFileEndsTheProcessWithAMessage) {
  const test::TempDir folder;
  const fs::path path = folder / "large.bin";
  std::ofstream(path) << 'x';
  fs::resize_file(path, MappedFile::kCopiedBytes + 1);  // sparse
  EXPECT_EXIT(
      {
        installSignalHandlers();
        const auto file = MappedFile::open(path);
        fs::resize_file(path, 0);
        std::exit(file.ok() ? static_cast<int>((*file)->bytes()[kPage]) : 3);
      },
      testing::ExitedWithCode(1), "large.bin: became shorter");
}

TEST(MappedFile, UnreadableFilesAreRefused) {
  const test::TempDir folder;
  ASSERT_TRUE(writeFile(folder / "secret", "x").ok());
  fs::permissions(folder.path(), fs::perms::all);
  fs::permissions(folder / "secret", fs::perms::none);
  const Unprivileged user;
  EXPECT_NE(errorOf(MappedFile::open(folder / "secret")).find("Permission denied"), std::string::npos);
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
  EXPECT_EQ(test::contentsOf(folder / "a.txt"), "a");
  EXPECT_EQ(test::contentsOf(folder / "b.txt"), "b");
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
  EXPECT_EQ(test::contentsOf(folder / "kept.txt"), "old");
  EXPECT_EQ(entriesIn(folder.path()), 1u);
}

TEST(OutputFiles, ExistingFilesAreReplaced) {
  const test::TempDir folder;
  ASSERT_TRUE(writeFile(folder / "a.txt", "a long text").ok());
  ASSERT_TRUE(writeFile(folder / "a.txt", "short").ok());
  EXPECT_EQ(test::contentsOf(folder / "a.txt"), "short");
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
  EXPECT_EQ(test::contentsOf(folder / "real.txt"), "new");
}

TEST(OutputFiles, MissingFoldersAreErrorsUnlessCreationIsRequested) {
  const test::TempDir folder;
  EXPECT_NE(errorOf(writeFile(folder.path() / "no" / "such" / "a.txt", "a")).find("does not exist"),
            std::string::npos);
  OutputFiles files;
  ASSERT_TRUE(files.add(folder.path() / "x" / "y" / "a.txt", "a", true).ok());
  ASSERT_TRUE(files.commit().ok());
  EXPECT_EQ(test::contentsOf(folder.path() / "x" / "y" / "a.txt"), "a");
}

TEST(OutputFiles, ReadOnlyFoldersAreErrors) {
  const test::TempDir folder;
  fs::permissions(folder.path(), fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_read |
                                     fs::perms::others_exec);
  {
    const Unprivileged user;
    const std::string error = errorOf(writeFile(folder / "a.txt", "a"));
    EXPECT_NE(error.find("cannot write into"), std::string::npos);
    EXPECT_NE(error.find("Permission denied"), std::string::npos);
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
  EXPECT_EQ(errorOf(writeFile("/dev/full", "no room")), "/dev/full: cannot write: No space left on device");
}

TEST(OutputFiles, PipesAreWrittenInPlace) {
  const test::TempDir folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const int reader = ::open((folder / "pipe").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_TRUE(writeFile(folder / "pipe", "through").ok());
  char text[16];
  EXPECT_EQ(::read(reader, text, sizeof(text)), 7);
  ::close(reader);
  EXPECT_TRUE(fs::is_fifo(folder / "pipe"));
  EXPECT_EQ(entriesIn(folder.path()), 1u);
}

TEST(OutputFiles, AFailedWriteInPlaceLeavesOtherOutputsUnchanged) {
  const test::TempDir folder;
  ASSERT_TRUE(writeFile(folder / "kept.txt", "old").ok());
  {
    OutputFiles files;
    ASSERT_TRUE(files.add(folder / "kept.txt", "new").ok());
    ASSERT_TRUE(files.add("/dev/full", "no room").ok());
    EXPECT_FALSE(files.commit().ok());
  }
  EXPECT_EQ(test::contentsOf(folder / "kept.txt"), "old");
  EXPECT_EQ(entriesIn(folder.path()), 1u);
}

TEST(OutputFiles, AFileThatIsStandardOutputIsWrittenThroughIt) {
  const test::TempDir folder;
  const int before = ::dup(STDOUT_FILENO);
  const int file = ::open((folder / "out.txt").c_str(), O_WRONLY | O_CREAT, 0666);
  std::fflush(stdout);
  ::dup2(file, STDOUT_FILENO);
  std::printf("before\n");
  const bool named = writeFile(folder / "out.txt", "named\n").ok();
  const bool linked = writeFile("/proc/self/fd/1", "linked\n").ok();
  std::printf("after\n");
  std::fflush(stdout);
  ::dup2(before, STDOUT_FILENO);
  ::close(before);
  ::close(file);
  EXPECT_TRUE(named && linked);
  EXPECT_EQ(test::contentsOf(folder / "out.txt"), "before\nnamed\nlinked\nafter\n");
}

mode_t modeOf(const fs::path& path) {
  struct stat info {};
  EXPECT_EQ(::stat(path.c_str(), &info), 0);
  return info.st_mode & 07777;
}

TEST(OutputFiles, AReplacedFileKeepsItsMode) {
  const test::TempDir folder;
  const mode_t mask = ::umask(027);
  ASSERT_TRUE(writeFile(folder / "a.txt", "old").ok());
  EXPECT_EQ(modeOf(folder / "a.txt"), 0640u);
  for (const mode_t mode : {0600u, 0444u, 0755u}) {
    ASSERT_EQ(::chmod((folder / "a.txt").c_str(), mode), 0);
    ASSERT_TRUE(writeFile(folder / "a.txt", "new").ok());
    EXPECT_EQ(modeOf(folder / "a.txt"), mode);
  }
  ::umask(mask);
}

TEST(OutputFiles, AReplacedFileKeepsItsOwner) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may give files away";
  const test::TempDir folder;
  ASSERT_TRUE(writeFile(folder / "a.txt", "old").ok());
  ASSERT_EQ(::chown((folder / "a.txt").c_str(), 65534, 65534), 0);
  ASSERT_TRUE(writeFile(folder / "a.txt", "new").ok());
  struct stat info {};
  ASSERT_EQ(::stat((folder / "a.txt").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 65534u);
  EXPECT_EQ(info.st_gid, 65534u);
}

TEST(OutputFiles, DuplicateOutputsAreRefused) {
  const test::TempDir folder;
  OutputFiles files;
  ASSERT_TRUE(files.add(folder / "a.txt", "a").ok());
  EXPECT_FALSE(files.add(folder.path() / "." / "a.txt", "b").ok());
}

TEST(OutputFiles, CreatedFoldersAreRemovedWithoutCommit) {
  const test::TempDir folder;
  {
    OutputFiles files;
    ASSERT_TRUE(files.add(folder.path() / "x" / "y" / "a.txt", "a", true).ok());
  }
  EXPECT_EQ(entriesIn(folder.path()), 0u);
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
