// SPDX-License-Identifier: Apache-2.0
// Files: copied or mapped for reading; written completely and made visible by rename.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/signals.hpp"
#include "base/tensor.hpp"

namespace carina {

/// The bytes of a file, read-only. Shared, because tensors may borrow them. Files of up to kCopiedBytes are
/// copied to memory, so that later changes to the file have no effect; larger files are mapped, because their
/// weights need not be in memory all at once, and must not change while in use (signals.hpp describes what
/// happens if one is truncated).
class MappedFile {
 public:
  static constexpr size_t kCopiedBytes = size_t{64} << 20;
  /// Little: only a small part is read, so the file is mapped whatever its size.
  enum class Reading : uint8_t { Whole, Little };

  /// Errors contain the path and the system's reason (no such file, is a directory, permission), or report
  /// that the file changed while it was read.
  static Result<std::shared_ptr<const MappedFile>> open(const std::filesystem::path& path,
                                                        Reading reading = Reading::Whole);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  ByteSpan bytes() const { return bytes_; }
  const std::string& path() const { return path_; }

 private:
  MappedFile(std::string path, ByteSpan bytes) : path_(std::move(path)), bytes_(bytes) {}
  std::string path_;
  ByteSpan bytes_;
  std::optional<NamedMapping> mapping_;
};

/// Several files that appear together. Each is written to a temporary file next to its target, without a name
/// if the file system allows that; commit() makes all of them durable (fsync), moves them to their targets
/// and, if one fails, rolls back those before it. Destruction without commit removes what was written, as
/// does a signal (installSignalHandlers). A file that is replaced passes on its mode, and its owner if
/// permitted; its other hard links keep the old contents. Symbolic links are followed. Devices, pipes and
/// files that standard output or standard error is redirected to are written in place by commit(), before any
/// file is replaced.
class OutputFiles {
 public:
  OutputFiles();
  ~OutputFiles();
  OutputFiles(const OutputFiles&) = delete;
  OutputFiles& operator=(const OutputFiles&) = delete;

  /// Missing parent folders are an error (except with createParents), as are an unwritable folder, a folder
  /// or a block device of that name, and the name of an earlier output.
  Status add(const std::filesystem::path& path, ByteSpan contents, bool createParents = false);
  Status add(const std::filesystem::path& path, std::string_view contents, bool createParents = false);
  Status commit();

 private:
  struct Pending;
  struct CreatedFolder {
    std::filesystem::path path;
    RemovedOnSignal guard;
  };
  /// Creates a folder and its parents.
  Status createFolders(const std::filesystem::path& folder);
  Status replaceTargets();
  void takeBack();
  std::vector<Pending> pending_;
  std::vector<CreatedFolder> created_;  // outermost first
};

/// Fails unless everything printed to a C stream has reached its file; `name` denotes it in messages.
Status flush(std::FILE* stream, std::string_view name);

/// Writes one file in the same way as OutputFiles.
Status writeFile(const std::filesystem::path& path, ByteSpan contents);
Status writeFile(const std::filesystem::path& path, std::string_view contents);

inline ByteSpan asBytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
inline std::string_view asText(ByteSpan bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace carina
