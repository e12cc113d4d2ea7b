// SPDX-License-Identifier: Apache-2.0
#include "base/output_path.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace carina {
namespace {

namespace fs = std::filesystem;

Status checkWritable(const fs::path& path, int mode, std::string_view what) {
  if (::faccessat(AT_FDCWD, path.c_str(), mode, AT_EACCESS) == 0) return {};
  return fail(Code::CannotWrite, "cannot write{}: {}", what, std::generic_category().message(errno));
}

}  // namespace

Status checkOutputPath(const fs::path& path) {
  if (path.filename().empty() && !path.empty() && fs::is_directory(path)) {
    return fail(Code::CannotWrite, "is a folder, expected a file name")
        .inFile(path.string())
        .withRemedy("name a file in it");
  }
  if (path.filename().empty())
    return fail(Code::CannotWrite, "is not a file name")
        .inFile(path.string())
        .withRemedy("name a file, without a / at the end");
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) {
    return fail(Code::CannotWrite, "is a folder, expected a file name")
        .inFile(path.string())
        .withRemedy("name a file in it");
  }
  if (fs::is_block_file(status))
    return fail(Code::CannotWrite, "is a block device, expected a file name")
        .inFile(path.string())
        .withRemedy("name a file");
  if (fs::exists(status) && !fs::is_regular_file(status)) {  // a device or a pipe is written in place
    Status writable = checkWritable(path, W_OK, "");
    if (!writable.ok()) return std::move(writable).error().inFile(path.string());
    return writable;
  }
  fs::path target = path;
  if (fs::is_symlink(fs::symlink_status(path, error))) {
    target = fs::weakly_canonical(path, error);
    if (error)
      return fail(Code::CannotWrite, "cannot follow the link: {}", error.message()).inFile(path.string());
  }
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  if (!fs::exists(folder, error)) {
    return fail(Code::CannotWrite, "the folder {} does not exist", folder.string())
        .inFile(path.string())
        .withRemedy("create it first");
  }
  if (!fs::is_directory(folder, error)) {
    return fail(Code::CannotWrite, "{} is not a folder", folder.string())
        .inFile(path.string())
        .withRemedy("name another file");
  }
  if (auto writable = checkWritable(folder, W_OK | X_OK, fmt::format(" into {}", folder.string()));
      !writable.ok()) {
    return std::move(writable).error().inFile(path.string()).withRemedy("choose a writable folder");
  }
  return {};
}

Status checkOutputFolder(const fs::path& path) {
  std::error_code error;
  for (fs::path at = path; !at.empty(); at = at.parent_path()) {
    const fs::file_status status = fs::status(at, error);
    if (fs::is_directory(status)) {
      auto writable = checkWritable(at, W_OK | X_OK, fmt::format(" into {}", at.string()));
      if (!writable.ok()) {
        return std::move(writable).error().inFile(path.string()).withRemedy("choose a writable folder");
      }
      return {};
    }
    if (fs::exists(status)) {
      return fail(Code::CannotWrite, "{} is a file, not a folder", at == path ? "it" : at.string())
          .inFile(path.string())
          .withRemedy("name another folder");
    }
    if (at == at.parent_path()) break;
  }
  return {};
}

}  // namespace carina
