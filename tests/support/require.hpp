// SPDX-License-Identifier: Apache-2.0
// Results in tests: what has to succeed before a test says anything, and what has to be refused.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/result.hpp"

namespace carina {

/// Ends the test with the error at the line that asked, if there is one. (clang 14 has the builtins, and no
/// std::source_location.)
inline void require(const Status& status, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (status.ok()) return;
  ADD_FAILURE_AT(file, line) << status.error().str();  // with what SCOPED_TRACE says
  using ::testing::TestPartResult;
  throw ::testing::AssertionException(
      {TestPartResult::kFatalFailure, file, line, status.error().str().c_str()});
}
/// The value; without one the test ends as above.
template <typename T>
T require(Result<T> result, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (!result.ok()) require(Status(result.error()), file, line);
  return std::move(*result);
}

/// What the error says; of a success nothing, so that no part of a message is found in it.
template <typename T>
std::string errorOf(const Result<T>& result) {
  return result.ok() ? std::string() : result.error().str();
}

}  // namespace carina
