// SPDX-License-Identifier: Apache-2.0
// Reading.
#include "base/file.hpp"

#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <map>
#include <mutex>

#include "base/descriptor.hpp"
#include "base/idle_memory.hpp"
#include "base/large_pages.hpp"

namespace carina {
namespace {

/// Fills `memory` from the start of the file. Fails if the file does not have that many bytes any more.
Status readAll(int file, std::byte* memory, size_t size, const std::string& name) {
  size_t done = 0;
  while (done < size) {
    const ssize_t n = ::pread(file, memory + done, size - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(Code::CannotRead, "cannot read: {}", systemMessage(errno)).inFile(name);
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  if (done == size) return {};
  return fail(Code::CannotRead, "became shorter while it was read: {} of {} bytes are left", done, size)
      .inFile(name)
      .withRemedy("Try again when nothing is writing to it.");
}

bool sameTime(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/// The files that are mapped.
struct Mappings {
  std::mutex mutex;
  std::map<const std::byte*, size_t> files;

  static Mappings& all() {
    static Mappings mappings;
    return mappings;
  }
};

}  // namespace

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::filesystem::path& path,
                                                           Reading reading) {
  const std::string name = path.string();
  const Descriptor file(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) {
    const int error = errno;
    return fail(Code::CannotRead, "cannot open: {}", systemMessage(error))
        .inFile(name)
        .withRemedy(error == ENOENT ? "Check the path."
                    : error == EACCES
                        ? "This user may not read it: check its permissions and those of its folder."
                        : "");
  }
  struct stat info {};
  if (::fstat(file.get(), &info) != 0)
    return fail(Code::CannotRead, "cannot read: {}", systemMessage(errno)).inFile(name);
  if (S_ISDIR(info.st_mode))
    return fail(Code::CannotRead, "is a folder, not a file").inFile(name).withRemedy("Name a file in it.");
  if (!S_ISREG(info.st_mode))
    return fail(Code::CannotRead, "is a device, not a file").inFile(name).withRemedy("Name a file.");
  if (info.st_size == 0) return std::shared_ptr<const MappedFile>(new MappedFile(name, {}));
  const auto size = static_cast<size_t>(info.st_size);
  const bool copied = reading == Reading::Whole && size <= kCopiedBytes;
  void* memory = copied ? ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                        : ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (memory == MAP_FAILED)
    return fail(Code::CannotRead, "cannot read: {}", systemMessage(errno)).inFile(name);
  auto* bytes = static_cast<std::byte*>(memory);
  const std::shared_ptr<MappedFile> result(new MappedFile(name, ByteSpan(bytes, size)));
  if (!copied) {
    result->mapping_.emplace(memory, size, name);
    Mappings& mappings = Mappings::all();
    const std::lock_guard lock(mappings.mutex);
    mappings.files.emplace(bytes, size);
    return std::shared_ptr<const MappedFile>(result);
  }
  askForLargePages(memory, size);
  CARINA_RETURN_IF_ERROR(readAll(file.get(), bytes, size, name));
  struct stat after {};
  if (::fstat(file.get(), &after) != 0)
    return fail(Code::CannotRead, "cannot read: {}", systemMessage(errno)).inFile(name);
  if (after.st_size != info.st_size || !sameTime(after.st_mtim, info.st_mtim)) {
    return fail(Code::CannotRead, "changed while it was read")
        .inFile(name)
        .withRemedy("Try again when nothing is writing to it.");
  }
  if (::mprotect(memory, size, PROT_READ) != 0)
    return fail(Code::CannotRead, "cannot read: {}", systemMessage(errno)).inFile(name);
  return std::shared_ptr<const MappedFile>(result);
}

void giveBackIdleMemory() {
#ifdef __GLIBC__
  // A little free memory is soon needed again, and would cost page faults.
  constexpr size_t kIdle = size_t{128} << 20;
  if (::mallinfo2().fordblks > kIdle) ::malloc_trim(0);
#endif
  Mappings& mappings = Mappings::all();
  const std::lock_guard lock(mappings.mutex);
  // Private and never written: dropped pages are still in the file. A failure costs only memory.
  for (const auto& [bytes, size] : mappings.files)
    (void)::madvise(const_cast<std::byte*>(bytes), size, MADV_DONTNEED);
}

MappedFile::~MappedFile() {
  if (mapping_) {
    Mappings& mappings = Mappings::all();
    const std::lock_guard lock(mappings.mutex);
    mappings.files.erase(bytes_.data());
  }
  mapping_.reset();  // before its addresses can belong to something else
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace carina
