// SPDX-License-Identifier: Apache-2.0
#include "firmware/toolchain.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "base/signals.hpp"

extern char** environ;

namespace carina::firmware {
namespace {

namespace fs = std::filesystem;

/// Reads to the end, then closes the descriptor.
std::string readAll(int descriptor) {
  std::string text;
  char chunk[4096];
  for (;;) {
    const ssize_t count = read(descriptor, chunk, sizeof(chunk));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.append(chunk, static_cast<size_t>(count));
  }
  close(descriptor);
  return text;
}

}  // namespace

Result<CommandOutcome> runCommand(const std::vector<std::string>& command, const fs::path& folder) {
  int ends[2];
  if (pipe(ends) != 0) return fail(Code::ToolFailed, "cannot create a pipe: {}", std::strerror(errno));
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& part : command) arguments.push_back(const_cast<char*>(part.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::optional<RemovedOnSignal> guard;
  if (failed == 0) guard.emplace(child);
  CommandOutcome outcome;
  outcome.output = readAll(ends[0]);
  if (failed != 0)
    return fail(Code::ToolFailed, "{} cannot be started: {}", command.front(), std::strerror(failed))
        .withRemedy("install the cross compiler (Debian: gcc-arm-none-eabi), or name one with --compiler");
  int state = 0;
  while (waitpid(child, &state, 0) < 0 && errno == EINTR) {
  }
  outcome.status = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
  return outcome;
}

std::vector<std::string> kitCores(const fs::path& kit) {
  std::vector<std::string> cores;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(kit / "lib", ignored)) {
    if (fs::exists(entry.path() / "flags")) cores.push_back(entry.path().filename());
  }
  std::sort(cores.begin(), cores.end());
  return cores;
}

Result<fs::path> findKit(const fs::path& given, const std::string& core) {
  std::error_code ignored;
  fs::path kit = given;
  if (const char* variable = std::getenv("CARINA_FIRMWARE"); kit.empty() && variable != nullptr)
    kit = variable;
  if (kit.empty())
    kit = fs::read_symlink("/proc/self/exe", ignored).parent_path() / "../share/carina/firmware";
  kit = fs::weakly_canonical(kit, ignored);
  const std::vector<std::string> cores = kitCores(kit);
  if (cores.empty()) {
    return fail(Code::ToolFailed, "there is no firmware kit in {}", kit.string())
        .withRemedy(
            "build Carina where arm-none-eabi-g++ is installed (scripts/deps.sh, then make), or name a kit "
            "with --kit or CARINA_FIRMWARE");
  }
  if (std::find(cores.begin(), cores.end(), core) == cores.end()) {
    return fail(Code::ToolFailed, "the firmware kit in {} has no libraries for {}", kit.string(), core)
        .withRemedy(fmt::format("it has: {}", fmt::join(cores, ", ")));
  }
  return kit;
}

}  // namespace carina::firmware
