// SPDX-License-Identifier: Apache-2.0
#include "faults.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "base/check.hpp"
#include "base/signals.hpp"
#include "console.hpp"
#include "program.hpp"

namespace {

using carina::test::Fault;

struct Count {
  std::atomic<long> count{0};
  std::atomic<bool> happened{false};
};

/// Shared with the child processes, of which one runs at a time.
Count& shared() {
  static Count* const count = [] {
    void* memory = ::mmap(nullptr, sizeof(Count), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return new (memory) Count;
  }();
  return *count;
}

// Of this process.
std::atomic<Fault> armed{Fault::None};
long wanted = 0;

bool isNow(bool andLater) {
  const long n = shared().count.fetch_add(1) + 1;
  if (n != wanted && !(andLater && n > wanted)) return false;
  shared().happened = true;
  return true;
}

bool callFails(int error) {
  if (armed != Fault::Call || !isNow(false)) return false;
  errno = error;
  return true;
}

bool allocationFails() {
  const Fault fault = armed;
  return (fault == Fault::Allocation || fault == Fault::AllocationsFrom) &&
         isNow(fault == Fault::AllocationsFrom);
}

void* allocate(size_t bytes, size_t alignment) {
  if (allocationFails()) return nullptr;
  if (alignment <= alignof(std::max_align_t)) return std::malloc(bytes == 0 ? 1 : bytes);
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

void* allocateOrThrow(size_t bytes, size_t alignment) {
  void* memory = allocate(bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(size_t bytes) {
  return allocateOrThrow(bytes, 1);
}
void* operator new[](size_t bytes) {
  return allocateOrThrow(bytes, 1);
}
void* operator new(size_t bytes, std::align_val_t to) {
  return allocateOrThrow(bytes, static_cast<size_t>(to));
}
void* operator new[](size_t bytes, std::align_val_t to) {
  return allocateOrThrow(bytes, static_cast<size_t>(to));
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes, 1);
}
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes, 1);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}

// The functions that the linker substitutes for NAME, and NAME itself.
extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names
int __real_open(const char* path, int flags, ...);
ssize_t __real_pread(int file, void* memory, size_t bytes, off_t at);
ssize_t __real_write(int file, const void* memory, size_t bytes);
int __real_fsync(int file);
int __real_close(int file);
int __real_fstat(int file, struct stat* info);
int __real_stat(const char* path, struct stat* info);
int __real_fchmod(int file, mode_t mode);
int __real_mkdir(const char* path, mode_t mode);
int __real_access(const char* path, int mode);
int __real_linkat(int from, const char* source, int to, const char* target, int flags);
int __real_rename(const char* source, const char* target);
int __real_renameat2(int from, const char* source, int to, const char* target, unsigned flags);
void* __real_mmap(void* at, size_t bytes, int access, int flags, int file, off_t offset);
int __real_mprotect(void* at, size_t bytes, int access);

int __wrap_open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const auto mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : mode_t{0};
  va_end(rest);
  if (armed == Fault::NamelessFiles && (flags & O_TMPFILE) == O_TMPFILE) {
    errno = EOPNOTSUPP;
    return -1;
  }
  return callFails(EMFILE) ? -1 : __real_open(path, flags, mode);
}
ssize_t __wrap_pread(int file, void* memory, size_t bytes, off_t at) {
  return callFails(EIO) ? -1 : __real_pread(file, memory, bytes, at);
}
ssize_t __wrap_write(int file, const void* memory, size_t bytes) {
  if (!callFails(ENOSPC)) return __real_write(file, memory, bytes);
  // The first half is written.
  if (bytes > 1) static_cast<void>(!__real_write(file, memory, bytes / 2));
  errno = ENOSPC;
  return -1;
}
int __wrap_fsync(int file) {
  return callFails(EIO) ? -1 : __real_fsync(file);
}
int __wrap_close(int file) {
  const int result = __real_close(file);
  return callFails(EIO) ? -1 : result;
}
int __wrap_fstat(int file, struct stat* info) {
  return callFails(EIO) ? -1 : __real_fstat(file, info);
}
int __wrap_stat(const char* path, struct stat* info) {
  return callFails(EACCES) ? -1 : __real_stat(path, info);
}
int __wrap_fchmod(int file, mode_t mode) {
  return callFails(EPERM) ? -1 : __real_fchmod(file, mode);
}
int __wrap_mkdir(const char* path, mode_t mode) {
  return callFails(ENOSPC) ? -1 : __real_mkdir(path, mode);
}
int __wrap_access(const char* path, int mode) {
  return callFails(ENOENT) ? -1 : __real_access(path, mode);
}
int __wrap_linkat(int from, const char* source, int to, const char* target, int flags) {
  return callFails(ENOSPC) ? -1 : __real_linkat(from, source, to, target, flags);
}
int __wrap_rename(const char* source, const char* target) {
  return callFails(EIO) ? -1 : __real_rename(source, target);
}
int __wrap_renameat2(int from, const char* source, int to, const char* target, unsigned flags) {
  return callFails(EIO) ? -1 : __real_renameat2(from, source, to, target, flags);
}
void* __wrap_mmap(void* at, size_t bytes, int access, int flags, int file, off_t offset) {
  return callFails(ENOMEM) ? MAP_FAILED : __real_mmap(at, bytes, access, flags, file, offset);
}
int __wrap_mprotect(void* at, size_t bytes, int access) {
  return callFails(ENOMEM) ? -1 : __real_mprotect(at, bytes, access);
}
// NOLINTEND(bugprone-reserved-identifier)
}

