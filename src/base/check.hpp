// SPDX-License-Identifier: Apache-2.0
// Assertions that stay enabled in release builds, for errors that only a bug in Carina can cause. Errors that
// a user or a file can cause are returned as Result<T> (result.hpp).
#pragma once

namespace carina {
[[noreturn, gnu::cold]] void checkFailed(const char* expression, const char* file, int line, const char* why);
}  // namespace carina

#define CARINA_CHECK(expression, why) \
  (static_cast<bool>(expression) ? void(0) : ::carina::checkFailed(#expression, __FILE__, __LINE__, why))
#define CARINA_UNREACHABLE(why) ::carina::checkFailed("unreachable", __FILE__, __LINE__, why)
