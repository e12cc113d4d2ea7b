// SPDX-License-Identifier: Apache-2.0
// Result<T>: a value, or the diagnostics that say why there is none. Used for all errors that a user or a
// file can cause.
#pragma once

#include <fmt/core.h>

#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/codes.hpp"

namespace carina {

/// One message for the user: its kind, its location (file, place in it), what is wrong, and what to do about
/// it. Printed as "file: place: message\n  remedy"; empty parts are left out.
struct Diagnostic {
  std::string message;
  std::string remedy;
  std::string file;
  std::string place;  // node name, byte offset, option name, ...
  Code code = Code::None;

  std::string str() const;
};

/// One or more diagnostics. Built with fail(...); higher floors add context (which file, which node). Holds a
/// pointer, so that a Result costs time and code size only on failure. A moved-from Error has no diagnostics,
/// and a Status whose error was taken is good: neither may be inspected.
class [[nodiscard]] Error {
 public:
  explicit Error(Diagnostic diagnostic);
  explicit Error(std::vector<Diagnostic> diagnostics);
  Error(const Error& other);
  Error& operator=(const Error& other);
  Error(Error&&) noexcept = default;
  Error& operator=(Error&&) noexcept = default;
  ~Error() = default;

  const std::vector<Diagnostic>& diagnostics() const { return *diagnostics_; }
  const std::string& message() const { return diagnostics_->front().message; }
  Code code() const { return diagnostics_->front().code; }
  std::string str() const;  // all diagnostics, separated by newlines

  /// Fills in the file (place) of every diagnostic that has none yet.
  Error&& inFile(std::string_view file) &&;
  Error&& at(std::string_view place) &&;
  Error&& withRemedy(std::string_view remedy) &&;
  void append(Error other);

 private:
  template <typename T>
  friend class Result;
  struct Deleter {
    void operator()(std::vector<Diagnostic>* diagnostics) const noexcept;
  };

  Error() = default;  // of a Result without an error

  std::unique_ptr<std::vector<Diagnostic>, Deleter> diagnostics_;
};

[[gnu::cold]] Error failFormatted(Code code, fmt::string_view format, fmt::format_args arguments);

/// fail(Code::HardwareLimit, "kernel height {} exceeds 64", h): an Error of a kind with a formatted message.
template <typename... Args>
Error fail(Code code, fmt::format_string<Args...> format, Args&&... args) {
  return failFormatted(code, format, fmt::make_format_args(args...));
}

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)
  template <typename U,
            typename = std::enable_if_t<
                std::is_convertible_v<U&&, T> && !std::is_same_v<std::decay_t<U>, T> &&
                !std::is_same_v<std::decay_t<U>, Result> && !std::is_same_v<std::decay_t<U>, Error>>>
  Result(U&& value) : value_(std::forward<U>(value)) {}  // NOLINT(google-explicit-constructor)

  explicit operator bool() const { return ok(); }
  bool ok() const { return value_.has_value(); }

  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(value()); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  T& value() & {
    CARINA_CHECK(ok(), "value() of a failed Result");
    return *value_;
  }
  const T& value() const& {
    CARINA_CHECK(ok(), "value() of a failed Result");
    return *value_;
  }
  T&& value() && { return std::move(value()); }
  Error& error() & {
    CARINA_CHECK(!ok(), "error() of a good Result");
    return error_;
  }
  const Error& error() const& {
    CARINA_CHECK(!ok(), "error() of a good Result");
    return error_;
  }
  Error&& error() && { return std::move(error()); }

 private:
  std::optional<T> value_;
  Error error_;  // set if there is no value
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)
  explicit operator bool() const { return ok(); }
  bool ok() const { return !error_.diagnostics_; }
  Error& error() & {
    CARINA_CHECK(!ok(), "error() of a good Result");
    return error_;
  }
  const Error& error() const& {
    CARINA_CHECK(!ok(), "error() of a good Result");
    return error_;
  }
  Error&& error() && { return std::move(error()); }

 private:
  Error error_;
};

using Status = Result<void>;

}  // namespace carina

#define CARINA_CONCAT_(a, b) a##b
#define CARINA_CONCAT(a, b) CARINA_CONCAT_(a, b)

/// CARINA_TRY(Graph graph, readGraph(file)); — declares the value, or returns the error from the enclosing
/// function.
#define CARINA_TRY(declaration, expression) \
  CARINA_TRY_(CARINA_CONCAT(carina_try_, __COUNTER__), declaration, expression)
// NOLINTBEGIN(bugprone-macro-parentheses): a declaration and the name of a variable cannot stand in
// parentheses
#define CARINA_TRY_(temporary, declaration, expression)     \
  auto temporary = (expression);                            \
  if (!temporary.ok()) return std::move(temporary).error(); \
  declaration = std::move(temporary).value()
// NOLINTEND(bugprone-macro-parentheses)

/// CARINA_RETURN_IF_ERROR(verify(graph)); — for Status.
#define CARINA_RETURN_IF_ERROR(expression)                            \
  do {                                                                \
    auto carina_status = (expression);                                \
    if (!carina_status.ok()) return std::move(carina_status).error(); \
  } while (false)
