// SPDX-License-Identifier: Apache-2.0
#include "platform/semihosting.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/pairs.hpp"

namespace carina::platform {
namespace {

enum Operation : uint32_t {
  kOpen = 0x01,
  kClose = 0x02,
  kWriteC = 0x03,
  kWrite0 = 0x04,
  kWrite = 0x05,
  kRead = 0x06,
  kReadC = 0x07,
  kIsError = 0x08,
  kIsTty = 0x09,
  kSeek = 0x0a,
  kLength = 0x0c,
  kTemporaryName = 0x0d,
  kRemove = 0x0e,
  kRename = 0x0f,
  kClock = 0x10,
  kTime = 0x11,
  kSystem = 0x12,
  kErrno = 0x13,
  kCommandLine = 0x15,
  kHeapInfo = 0x16,
  kExit = 0x18,
  kExitExtended = 0x20,
  kElapsed = 0x30,
  kTickFrequency = 0x31,
};

constexpr std::pair<uint32_t, const char*> kNames[] = {{kOpen, "SYS_OPEN"},
                                                       {kClose, "SYS_CLOSE"},
                                                       {kWriteC, "SYS_WRITEC"},
                                                       {kWrite0, "SYS_WRITE0"},
                                                       {kWrite, "SYS_WRITE"},
                                                       {kRead, "SYS_READ"},
                                                       {kReadC, "SYS_READC"},
                                                       {kIsError, "SYS_ISERROR"},
                                                       {kIsTty, "SYS_ISTTY"},
                                                       {kSeek, "SYS_SEEK"},
                                                       {kLength, "SYS_FLEN"},
                                                       {kTemporaryName, "SYS_TMPNAM"},
                                                       {kRemove, "SYS_REMOVE"},
                                                       {kRename, "SYS_RENAME"},
                                                       {kClock, "SYS_CLOCK"},
                                                       {kTime, "SYS_TIME"},
                                                       {kSystem, "SYS_SYSTEM"},
                                                       {kErrno, "SYS_ERRNO"},
                                                       {kCommandLine, "SYS_GET_CMDLINE"},
                                                       {kHeapInfo, "SYS_HEAPINFO"},
                                                       {kExit, "SYS_EXIT"},
                                                       {kExitExtended, "SYS_EXIT_EXTENDED"},
                                                       {kElapsed, "SYS_ELAPSED"},
                                                       {kTickFrequency, "SYS_TICKFREQ"}};

constexpr uint32_t kFailure = 0xffffffff;
constexpr uint32_t kApplicationExit = 0x20026;  // ADP_Stopped_ApplicationExit
constexpr size_t kMaxHandles = 256;
constexpr uint32_t kMaxFileName = 4096;
/// The file that lists supported features: extended exit, and separate stdout and stderr.
constexpr std::array<char, 5> kFeatures = {'S', 'H', 'F', 'B', 3};

}  // namespace

const char* Semihosting::operationName(uint32_t operation) {
  return secondOf(kNames, operation).value_or("unknown");
}

Semihosting::Semihosting(const Bus& bus, const Clock& clock, ConfinedFiles files, std::string commandLine,
                         Hooks hooks)
    : bus_(bus),
      clock_(clock),
      files_(std::move(files)),
      commandLine_(std::move(commandLine)),
      hooks_(std::move(hooks)) {}

Semihosting::~Semihosting() {
  for (const Handle& handle : handles_) {
    if (handle.kind == Kind::File) ::close(handle.descriptor);
  }
}

uint32_t Semihosting::failed(int error) {
  error_ = static_cast<uint32_t>(error);
  return kFailure;
}

std::optional<std::string> Semihosting::text(uint32_t address, uint32_t length) const {
  if (length > kMaxFileName) return std::nullopt;
  const std::byte* bytes = bus_.find(address, length);
  if (bytes == nullptr) return std::nullopt;
  return std::string(reinterpret_cast<const char*>(bytes), length);
}

uint32_t Semihosting::add(Handle handle) {
  for (size_t i = 0; i < handles_.size(); ++i) {
    if (handles_[i].kind != Kind::Closed) continue;
    handles_[i] = handle;
    return static_cast<uint32_t>(i + 1);
  }
  if (handles_.size() == kMaxHandles) {
    if (handle.kind == Kind::File) ::close(handle.descriptor);
    return failed(EMFILE);
  }
  handles_.push_back(handle);
  return static_cast<uint32_t>(handles_.size());
}

Semihosting::Handle* Semihosting::find(uint32_t handle) {
  if (handle == 0 || handle > handles_.size() || handles_[handle - 1].kind == Kind::Closed) return nullptr;
  return &handles_[handle - 1];
}

uint32_t Semihosting::open(uint32_t block) {
  const auto name = text(word(block, 0), word(block, 2));
  const uint32_t mode = word(block, 1);
  if (!name || mode > 11) return failed(EINVAL);
  if (*name == ":tt") return add({mode < 4 ? Kind::Input : Kind::Output, -1, 0});
  if (*name == ":semihosting-features") {
    if (mode > 1) return failed(EACCES);
    return add({Kind::Features, -1, 0});
  }
  // Modes of fopen: r, w, a; each with b (odd numbers) and + (bit 1).
  constexpr std::array<int, 6> kFlags = {O_RDONLY,
                                         O_RDWR,
                                         O_WRONLY | O_CREAT | O_TRUNC,
                                         O_RDWR | O_CREAT | O_TRUNC,
                                         O_WRONLY | O_CREAT | O_APPEND,
                                         O_RDWR | O_CREAT | O_APPEND};
  if (!files_.allowed() && refusedFile_.empty()) refusedFile_ = *name;
  const int file = files_.openFile(*name, kFlags[mode / 2]);
  return file < 0 ? failed(errno) : add({Kind::File, file, 0});
}

uint32_t Semihosting::close(uint32_t block) {
  Handle* handle = find(word(block, 0));
  if (handle == nullptr) return failed(EBADF);
  if (handle->kind == Kind::File) ::close(handle->descriptor);
  *handle = {};
  return 0;
}

// Returns the number of bytes that were not written.
uint32_t Semihosting::write(uint32_t block) {
  const Handle* handle = find(word(block, 0));
  uint32_t left = word(block, 2);
  const std::byte* bytes = bus_.find(word(block, 1), left);
  if (handle == nullptr || bytes == nullptr) {
    failed(handle == nullptr ? EBADF : EFAULT);
    return left;
  }
  if (handle->kind == Kind::Output) {
    for (; left > 0; --left) hooks_.write(static_cast<char>(*bytes++));
    return 0;
  }
  if (handle->kind != Kind::File) {
    failed(EBADF);
    return left;
  }
  while (left > 0) {
    const ssize_t done = ::write(handle->descriptor, bytes, left);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) {
      failed(errno);
      break;
    }
    bytes += done;
    left -= static_cast<uint32_t>(done);
  }
  return left;
}

