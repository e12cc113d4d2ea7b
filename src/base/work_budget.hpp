// SPDX-License-Identifier: Apache-2.0
// Limits on the work that an untrusted file may cause on the host: a few bytes can request years of work and
// more memory than there is. Code that executes something on behalf of a file (kernels, the NPU model, the
// TOSA interpreter, the float executor, the virtual platform) knows its cost before it starts, in steps of
// about a nanosecond of one core, and starts it only if that many are left.
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

/// Remedy for errors about limits. Hardly any file needs that much for its size, but one may.
constexpr const char* kTrustRemedy =
    "--trusted removes the limits: use it only for files from a trusted source";

/// Remedy if a program runs: one that does not end is more often in a loop than in a long computation.
constexpr const char* kLongRunRemedy =
    "if the program loops, these inputs may keep a condition true; --trusted removes the limits: use it only "
    "for files from a trusted source";

/// Steps for one execution on behalf of a file of that size. Files of less than a megabyte end within two
/// seconds; each byte beyond that adds as many steps as a layer needs per weight.
constexpr int64_t workFor(uint64_t fileBytes) {
  constexpr uint64_t kSmall = uint64_t{1} << 20, kMost = uint64_t{1} << 40;
  const uint64_t file = fileBytes < kMost ? fileBytes : kMost;
  const uint64_t beyond = file > kSmall ? file - kSmall : 0;
  return (int64_t{1} << 30) + static_cast<int64_t>(256 * (file - beyond) + 8192 * beyond);
}
/// Bytes of memory that the host provides for it.
constexpr int64_t memoryFor(uint64_t fileBytes) {
  constexpr uint64_t kMost = uint64_t{1} << 40;
  return (int64_t{384} << 20) + 64 * static_cast<int64_t>(fileBytes < kMost ? fileBytes : kMost);
}

/// May be shared by threads.
class WorkBudget {
 public:
  /// `steps` for one execution; no limit on memory.
  explicit WorkBudget(int64_t steps) : most_(steps), left_(steps) {}
  /// The limits for a file of that size; none if it is trusted.
  WorkBudget(uint64_t fileBytes, bool trusted)
      : most_(trusted ? kNoLimit : workFor(fileBytes)),
        bytes_(trusted ? kNoLimit : memoryFor(fileBytes)),
        left_(most_) {}
  /// The limits for files that are read together; missing ones do not count.
  static WorkBudget ofFiles(std::initializer_list<std::filesystem::path> files, bool trusted);

  /// To be called at the start of each execution.
  void renew();
  int64_t most() const { return most_; }
  int64_t left() const { return left_; }
  int64_t bytes() const { return bytes_; }
  void spend(int64_t steps);
  /// Spends steps on `what`, which is about to start; false if there are not enough left.
  bool take(int64_t steps, std::string_view what);
  /// take() that returns a refusal as an error.
  Status require(double steps, std::string_view what);
  /// What was refused, as a sentence; empty if nothing was.
  std::string refused() const;

 private:
  static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
  const int64_t most_, bytes_ = kNoLimit;
  std::atomic<int64_t> left_;
  mutable std::mutex mutex_;  // guards refused_
  std::string refused_;
};

}  // namespace carina
