// SPDX-License-Identifier: Apache-2.0
// What a file that nobody vouches for may make the host do: a few bytes can ask for years of work and for
// more memory than there is. Whoever executes something on behalf of a file (kernels, the NPU model, the TOSA
// interpreter, the float executor, the virtual platform) knows what it takes before it begins, in steps of
// about a nanosecond of one core, and begins it only when that many are left.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <limits>
#include <mutex>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace carina {

/// Of errors about limits. Hardly any file needs as much for its size, but one may.
constexpr const char* kTrustRemedy = "--trusted takes the limits away: for files whose maker you know";

/// The same where a program runs: what comes to no end is a loop more often than a long computation.
constexpr const char* kLongRunRemedy =
    "if the program loops, these inputs may keep a condition true; --trusted takes the limits away: for "
    "files "
    "whose maker you know";

/// Steps for one execution on behalf of a file of so many bytes. What has less than a megabyte ends within
/// two seconds; beyond, a byte brings as many as a layer takes with a weight.
constexpr int64_t workFor(uint64_t fileBytes) {
  constexpr uint64_t kSmall = uint64_t{1} << 20, kMost = uint64_t{1} << 40;
  const uint64_t file = fileBytes < kMost ? fileBytes : kMost;
  const uint64_t beyond = file > kSmall ? file - kSmall : 0;
  return (int64_t{1} << 30) + static_cast<int64_t>(256 * (file - beyond) + 8192 * beyond);
}
/// Bytes of memory that the host sets aside for it.
constexpr int64_t memoryFor(uint64_t fileBytes) {
  constexpr uint64_t kMost = uint64_t{1} << 40;
  return (int64_t{384} << 20) + 64 * static_cast<int64_t>(fileBytes < kMost ? fileBytes : kMost);
}

/// Threads may share one.
class WorkBudget {
 public:
  /// Steps for one execution; as much memory as there is.
  explicit WorkBudget(int64_t steps) : most_(steps), left_(steps) {}
  /// Of a file of so many bytes; without limits when it is trusted.
  WorkBudget(uint64_t fileBytes, bool trusted)
      : most_(trusted ? kNoLimit : workFor(fileBytes)),
        bytes_(trusted ? kNoLimit : memoryFor(fileBytes)),
        left_(most_) {}
  /// Of files that are read together, as far as they are there.
  static WorkBudget ofFiles(std::initializer_list<std::filesystem::path> files, bool trusted);

  /// At the start of each execution.
  void renew();
  int64_t most() const { return most_; }
  int64_t left() const { return left_; }
  int64_t bytes() const { return bytes_; }
  void spend(int64_t steps);
  /// Takes steps for what is about to begin; false when there are not as many left.
  bool take(int64_t steps, std::string_view what);
  /// The same with the refusal as an error.
  Status require(double steps, std::string_view what);
  /// What was not begun, as a sentence; empty when everything was.
  std::string refused() const;

 private:
  static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
  const int64_t most_, bytes_ = kNoLimit;
  std::atomic<int64_t> left_;
  mutable std::mutex mutex_;  // of refused_
  std::string refused_;
};

}  // namespace carina
