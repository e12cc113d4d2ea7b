// SPDX-License-Identifier: Apache-2.0
// No path leads out of the folder.
#include "platform/confined_files.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "support/temp_dir.hpp"

namespace carina::platform {
namespace {

class ConfinedFilesTest : public testing::Test {
 protected:
  ConfinedFilesTest() {
    std::filesystem::create_directories(root_ / "box/sub");
    std::ofstream(root_ / "secret") << "secret";
    std::ofstream(root_ / "box/file") << "file";
    std::filesystem::create_symlink("../secret", root_ / "box/link");
    std::filesystem::create_symlink("..", root_ / "box/up");
    mkfifo((root_ / "box/pipe").c_str(), 0600);
    files_ = *ConfinedFiles::open(root_ / "box");
  }
  /// 0, or errno.
  int tryOpen(const char* name, int flags = O_RDONLY) const {
    errno = 0;
    const int file = files_.openFile(name, flags);
    if (file < 0) return errno;
    close(file);
    return 0;
  }

  test::TempDir root_;
  ConfinedFiles files_;
};

TEST_F(ConfinedFilesTest, OpensFilesInside) {
  EXPECT_EQ(tryOpen("file"), 0);
  EXPECT_EQ(tryOpen("./file"), 0);
  EXPECT_EQ(tryOpen("sub//new", O_WRONLY | O_CREAT), 0);
  EXPECT_TRUE(std::filesystem::exists(root_ / "box/sub/new"));
  EXPECT_EQ(tryOpen("missing"), ENOENT);
}

TEST_F(ConfinedFilesTest, NoPathLeadsOut) {
  EXPECT_EQ(tryOpen("../secret"), EACCES);
  EXPECT_EQ(tryOpen("sub/../../secret"), EACCES);
  EXPECT_EQ(tryOpen((root_ / "secret").c_str()), EACCES);
  EXPECT_EQ(tryOpen("link"), ELOOP);
  EXPECT_NE(tryOpen("up/secret"), 0);
  EXPECT_NE(tryOpen(".."), 0);
  EXPECT_NE(tryOpen(""), 0);
  EXPECT_EQ(files_.remove("../secret"), -1);
  EXPECT_EQ(files_.rename("file", "../stolen"), -1);
  EXPECT_EQ(files_.rename("up/secret", "stolen"), -1);
  EXPECT_TRUE(std::filesystem::exists(root_ / "secret"));
  EXPECT_TRUE(std::filesystem::exists(root_ / "box/file"));
}

TEST_F(ConfinedFilesTest, OnlyRegularFiles) {
  EXPECT_EQ(tryOpen("sub"), EACCES);
  EXPECT_NE(tryOpen("pipe"), 0);
  EXPECT_NE(tryOpen("pipe", O_WRONLY), 0);
}

TEST_F(ConfinedFilesTest, RemovesAndRenames) {
  EXPECT_EQ(files_.rename("file", "sub/moved"), 0);
  EXPECT_EQ(tryOpen("sub/moved"), 0);
  EXPECT_EQ(files_.remove("sub/moved"), 0);
  EXPECT_EQ(tryOpen("sub/moved"), ENOENT);
}

TEST(ConfinedFilesNone, WithoutAFolder) {
  const ConfinedFiles none;
  EXPECT_FALSE(none.allowed());
  EXPECT_EQ(none.openFile("file", O_RDONLY), -1);
  EXPECT_EQ(errno, EACCES);
  EXPECT_FALSE(ConfinedFiles::open("/nonexistent").ok());
}

}  // namespace
}  // namespace carina::platform
