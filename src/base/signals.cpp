// SPDX-License-Identifier: Apache-2.0
#include "base/signals.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstring>

namespace carina {
namespace {

/// An entry that handlers read. Entries are reused and never freed, because a handler may access any of them
/// at any time.
struct Claim {
  enum class Use : uint8_t { Free, Filling, File, Folder, EmptyFolder, Process, Mapping };
  std::atomic<Use> use{Use::Free};
  Claim* next = nullptr;
  pid_t process = 0;
  const void* begin = nullptr;
  size_t bytes = 0;
  std::array<char, PATH_MAX> path{};
};

std::atomic<Claim*> entries{nullptr};
std::atomic<int> waiting{0};  // SignalsWait objects alive
std::atomic<int> arrived{0};  // the signal that arrived meanwhile

/// An unused entry, marked as being filled.
Claim* claim() {
  for (Claim* entry = entries.load(); entry != nullptr; entry = entry->next) {
    Claim::Use free = Claim::Use::Free;
    if (entry->use.compare_exchange_strong(free, Claim::Use::Filling)) return entry;
  }
  auto* entry = new Claim;
  entry->use = Claim::Use::Filling;
  entry->next = entries.load();
  while (!entries.compare_exchange_weak(entry->next, entry)) {
  }
  return entry;
}

void setPath(Claim& entry, std::string_view path) {
  const size_t length = std::min(path.size(), entry.path.size() - 1);
  std::memcpy(entry.path.data(), path.data(), length);
  entry.path[length] = '\0';
}

// From here on, only async-signal-safe functions.

/// rm -rf in a separate process: no function that traverses folders may be called in a handler.
void removeFolder(char* path) {
  char program[] = "rm", flags[] = "-rf", end[] = "--";
  char* const arguments[] = {program, flags, end, path, nullptr};
  char* const environment[] = {nullptr};
  const pid_t child = ::_Fork();
  if (child == 0) {
    ::execve("/bin/rm", arguments, environment);
    ::_exit(127);
  }
  while (child > 0 && ::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void stopProcess(pid_t process) {
  ::kill(process, SIGTERM);
  while (::waitpid(process, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void removeAll() {
  for (Claim* entry = entries.load(); entry != nullptr; entry = entry->next) {
    if (entry->use.load() == Claim::Use::Process) stopProcess(entry->process);
  }
  for (Claim* entry = entries.load(); entry != nullptr; entry = entry->next) {
    const Claim::Use use = entry->use.load();
    if (use == Claim::Use::File) ::unlink(entry->path.data());
    if (use == Claim::Use::Folder) removeFolder(entry->path.data());
  }
  // An outer folder is empty when the inner one is gone.
  for (bool again = true; again;) {
    again = false;
    for (Claim* entry = entries.load(); entry != nullptr; entry = entry->next)
      again |= entry->use.load() == Claim::Use::EmptyFolder && ::rmdir(entry->path.data()) == 0;
  }
}

void endBySignal(int number) {
  removeAll();
  ::signal(number, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
  ::raise(number);
  ::_exit(128 + number);
}

void onEndingSignal(int number) {
  if (waiting.load() > 0) {
    arrived = number;
    return;
  }
  endBySignal(number);
}

void say(const char* text) {
  size_t length = std::strlen(text);
  while (length > 0) {
    const ssize_t n = ::write(STDERR_FILENO, text, length);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    text += n;
    length -= static_cast<size_t>(n);
  }
}

void onBusError(int number, siginfo_t* info, void*) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  for (Claim* entry = entries.load(); entry != nullptr; entry = entry->next) {
    if (entry->use.load() != Claim::Use::Mapping) continue;
    const auto begin = reinterpret_cast<uintptr_t>(entry->begin);
    if (address < begin || address - begin >= entry->bytes) continue;
    say("carina: error[E0101]: ");
    say(entry->path.data());
    say(": became shorter, or could not be read, while it was in use\n  try again when nothing is writing to "
        "it\n");
    removeAll();
    ::_exit(1);
  }
  endBySignal(number);
}

}  // namespace

void removeTemporaries() noexcept {
  removeAll();
}

void installSignalHandlers() {
  struct sigaction action {};
  sigfillset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  action.sa_handler = onEndingSignal;
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    struct sigaction before {};
    if (::sigaction(number, nullptr, &before) == 0 && before.sa_handler != SIG_IGN)
      ::sigaction(number, &action, nullptr);
  }
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = onBusError;
  ::sigaction(SIGBUS, &action, nullptr);
  ::signal(SIGXFSZ, SIG_IGN);
}

RemovedOnSignal::RemovedOnSignal(Kind kind, std::string_view path) {
  Claim* entry = claim();
  setPath(*entry, path);
  entry->use = kind == Kind::Folder        ? Claim::Use::Folder
               : kind == Kind::EmptyFolder ? Claim::Use::EmptyFolder
                                           : Claim::Use::File;
  entry_ = entry;
}

RemovedOnSignal::RemovedOnSignal(pid_t process) {
  Claim* entry = claim();
  entry->process = process;
  entry->use = Claim::Use::Process;
  entry_ = entry;
}

RemovedOnSignal& RemovedOnSignal::operator=(RemovedOnSignal&& other) noexcept {
  if (this != &other) {
    release();
    entry_ = other.entry_;
    other.entry_ = nullptr;
  }
  return *this;
}

void RemovedOnSignal::release() {
  if (entry_ != nullptr) static_cast<Claim*>(entry_)->use = Claim::Use::Free;
  entry_ = nullptr;
}

NamedMapping::NamedMapping(const void* begin, size_t bytes, std::string_view path) {
  Claim* entry = claim();
  entry->begin = begin;
  entry->bytes = bytes;
  setPath(*entry, path);
  entry->use = Claim::Use::Mapping;
  entry_ = entry;
}

NamedMapping::~NamedMapping() {
  static_cast<Claim*>(entry_)->use = Claim::Use::Free;
}

SignalsWait::SignalsWait() {
  waiting.fetch_add(1);
}

SignalsWait::~SignalsWait() {
  if (waiting.fetch_sub(1) == 1) {
    if (const int number = arrived.exchange(0); number != 0) ::raise(number);
  }
}

}  // namespace carina