namespace carina::test {
namespace {

int temporaryFile() {
  const int file = ::memfd_create("output of a child", MFD_CLOEXEC);
  CARINA_CHECK(file >= 0, "a test needs memory for the output of a child");
  return file;
}

std::string textOf(int file) {
  std::string text(static_cast<size_t>(::lseek(file, 0, SEEK_END)), '\0');
  CARINA_CHECK(__real_pread(file, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()),
               "a test reads back what a child printed");
  return text;
}

}  // namespace

RunningChild::RunningChild(Fault fault, long n, const std::function<int()>& work)
    : out_(temporaryFile()), err_(temporaryFile()) {
  shared().count = 0;
  shared().happened = false;
  std::fflush(nullptr);
  process_ = ::fork();
  CARINA_CHECK(process_ >= 0, "a test starts a child");
  if (process_ > 0) return;
  ::dup2(out_, STDOUT_FILENO);
  ::dup2(err_, STDERR_FILENO);
  wanted = n;
  armed = fault;
  const int status = work();
  armed = Fault::None;
  std::fflush(nullptr);
  ::_exit(status);
}

RunningChild::~RunningChild() {
  if (process_ > 0) {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  __real_close(out_);
  __real_close(err_);
}

void RunningChild::signal(int number) const {
  ::kill(process_, number);
}

Child RunningChild::wait() {
  int state = 0;
  while (::waitpid(process_, &state, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
  Child child;
  child.exited = WIFEXITED(state);
  child.status = child.exited ? WEXITSTATUS(state) : WTERMSIG(state);
  child.count = shared().count;
  child.happened = shared().happened;
  child.out = textOf(out_);
  child.err = textOf(err_);
  return child;
}

Child runWithFault(Fault fault, long n, const std::function<int()>& work) {
  return RunningChild(fault, n, work).wait();
}

int carina(const std::vector<std::string>& arguments) {
  const Fault fault = armed.exchange(Fault::None);  // the following allocations are not the program's
  std::vector<char*> argv{const_cast<char*>("carina")};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  installSignalHandlers();
  armed = fault;
  return app::closeStandardOutput(app::program(static_cast<int>(argv.size()) - 1, argv.data()));
}

}  // namespace carina::test
