// SPDX-License-Identifier: Apache-2.0
// Aborts a rewrite that asks for a node whose operands or attributes do not fit together. Builders create
// nodes in the middle of expressions, so Builder::create throws; the caller of the rewrites turns that into a
// diagnostic. No exception leaves a pass.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "base/result.hpp"

namespace carina::ir {

/// Thrown by Builder::create (op_view.hpp), caught by rejectInvalidNodes.
class InvalidNode : public std::exception {
 public:
  explicit InvalidNode(Error error) : error_(std::move(error)), text_(error_.str()) {}
  const char* what() const noexcept override { return text_.c_str(); }
  const Error& error() const { return error_; }

 private:
  Error error_;
  std::string text_;
};

/// Runs `body`, which returns a Status or Result and may create nodes. A node that cannot be built becomes an
/// error at the source node that it was built for, or else at `place`. The graph is then partly rewritten and
/// must be discarded.
template <typename Body>
auto rejectInvalidNodes(const std::string& place, Body&& body) -> decltype(body()) {
  try {
    return std::forward<Body>(body)();
  } catch (const InvalidNode& invalid) {
    return Error(invalid.error()).at(place);
  }
}

}  // namespace carina::ir
