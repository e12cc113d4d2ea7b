// SPDX-License-Identifier: Apache-2.0
#include "base/output_path.hpp"

#include <gtest/gtest.h>

#include "base/file.hpp"
#include "support/temp_dir.hpp"

namespace carina {
namespace {

std::string problem(const Status& status) {
  return status.ok() ? std::string() : status.error().str();
}

TEST(OutputPath, AcceptsWritablePaths) {
  const test::TempDir folder;
  EXPECT_EQ(problem(checkOutputPath(folder / "new.pte")), "");
  ASSERT_TRUE(writeFile(folder / "old.pte", "x").ok());
  EXPECT_EQ(problem(checkOutputPath(folder / "old.pte")), "");
  EXPECT_EQ(problem(checkOutputPath("/dev/null")), "");
}

TEST(OutputPath, RefusesFoldersAndMissingFolders) {
  const test::TempDir folder;
  EXPECT_NE(problem(checkOutputPath(folder.path())).find("is a folder"), std::string::npos);
  EXPECT_NE(problem(checkOutputPath(folder.path().string() + "/")).find("is a folder"), std::string::npos);
  EXPECT_NE(problem(checkOutputPath(folder / "none/")).find("is not a file name"), std::string::npos);
  const std::string missing = problem(checkOutputPath(folder / "none/out.pte"));
  EXPECT_NE(missing.find("none/out.pte: the folder"), std::string::npos);
  EXPECT_NE(missing.find("does not exist"), std::string::npos);
  ASSERT_TRUE(writeFile(folder / "file", "x").ok());
  EXPECT_NE(problem(checkOutputPath(folder / "file/out.pte")).find("is not a folder"), std::string::npos);
}

TEST(OutputPath, OutputFoldersNeedNotExist) {
  const test::TempDir folder;
  EXPECT_EQ(problem(checkOutputFolder(folder.path())), "");
  EXPECT_EQ(problem(checkOutputFolder(folder / "a/b/c")), "");
  EXPECT_EQ(problem(checkOutputFolder("relative/folder")), "");
  ASSERT_TRUE(writeFile(folder / "file", "x").ok());
  EXPECT_NE(problem(checkOutputFolder(folder / "file")).find("is a file, not a folder"), std::string::npos);
  EXPECT_NE(problem(checkOutputFolder(folder / "file/report")).find("is a file, not a folder"),
            std::string::npos);
}

}  // namespace
}  // namespace carina
