// SPDX-License-Identifier: Apache-2.0
// A temporary folder, removed by the destructor.
#pragma once

#include <filesystem>
#include <string>

namespace carina::test {

class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace carina::test
