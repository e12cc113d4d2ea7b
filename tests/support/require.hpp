// SPDX-License-Identifier: Apache-2.0
// Status and Result in tests: steps that must succeed, and errors that are expected.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/result.hpp"

namespace carina {

/// Ends the test if `status` is an error, and reports the error at the caller's line. (clang 14 has the
/// builtins but not std::source_location.)
inline void require(const Status& status, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (status.ok()) return;
  ADD_FAILURE_AT(file, line) << status.error().str();  // includes SCOPED_TRACE messages
  using ::testing::TestPartResult;
  throw ::testing::AssertionException(
      {TestPartResult::kFatalFailure, file, line, status.error().str().c_str()});
}
/// Returns the value; ends the test as above if there is none.
template <typename T>
T require(Result<T> result, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (!result.ok()) require(Status(result.error()), file, line);
  return std::move(*result);
}

/// The error's text; empty on success, so that no expected text is found in it.
template <typename T>
std::string errorOf(const Result<T>& result) {
  return result.ok() ? std::string() : result.error().str();
}

}  // namespace carina