// Returns the number of bytes that were not read.
uint32_t Semihosting::read(uint32_t block) {
  Handle* handle = find(word(block, 0));
  const uint32_t address = word(block, 1), size = word(block, 2);
  uint32_t left = size;
  std::byte* bytes = bus_.find(address, left);
  if (handle == nullptr || bytes == nullptr) {
    failed(handle == nullptr ? EBADF : EFAULT);
    return left;
  }
  if (handle->kind == Kind::Features) {
    while (left > 0 && handle->position < kFeatures.size()) {
      *bytes++ = static_cast<std::byte>(kFeatures[handle->position++]);
      --left;
    }
  } else if (handle->kind == Kind::Input) {
    // Up to the end of a line, as from a terminal.
    while (left > 0) {
      const int byte = hooks_.read();
      if (byte < 0) break;
      *bytes++ = static_cast<std::byte>(byte);
      --left;
      if (byte == '\n') break;
    }
  } else if (handle->kind == Kind::File) {
    while (left > 0) {
      const ssize_t done = ::read(handle->descriptor, bytes, left);
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) failed(errno);
      if (done <= 0) break;
      bytes += done;
      left -= static_cast<uint32_t>(done);
    }
  } else {
    failed(EBADF);
  }
  if (left != size) hooks_.changed(address, size - left);
  return left;
}

