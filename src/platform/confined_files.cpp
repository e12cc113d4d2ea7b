// SPDX-License-Identifier: Apache-2.0
#include "platform/confined_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace carina::platform {

Result<ConfinedFiles> ConfinedFiles::open(const std::filesystem::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return fail(Code::CannotRead, "{}", std::strerror(errno)).inFile(folder.string());
  return ConfinedFiles(descriptor);
}

ConfinedFiles::~ConfinedFiles() {
  if (folder_ >= 0) close(folder_);
}
ConfinedFiles::ConfinedFiles(ConfinedFiles&& other) noexcept : folder_(std::exchange(other.folder_, -1)) {}
ConfinedFiles& ConfinedFiles::operator=(ConfinedFiles&& other) noexcept {
  std::swap(folder_, other.folder_);
  return *this;
}

int ConfinedFiles::parentOf(std::string_view name, std::string* last) const {
  if (folder_ < 0 || name.empty() || name.front() == '/' || name.find('\0') != std::string_view::npos) {
    errno = EACCES;
    return -1;
  }
  // Folder by folder, so that neither ".." nor a link leads out of the folder.
  int at = fcntl(folder_, F_DUPFD_CLOEXEC, 0);
  while (at >= 0) {
    const size_t slash = name.find('/');
    const std::string part(name.substr(0, slash));
    if (part == "..") {
      close(at);
      errno = EACCES;
      return -1;
    }
    if (slash == std::string_view::npos) {
      *last = part;
      return at;
    }
    name.remove_prefix(slash + 1);
    if (part.empty() || part == ".") continue;
    const int next = openat(at, part.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    const int reason = errno;
    close(at);
    errno = reason;
    at = next;
  }
  return -1;
}

int ConfinedFiles::openFile(std::string_view name, int flags) const {
  std::string last;
  const int parent = parentOf(name, &last);
  if (parent < 0) return -1;
  // O_NONBLOCK: opening a pipe must not wait for its other end.
  const int file = openat(parent, last.c_str(), flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0666);
  int reason = errno;
  close(parent);
  if (file >= 0) {
    struct stat info {};
    if (fstat(file, &info) == 0 && S_ISREG(info.st_mode)) return file;
    close(file);
    reason = EACCES;
  }
  errno = reason;
  return -1;
}

int ConfinedFiles::remove(std::string_view name) const {
  std::string last;
  const int parent = parentOf(name, &last);
  if (parent < 0) return -1;
  const int result = unlinkat(parent, last.c_str(), 0);
  const int reason = errno;
  close(parent);
  errno = reason;
  return result;
}

int ConfinedFiles::rename(std::string_view from, std::string_view to) const {
  std::string fromLast, toLast;
  const int fromParent = parentOf(from, &fromLast);
  if (fromParent < 0) return -1;
  const int toParent = parentOf(to, &toLast);
  if (toParent < 0) {
    const int reason = errno;
    close(fromParent);
    errno = reason;
    return -1;
  }
  const int result = renameat(fromParent, fromLast.c_str(), toParent, toLast.c_str());
  const int reason = errno;
  close(fromParent);
  close(toParent);
  errno = reason;
  return result;
}

}  // namespace carina::platform
