// SPDX-License-Identifier: Apache-2.0
// Reading JSON that someone else wrote.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "base/result.hpp"

namespace carina {

struct JsonRules {
  int depth = 64;           // the most values that may contain a value
  bool comments = false;    // of C and C++
  bool uniqueKeys = false;  // otherwise, the last value of a key counts
};

/// The document in a text of UTF-8. Errors are of `code`, name line and column, and read "is not valid JSON:
/// ...", "contains 'K' twice in one object" or "is nested too deeply".
Result<nlohmann::json> parseJson(std::string_view text, Code code = Code::Damaged,
                                 const JsonRules& rules = {});

}  // namespace carina
