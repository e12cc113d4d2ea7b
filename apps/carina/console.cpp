// SPDX-License-Identifier: Apache-2.0
#include "console.hpp"

#include <unistd.h>

#include <cstdio>

namespace carina::app {

int report(const Error& error) {
  for (const Diagnostic& diagnostic : error.diagnostics()) fmt::print(stderr, "carina: error: {}\n", diagnostic.str());
  return 1;
}

std::function<void(size_t, size_t)> progressBar(std::string label) {
  if (isatty(STDERR_FILENO) == 0) return [](size_t, size_t) {};
  return [label = std::move(label)](size_t done, size_t total) {
    constexpr size_t kWidth = 32;
    if (total < 2) return;
    const size_t filled = done * kWidth / total;
    fmt::print(stderr, "\r{} [{:=<{}}{: <{}}] {}/{}", label, "", filled, "", kWidth - filled, done, total);
    if (done == total) fmt::print(stderr, "\r\033[K");
    std::fflush(stderr);
  };
}

std::string bytesText(int64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  if (bytes < 1024 * 1024) return fmt::format("{:.1f} KiB", static_cast<double>(bytes) / 1024.0);
  return fmt::format("{:.2f} MiB", static_cast<double>(bytes) / (1024.0 * 1024.0));
}

std::string countText(int64_t count) {
  std::string digits = std::to_string(count);
  for (int64_t at = static_cast<int64_t>(digits.size()) - 3; at > (count < 0 ? 1 : 0); at -= 3) {
    digits.insert(static_cast<size_t>(at), ",");
  }
  return digits;
}

}  // namespace carina::app
