// SPDX-License-Identifier: Apache-2.0
// What a test needs to succeed before it says anything.
#pragma once

#include <stdexcept>

#include "base/result.hpp"

namespace carina {

/// Ends the test with the error and the line that asked, if there is one. (clang 14 has the builtins, and no
/// std::source_location.)
inline void require(const Status& status, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (!status.ok()) throw std::runtime_error(fmt::format("{}:{}: {}", file, line, status.error().str()));
}
/// The value; without one the test ends as above.
template <typename T>
T require(Result<T> result, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  require(result.ok() ? Status() : Status(std::move(result).error()), file, line);
  return std::move(*result);
}

}  // namespace carina
