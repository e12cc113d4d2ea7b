// SPDX-License-Identifier: Apache-2.0
// Files: mapped for reading; written whole and made visible by rename.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/tensor.hpp"

namespace carina {

/// A file mapped read-only. Shared, because tensors may borrow its bytes.
class MappedFile {
 public:
  /// Errors name the path and what the system said (no such file, is a directory, permission).
  static Result<std::shared_ptr<const MappedFile>> open(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  ByteSpan bytes() const { return bytes_; }
  const std::string& path() const { return path_; }

 private:
  MappedFile(std::string path, ByteSpan bytes) : path_(std::move(path)), bytes_(bytes) {}
  std::string path_;
  ByteSpan bytes_;
};

/// Several files that appear together: each is written to a temporary name beside its target, commit() renames them all,
/// destruction without commit removes what was written. Symbolic links are followed; devices and pipes (/dev/stdout) are
/// written in place by commit().
class OutputFiles {
 public:
  OutputFiles() = default;
  ~OutputFiles();
  OutputFiles(const OutputFiles&) = delete;
  OutputFiles& operator=(const OutputFiles&) = delete;

  /// Missing parent folders are an error (except with createFolders), as is an unwritable folder.
  Status add(const std::filesystem::path& path, ByteSpan contents, bool createFolders = false);
  Status add(const std::filesystem::path& path, std::string_view contents, bool createFolders = false);
  Status commit();

 private:
  struct Pending {
    std::filesystem::path temporary, target;
    std::string contents;  // only for devices and pipes, which have no temporary
  };
  std::vector<Pending> pending_;
};

/// One file by the same rule.
Status writeFile(const std::filesystem::path& path, ByteSpan contents);
Status writeFile(const std::filesystem::path& path, std::string_view contents);

inline ByteSpan asBytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
inline std::string_view asText(ByteSpan bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace carina
