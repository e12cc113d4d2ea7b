// SPDX-License-Identifier: Apache-2.0
// Turns checks (check.hpp) that fail inside a body into errors: for bodies that change nothing but their own
// data, which can be discarded. Elsewhere a failed check ends the process.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "base/result.hpp"

namespace carina {

/// Thrown instead of ending the process while a FailedChecks of this thread exists.
class CheckFailure : public std::exception {
 public:
  explicit CheckFailure(std::string what) : what_(std::move(what)) {}
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  std::string what_;
};

/// While one exists, checks that fail in this thread throw CheckFailure.
class FailedChecks {
 public:
  FailedChecks();
  ~FailedChecks();
  FailedChecks(const FailedChecks&) = delete;
  FailedChecks& operator=(const FailedChecks&) = delete;
};

/// Runs `body`, which returns a Status or Result. A check that fails in it on this thread is its error.
template <typename Body>
auto rejectFailedChecks(Body&& body) -> decltype(body()) {
  const FailedChecks thrown;
  try {
    return std::forward<Body>(body)();
  } catch (const CheckFailure& failure) {
    return Error(
        Diagnostic{failure.what(), "this is a bug in Carina: please report it with the network", "", ""});
  }
}

}  // namespace carina
