// SPDX-License-Identifier: Apache-2.0
#include "support/child_process.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.hpp"
#include "support/contents.hpp"
#include "support/temp_dir.hpp"

namespace carina::test {
namespace {

constexpr rlim_t kAddressSpace = rlim_t{8} << 30;

void limit(int resource, rlim_t most) {
  const rlimit both{most, most};
  ::setrlimit(resource, &both);
}

void redirect(const char* path, int flags, int descriptor) {
  const int file = ::open(path, flags, 0600);
  if (file < 0 || ::dup2(file, descriptor) < 0) ::_exit(126);
  ::close(file);
}

}  // namespace

bool sanitized() {
#if defined(__SANITIZE_ADDRESS__)
  return true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
  return true;
#else
  return false;
#endif
#else
  return false;
#endif
}

ChildOutcome runChild(const std::vector<std::string>& arguments, const ChildLimits& limits) {
  const TempDir folder;
  const std::string out = (folder / "out").string(), err = (folder / "err").string();
  std::vector<char*> pointers;
  pointers.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  const pid_t child = ::fork();
  CARINA_CHECK(child >= 0, "a test needs a child process");
  if (child == 0) {
    redirect("/dev/null", O_RDONLY, 0);
    redirect(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 1);
    redirect(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 2);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_CPU, static_cast<rlim_t>(limits.cpuSeconds));
    if (!sanitized()) limit(RLIMIT_AS, kAddressSpace);
    ::execv(pointers[0], pointers.data());
    ::_exit(127);
  }
  int state = 0;
  rusage usage{};
  while (::wait4(child, &state, 0, &usage) < 0) CARINA_CHECK(errno == EINTR, "a child process is lost");
  ChildOutcome outcome;
  if (WIFEXITED(state)) outcome.status = WEXITSTATUS(state);
  if (WIFSIGNALED(state)) outcome.signal = WTERMSIG(state);
  outcome.peakBytes = static_cast<int64_t>(usage.ru_maxrss) * 1024;
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  outcome.cpuSeconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  outcome.out = contentsOf(out);
  outcome.err = contentsOf(err);
  return outcome;
}

}  // namespace carina::test
