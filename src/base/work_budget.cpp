// SPDX-License-Identifier: Apache-2.0
#include "base/work_budget.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace carina {

WorkBudget WorkBudget::ofFiles(std::initializer_list<std::filesystem::path> files, bool trusted) {
  uint64_t bytes = 0;
  for (const std::filesystem::path& file : files) {
    std::error_code failed;
    const uint64_t size = std::filesystem::file_size(file, failed);
    if (!failed) bytes += size;
  }
  return WorkBudget(bytes, trusted);
}

void WorkBudget::renew() {
  left_ = most_;
  const std::lock_guard lock(mutex_);
  refused_.clear();
}

void WorkBudget::spend(int64_t steps) {
  int64_t left = left_;
  while (!left_.compare_exchange_weak(left, left - std::min(steps, left))) {
  }
}

bool WorkBudget::take(int64_t steps, std::string_view what) {
  int64_t left = left_;
  while (steps <= left) {
    if (left_.compare_exchange_weak(left, left - steps)) return true;
  }
  const std::lock_guard lock(mutex_);
  refused_ = fmt::format(
      "{}: {:.3g} steps, but the limit for this execution is {:.3g}, of which {:.3g} are spent", what,
      static_cast<double>(steps), static_cast<double>(most_), static_cast<double>(most_ - left));
  return false;
}

Status WorkBudget::require(double steps, std::string_view what) {
  constexpr double kMost = 4.6e18;
  if (take(static_cast<int64_t>(std::min(steps, kMost)), what)) return {};
  return fail(Code::Excessive, "{}", refused()).withRemedy(kTrustRemedy);
}

std::string WorkBudget::refused() const {
  const std::lock_guard lock(mutex_);
  return refused_;
}

}  // namespace carina
