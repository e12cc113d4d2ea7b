// SPDX-License-Identifier: Apache-2.0
#include "device/work_budget.hpp"

#include <fmt/format.h>

namespace carina::device {

bool WorkBudget::take(int64_t steps, std::string_view what) {
  if (steps <= left_) {
    left_ -= steps;
    return true;
  }
  refused_ = fmt::format(
      "{}: {:.3g} steps, and the limit for this execution is {:.3g}, of which {:.3g} are spent", what,
      static_cast<double>(steps), static_cast<double>(most_), static_cast<double>(most_ - left_));
  return false;
}

}  // namespace carina::device
