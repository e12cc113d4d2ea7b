// SPDX-License-Identifier: Apache-2.0
#include "base/file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace carina {
namespace {

namespace fs = std::filesystem;

std::string systemMessage(int error) {
  return std::generic_category().message(error);
}

/// Closes a descriptor at the end of a scope.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  /// Some file systems report a failed write only when the file is closed.
  int close() {
    const int result = ::close(fd_);
    fd_ = -1;
    return result;
  }

 private:
  int fd_;
};

Status writeAll(Descriptor& file, ByteSpan contents, const fs::path& target) {
  size_t done = 0;
  while (done < contents.size()) {
    const ssize_t n = ::write(file.get(), contents.data() + done, contents.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail("cannot write: {}", systemMessage(errno)).inFile(target.string());
    done += static_cast<size_t>(n);
  }
  if (file.close() != 0) return fail("cannot write: {}", systemMessage(errno)).inFile(target.string());
  return {};
}

/// Devices and pipes cannot be replaced by a rename; they are written in place when the outputs are
/// committed.
bool isSpecial(const fs::file_status& status) {
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

}  // namespace

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const fs::path& path) {
  const std::string name = path.string();
  const Descriptor file(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) {
    const int error = errno;
    return fail("cannot open: {}", systemMessage(error))
        .inFile(name)
        .withRemedy(error == ENOENT ? "Check the path." : "");
  }
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return fail("cannot read: {}", systemMessage(errno)).inFile(name);
  if (S_ISDIR(info.st_mode)) return fail("is a folder, a file is needed").inFile(name);
  if (!S_ISREG(info.st_mode)) return fail("is not a regular file").inFile(name);
  if (info.st_size == 0) return std::shared_ptr<const MappedFile>(new MappedFile(name, {}));
  const auto size = static_cast<size_t>(info.st_size);
  void* memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (memory == MAP_FAILED) return fail("cannot map: {}", systemMessage(errno)).inFile(name);
  return std::shared_ptr<const MappedFile>(
      new MappedFile(name, ByteSpan(static_cast<const std::byte*>(memory), size)));
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

OutputFiles::~OutputFiles() {
  for (const Pending& file : pending_) {
    std::error_code ignored;
    if (!file.temporary.empty()) fs::remove(file.temporary, ignored);
  }
}

Status OutputFiles::add(const fs::path& path, ByteSpan contents, bool createFolders) {
  std::error_code error;
  if (path.filename().empty()) return fail("is not a file name").inFile(path.string());
  // A link keeps pointing to what it points to: the file behind it is replaced.
  fs::path target = path;
  if (fs::is_symlink(fs::symlink_status(path, error))) {
    target = fs::canonical(path, error);
    if (error) return fail("cannot follow the link: {}", error.message()).inFile(path.string());
  }
  const fs::file_status status = fs::status(target, error);
  if (fs::is_directory(status)) {
    return fail("cannot write: is a directory").inFile(path.string()).withRemedy("Give a file name.");
  }
  if (isSpecial(status)) {
    pending_.push_back({{}, target, std::string(asText(contents))});
    return {};
  }
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  if (createFolders) {
    fs::create_directories(folder, error);
    if (error) return fail("cannot create the folder: {}", error.message()).inFile(folder.string());
  }
  if (!fs::exists(folder, error)) {
    return fail("the folder {} does not exist", folder.string())
        .inFile(path.string())
        .withRemedy("Create it first.");
  }
  static std::atomic<unsigned> counter{0};
  fs::path temporary = folder / fmt::format(".{}.{}-{}.tmp", target.filename().string().substr(0, 180),
                                            ::getpid(), counter.fetch_add(1));
  Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.get() < 0) {
    return fail("cannot write into {}: {}", folder.string(), systemMessage(errno))
        .inFile(path.string())
        .withRemedy("Choose a folder that you may write to.");
  }
  pending_.push_back({std::move(temporary), std::move(target), {}});
  return writeAll(file, contents, path);
}

Status OutputFiles::add(const fs::path& path, std::string_view contents, bool createFolders) {
  return add(path, asBytes(contents), createFolders);
}

Status OutputFiles::commit() {
  while (!pending_.empty()) {
    Pending& file = pending_.front();
    if (file.temporary.empty()) {
      Descriptor device(::open(file.target.c_str(), O_WRONLY | O_CLOEXEC));
      if (device.get() < 0)
        return fail("cannot write: {}", systemMessage(errno)).inFile(file.target.string());
      CARINA_RETURN_IF_ERROR(writeAll(device, asBytes(file.contents), file.target));
    } else {
      std::error_code error;
      fs::rename(file.temporary, file.target, error);
      if (error) return fail("cannot write: {}", error.message()).inFile(file.target.string());
    }
    pending_.erase(pending_.begin());
  }
  return {};
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
