// SPDX-License-Identifier: Apache-2.0
#include "option_values.hpp"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <optional>
#include <system_error>

#include "npu/targets/target_name.hpp"

namespace carina::app {
namespace {

/// The multiplier of a suffix: "", "K", "KB", "KiB", "M", ...
std::optional<double> unitOf(std::string_view suffix) {
  constexpr std::string_view kUnits = "KMG";
  if (suffix.empty() || suffix == "B") return 1.0;
  const char letter = suffix.front() >= 'a' ? static_cast<char>(suffix.front() - 'a' + 'A') : suffix.front();
  const size_t unit = kUnits.find(letter);
  const std::string_view rest = suffix.substr(1);
  if (unit == std::string_view::npos || (!rest.empty() && rest != "B" && rest != "iB")) return std::nullopt;
  return std::exp2(10.0 * static_cast<double>(unit + 1));
}

std::optional<int64_t> bytesOf(std::string_view text) {
  constexpr double kMost = 0x1p50;
  double number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc()) return std::nullopt;
  const auto unit = unitOf(text.substr(static_cast<size_t>(end - text.data())));
  if (!unit) return std::nullopt;
  const double bytes = number * *unit;
  if (!(bytes >= 1 && bytes <= kMost) || std::floor(bytes) != bytes) return std::nullopt;
  return static_cast<int64_t>(bytes);
}

std::string systemText(int error) {
  return std::generic_category().message(error);
}

constexpr int64_t kMaxPipeBytes = int64_t{4} << 30;

/// Copies everything from `from` to the file `to`; returns the system's error code, 0 if none.
int copyAll(int from, int to) {
  std::array<char, 1 << 16> buffer;
  int64_t total = 0;
  for (;;) {
    const ssize_t count = ::read(from, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count < 0 ? errno : 0;
    total += count;
    if (total > kMaxPipeBytes) return EFBIG;
    for (ssize_t done = 0; done < count;) {
      const ssize_t n = ::write(to, buffer.data() + done, static_cast<size_t>(count - done));
      if (n < 0 && errno != EINTR) return errno;
      if (n > 0) done += n;
    }
  }
}

/// Copies the contents of a pipe into memory and sets `path` to the name of that file. Returns the error, if
/// any.
std::string keepPipe(std::string& path) {
  const int pipe = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (pipe < 0) return path + ": cannot open: " + systemText(errno);
  const int memory = ::memfd_create("carina input", MFD_CLOEXEC);
  const int error = memory < 0 ? errno : copyAll(pipe, memory);
  ::close(pipe);
  if (error != 0) {
    if (memory >= 0) ::close(memory);
    return path + ": cannot read: " + systemText(error);
  }
  path = fmt::format("/proc/self/fd/{}", memory);
  return {};
}

}  // namespace

ValueRule oneOf(std::vector<std::string> choices) {
  return {[choices = std::move(choices)](std::string& text) {
            for (const std::string& choice : choices) {
              if (choice == text) return std::string();
            }
            return fmt::format("there is no '{}'\n  choices: {}", text, fmt::join(choices, ", "));
          },
          ""};
}

ValueRule byteCount() {
  return {[](std::string& text) {
            const auto bytes = bytesOf(text);
            if (!bytes)
              return fmt::format("'{}' is not a number of bytes\n  for example 262144, 256K or 1.5M", text);
            text = std::to_string(*bytes);
            return std::string();
          },
          ""};
}

ValueRule targetName() {
  return {[](std::string& text) {
            text = npu::canonicalTargetName(text);
            return std::string();
          },
          ""};
}

Option addNamedFiles(Command& command, const std::string& flag, std::vector<NamedFile>& files,
                     const std::string& description) {
  const auto store = [flag, &files](const std::vector<std::string>& texts) {
    files.clear();
    for (const std::string& text : texts) {
      const size_t equals = text.find('=');
      struct stat info {};
      const bool isFile = equals == std::string::npos || ::stat(text.c_str(), &info) == 0;
      std::string path = isFile ? text : text.substr(equals + 1);
      if (const std::string problem = inputFile().apply(path); !problem.empty()) throwBadValue(flag, problem);
      files.push_back({isFile ? "" : text.substr(0, equals), std::move(path)});
    }
  };
  return command.option(flag, store, description).oneValueEach();
}

void addTrustedOption(Command& command, bool& trusted) {
  command.flag("--trusted", trusted, "No limits on work and memory, for files from a trusted source");
}

ValueRule inputFile() {
  return {[](std::string& path) {
            struct stat info {};
            if (::stat(path.c_str(), &info) != 0 || !S_ISFIFO(info.st_mode)) return std::string();
            return keepPipe(path);
          },
          ""};
}

}  // namespace carina::app
