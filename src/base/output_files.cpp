// SPDX-License-Identifier: Apache-2.0
// Writing: every file is complete, on disk and under another name before any of them replaces its target.
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "base/descriptor.hpp"
#include "base/file.hpp"
#include "base/output_path.hpp"
#include "base/signals.hpp"

namespace carina {
namespace {

namespace fs = std::filesystem;

constexpr int kNameAttempts = 100;

Error cannotWrite(int error, const fs::path& target) {
  return fail(Code::CannotWrite, "cannot write: {}", systemMessage(error)).inFile(target.string());
}

/// A random name next to `target`: neither other processes nor files that they left behind interfere.
fs::path temporaryName(const fs::path& folder, const fs::path& target) {
  uint64_t random = 0;
  if (::getrandom(&random, sizeof(random), 0) != static_cast<ssize_t>(sizeof(random)))
    random = static_cast<uint64_t>(::getpid()) << 32 ^ static_cast<uint64_t>(::clock());
  return folder / fmt::format(".{}.{:016x}.tmp", target.filename().string().substr(0, 180), random);
}

int syncFile(int file) {
  // File systems without fsync() give no better guarantee.
  return ::fsync(file) == 0 || errno == EINVAL || errno == ENOTSUP || errno == ENOSYS ? 0 : -1;
}

/// Descriptor 1 or 2 if it is open on the file of `info`. A file that standard output is redirected to is
/// written through the descriptor: replacing it by a rename would lose everything else that is printed.
std::optional<int> standardStream(const struct stat& info) {
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat other {};
    if (::fstat(stream, &other) == 0 && other.st_dev == info.st_dev && other.st_ino == info.st_ino)
      return stream;
  }
  return std::nullopt;
}

Status writeAll(int file, ByteSpan contents, const fs::path& target) {
  size_t done = 0;
  while (done < contents.size()) {
    const ssize_t n = ::write(file, contents.data() + done, contents.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return cannotWrite(errno, target);
    done += static_cast<size_t>(n);
  }
  return {};
}

/// Devices, pipes and redirected standard output are not replaced.
Status writeInPlace(ByteSpan contents, const fs::path& target) {
  struct stat info {};
  if (::stat(target.c_str(), &info) != 0) return cannotWrite(errno, target);
  const std::optional<int> stream = standardStream(info);
  if (stream) std::fflush(*stream == STDOUT_FILENO ? stdout : stderr);
  Descriptor file(stream ? ::fcntl(*stream, F_DUPFD_CLOEXEC, 0)
                         : ::open(target.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.get() < 0) return cannotWrite(errno, target);
  CARINA_RETURN_IF_ERROR(writeAll(file.get(), contents, target));
  if (file.close() != 0) return cannotWrite(errno, target);
  return {};
}

Status syncFolder(const fs::path& folder) {
  const Descriptor file(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (file.get() < 0) return {};  // a folder that may be written but not read
  if (syncFile(file.get()) != 0) return cannotWrite(errno, folder);
  return {};
}

}  // namespace

/// One output between add() and commit().
struct OutputFiles::Pending {
  enum class State : uint8_t { Waiting, New, Exchanged, Replaced };

  fs::path target, folder;  // no folder: written in place
  std::string contents;     // if it is written in place
  Descriptor file;          // otherwise
  fs::path temporary;       // its name, if any
  std::optional<RemovedOnSignal> guard;
  State state = State::Waiting;

  bool inPlace() const { return folder.empty(); }

  /// Creates a file without a name if the file system supports that, else with one, with the mode and the
  /// owner of the file that it will replace, as far as this process may set them.
  Status create(const struct stat* replaced) {
    CARINA_RETURN_IF_ERROR(createAny());
    if (replaced == nullptr) return {};
    struct stat own {};
    if (::fstat(file.get(), &own) != 0) return cannotWrite(errno, target);
    mode_t mode = replaced->st_mode & 07777;
    if ((own.st_uid != replaced->st_uid || own.st_gid != replaced->st_gid) &&
        ::fchown(file.get(), replaced->st_uid, replaced->st_gid) != 0) {
      mode &= 0777;  // no set-ID bits if the owner differs
    }
    if (::fchmod(file.get(), mode) != 0) return cannotWrite(errno, target);
    return {};
  }

  Status sync() {
    if (syncFile(file.get()) != 0) return cannotWrite(errno, target);
    return {};
  }

  Status giveName() {
    if (temporary.empty()) {
      CARINA_RETURN_IF_ERROR(named([&](const fs::path& name) {
        return ::linkat(AT_FDCWD, linkSource().c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
      }));
    }
    if (file.close() != 0) return cannotWrite(errno, target);
    return {};
  }

  /// Moves it to its target. If exchanged, the old file can be restored when a later output fails.
  Status replace() {
    if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) {
      state = State::Exchanged;
      return {};
    }
    const bool isNew = errno == ENOENT;
    if (::rename(temporary.c_str(), target.c_str()) != 0) return cannotWrite(errno, target);
    state = isNew ? State::New : State::Replaced;
    temporary.clear();
    return {};
  }

  void takeBack() {
    if (state == State::New) ::unlink(target.c_str());
    if (state == State::Exchanged && ::rename(temporary.c_str(), target.c_str()) == 0) temporary.clear();
    state = State::Waiting;
  }

  void removeTemporary() {
    if (!temporary.empty()) ::unlink(temporary.c_str());
    temporary.clear();
    guard.reset();
  }

 private:
  std::string linkSource() const { return fmt::format("/proc/self/fd/{}", file.get()); }

  Status createAny() {
    constexpr mode_t kMode = 0666;
    file = Descriptor(::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, kMode));
    if (file.get() >= 0) {
      if (::access(linkSource().c_str(), F_OK) == 0) return {};
      file = Descriptor();  // without /proc there is no way to name it
    }
    return named([&](const fs::path& name) {
      file = Descriptor(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kMode));
      return file.get() >= 0;
    });
  }

  template <typename Make>
  Status named(const Make& make) {
    int error = EEXIST;
    for (int attempt = 0; attempt < kNameAttempts && error == EEXIST; ++attempt) {
      fs::path name = temporaryName(folder, target);
      guard.emplace(RemovedOnSignal::Kind::File, name.string());
      if (make(name)) {
        temporary = std::move(name);  // the file exists: nothing may fail any more
        return {};
      }
      error = errno;
      guard.reset();
    }
    return fail(Code::CannotWrite, "cannot write into {}: {}", folder.string(), systemMessage(error))
        .inFile(target.string())
        .withRemedy("choose a writable folder");
  }
};

OutputFiles::OutputFiles() = default;

OutputFiles::~OutputFiles() {
  takeBack();
  for (Pending& file : pending_) file.removeTemporary();
  for (; !created_.empty(); created_.pop_back()) ::rmdir(created_.back().path.c_str());
}

Status OutputFiles::createFolders(const fs::path& folder) {
  std::vector<fs::path> missing;
  std::error_code error;
  for (fs::path at = folder; !at.empty() && !fs::exists(at, error); at = at.parent_path())
    missing.push_back(at);
  for (; !missing.empty(); missing.pop_back()) {
    const fs::path& at = missing.back();
    if (at.filename().empty()) continue;  // "reports/" is "reports"
    CreatedFolder created{at, RemovedOnSignal(RemovedOnSignal::Kind::EmptyFolder, at.string())};
    created_.reserve(created_.size() + 1);  // nothing may fail between mkdir and push_back
    if (::mkdir(at.c_str(), 0777) != 0) {
      if (errno == EEXIST) continue;
      return fail(Code::CannotWrite, "cannot create the folder: {}", systemMessage(errno))
          .inFile(at.string());
    }
    created_.push_back(std::move(created));
  }
  return {};
}

Status OutputFiles::add(const fs::path& path, ByteSpan contents, bool createParents) {
  if (createParents) CARINA_RETURN_IF_ERROR(createFolders(path.parent_path()));
  CARINA_RETURN_IF_ERROR(checkOutputPath(path));
  std::error_code error;
  Pending file;
  file.target = path;
  struct stat info {};
  const bool exists = ::stat(path.c_str(), &info) == 0;
  if (!exists && errno != ENOENT) return cannotWrite(errno, path);
  if (exists && (!S_ISREG(info.st_mode) || standardStream(info))) {
    file.contents = asText(contents);
    pending_.push_back(std::move(file));
    return {};
  }
  // Symbolic links are kept: the file that they point to is replaced.
  if (fs::is_symlink(fs::symlink_status(path, error))) {
    file.target = fs::weakly_canonical(path, error);
    if (error)
      return fail(Code::CannotWrite, "cannot follow the link: {}", error.message()).inFile(path.string());
  }
  file.folder = file.target.has_parent_path() ? file.target.parent_path() : fs::path(".");
  for (const Pending& other : pending_) {
    if (!other.inPlace() && other.target.filename() == file.target.filename() &&
        fs::equivalent(other.folder, file.folder, error)) {
      return fail(Code::BadOption, "two outputs would have this name")
          .inFile(path.string())
          .withRemedy("give each its own name");
    }
  }
  pending_.push_back(std::move(file));  // first, so that whatever is created is cleaned up
  CARINA_RETURN_IF_ERROR(pending_.back().create(exists ? &info : nullptr));
  return writeAll(pending_.back().file.get(), contents, path);
}

Status OutputFiles::add(const fs::path& path, std::string_view contents, bool createParents) {
  return add(path, asBytes(contents), createParents);
}

Status OutputFiles::commit() {
  for (Pending& file : pending_) {
    if (!file.inPlace()) CARINA_RETURN_IF_ERROR(file.sync());
  }
  for (const Pending& file : pending_) {
    if (file.inPlace()) CARINA_RETURN_IF_ERROR(writeInPlace(asBytes(file.contents), file.target));
  }
  for (Pending& file : pending_) {
    if (!file.inPlace()) CARINA_RETURN_IF_ERROR(file.giveName());
  }
  const SignalsWait wait;
  Status status = replaceTargets();
  if (!status.ok()) {
    takeBack();
    return status;
  }
  for (Pending& file : pending_) file.removeTemporary();
  pending_.clear();
  created_.clear();
  return {};
}

void OutputFiles::takeBack() {
  for (auto file = pending_.rbegin(); file != pending_.rend(); ++file) file->takeBack();
}

Status OutputFiles::replaceTargets() {
  std::set<fs::path> folders;
  for (const Pending& file : pending_) {
    if (!file.inPlace()) folders.insert(file.folder);
  }
  for (const CreatedFolder& folder : created_)
    folders.insert(folder.path.has_parent_path() ? folder.path.parent_path() : ".");
  for (Pending& file : pending_) {
    if (!file.inPlace()) CARINA_RETURN_IF_ERROR(file.replace());
  }
  for (const fs::path& folder : folders) CARINA_RETURN_IF_ERROR(syncFolder(folder));
  return {};
}

Status flush(std::FILE* stream, std::string_view name) {
  int error = std::fflush(stream) != 0 ? errno : 0;
  const bool failed = error != 0 || std::ferror(stream) != 0;
  // Some file systems report a full disk only when a file is closed.
  Descriptor copy(::fcntl(::fileno(stream), F_DUPFD_CLOEXEC, 0));
  if (error == 0 && copy.get() >= 0 && copy.close() != 0) error = errno;
  if (!failed && error == 0) return {};
  return fail(Code::CannotWrite, "cannot write to {}{}{}", name, error != 0 ? ": " : "",
              error != 0 ? systemMessage(error) : "");
}

Status writeFile(const fs::path& path, ByteSpan contents) {
  OutputFiles files;
  CARINA_RETURN_IF_ERROR(files.add(path, contents));
  return files.commit();
}

Status writeFile(const fs::path& path, std::string_view contents) {
  return writeFile(path, asBytes(contents));
}

}  // namespace carina
