// SPDX-License-Identifier: Apache-2.0
// Assertions that stay on in release builds: for what only a bug in Carina can cause. What a user or a file
// can cause returns Result<T> instead (result.hpp).
#pragma once

namespace carina {
[[noreturn, gnu::cold]] void checkFailed(const char* expression, const char* file, int line, const char* why);
}  // namespace carina

#define CARINA_CHECK(expression, why) \
  (static_cast<bool>(expression) ? void(0) : ::carina::checkFailed(#expression, __FILE__, __LINE__, why))
#define CARINA_UNREACHABLE(why) ::carina::checkFailed("unreachable", __FILE__, __LINE__, why)
