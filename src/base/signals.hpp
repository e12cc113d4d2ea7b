// SPDX-License-Identifier: Apache-2.0
// A process that is ended by a signal leaves no temporary files behind.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace carina {

/// For main(): on SIGINT, SIGTERM, SIGHUP and SIGPIPE, everything registered below is removed and the process
/// ends by that signal (a shell sees status 128 + number); a signal that the caller of the program ignores
/// stays ignored. Truncation of a mapped file (SIGBUS) ends the process with a message and status 1. A write
/// beyond the limit on file sizes (SIGXFSZ) fails with an error.
void installSignalHandlers();

/// Removes everything registered below, like a signal handler: for a process that must end at once.
void removeTemporaries() noexcept;

/// Something that a signal must not leave behind, from construction to destruction: a file, a folder with its
/// contents or only if it is empty, or a process that is working in it.
class RemovedOnSignal {
 public:
  enum class Kind : uint8_t { File, Folder, EmptyFolder };
  RemovedOnSignal(Kind kind, std::string_view path);
  explicit RemovedOnSignal(pid_t process);
  ~RemovedOnSignal() { release(); }
  RemovedOnSignal(RemovedOnSignal&& other) noexcept : entry_(other.entry_) { other.entry_ = nullptr; }
  RemovedOnSignal& operator=(RemovedOnSignal&& other) noexcept;

 private:
  void release();
  void* entry_;
};

/// Registers a file that is mapped at `begin`, so that the SIGBUS handler can name it.
class NamedMapping {
 public:
  NamedMapping(const void* begin, size_t bytes, std::string_view path);
  ~NamedMapping();
  NamedMapping(const NamedMapping&) = delete;
  NamedMapping& operator=(const NamedMapping&) = delete;

 private:
  void* entry_;
};

/// While one exists, signals that end the process are deferred, so that several renames happen together or
/// not at all. Not for code that can block.
class SignalsWait {
 public:
  SignalsWait();
  ~SignalsWait();
  SignalsWait(const SignalsWait&) = delete;
  SignalsWait& operator=(const SignalsWait&) = delete;
};

}  // namespace carina