uint32_t Semihosting::seek(uint32_t block) {
  Handle* handle = find(word(block, 0));
  const uint32_t position = word(block, 1);
  if (handle == nullptr) return failed(EBADF);
  if (handle->kind == Kind::Features) {
    handle->position = position;
    return 0;
  }
  if (handle->kind != Kind::File) return failed(ESPIPE);
  return lseek(handle->descriptor, static_cast<off_t>(position), SEEK_SET) < 0 ? failed(errno) : 0;
}

uint32_t Semihosting::length(uint32_t block) {
  const Handle* handle = find(word(block, 0));
  if (handle == nullptr) return failed(EBADF);
  if (handle->kind == Kind::Features) return kFeatures.size();
  if (handle->kind != Kind::File) return 0;
  struct stat info {};
  if (fstat(handle->descriptor, &info) != 0) return failed(errno);
  return info.st_size > INT32_MAX ? failed(EOVERFLOW) : static_cast<uint32_t>(info.st_size);
}

uint32_t Semihosting::commandLine(uint32_t block) {
  const uint32_t address = word(block, 0), size = word(block, 1);
  if (commandLine_.size() + 1 > size) return failed(E2BIG);
  std::byte* bytes = bus_.find(address, commandLine_.size() + 1);
  if (bytes == nullptr) return failed(EFAULT);
  std::memcpy(bytes, commandLine_.c_str(), commandLine_.size() + 1);
  bus_.store32(block + 4, static_cast<uint32_t>(commandLine_.size()));
  return 0;
}

uint32_t Semihosting::exit(uint32_t reason, uint32_t code) {
  exitCode_ = reason == kApplicationExit ? static_cast<int>(code) : 1;
  return 0;
}

uint32_t Semihosting::call(uint32_t operation, uint32_t argument) {
  switch (operation) {
    case kOpen:
      return open(argument);
    case kClose:
      return close(argument);
    case kWriteC:
      if (const std::byte* byte = bus_.find(argument, 1)) hooks_.write(static_cast<char>(*byte));
      return 0;
    case kWrite0:
      for (uint32_t address = argument;; ++address) {
        const std::byte* byte = bus_.find(address, 1);
        if (byte == nullptr || *byte == std::byte{0}) return 0;
        hooks_.write(static_cast<char>(*byte));
      }
    case kWrite:
      return write(argument);
    case kRead:
      return read(argument);
    case kReadC:
      return static_cast<uint32_t>(hooks_.read());
    case kIsError:
      return static_cast<int32_t>(word(argument, 0)) < 0 ? 1 : 0;
    case kIsTty: {
      const Handle* handle = find(word(argument, 0));
      return handle != nullptr && (handle->kind == Kind::Input || handle->kind == Kind::Output) ? 1 : 0;
    }
    case kSeek:
      return seek(argument);
    case kLength:
      return length(argument);
    case kRemove: {
      const auto name = text(word(argument, 0), word(argument, 1));
      if (!name) return failed(EINVAL);
      return files_.remove(*name) == 0 ? 0 : failed(errno);
    }
    case kRename: {
      const auto from = text(word(argument, 0), word(argument, 1)),
                 to = text(word(argument, 2), word(argument, 3));
      if (!from || !to) return failed(EINVAL);
      return files_.rename(*from, *to) == 0 ? 0 : failed(errno);
    }
    // Time is that of the board: every run sees the same.
    case kClock:
      return static_cast<uint32_t>(clock_.now() / (kCoreHz / 100));
    case kTime:
      return static_cast<uint32_t>(clock_.now() / kCoreHz);
    case kElapsed:
      bus_.store32(argument, static_cast<uint32_t>(clock_.now()));
      bus_.store32(argument + 4, static_cast<uint32_t>(clock_.now() >> 32));
      return 0;
    case kTickFrequency:
      return kCoreHz;
    case kErrno:
      return error_;
    case kCommandLine:
      return commandLine(argument);
    case kHeapInfo: {
      // Zeros: the C library keeps the heap and stack of its linker script.
      const uint32_t block = word(argument, 0);
      for (uint32_t i = 0; i < 4; ++i) bus_.store32(block + 4 * i, 0);
      return 0;
    }
    case kExit:
      return exit(argument, 0);
    case kExitExtended:
      return exit(word(argument, 0), word(argument, 1));
    default:
      return failed(ENOSYS);  // including SYS_SYSTEM and SYS_TMPNAM
  }
}

}  // namespace carina::platform
