// SPDX-License-Identifier: Apache-2.0
// What all JSON outputs have in common: they say which schema they follow (docs/schema), and in what version.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace carina::report {

// Objects begin as Json::object(): a null value that turns into one in operator[] is left broken when memory
// runs out there (nlohmann::json 3.11.2), and its destructor ends the program.

/// An object whose first member is "schema": "carina.NAME/VERSION". The version grows when a member is
/// removed or changes its meaning; new members do not change it.
nlohmann::ordered_json document(std::string_view name, int version = 1);

/// As files hold it: indented, with a newline at the end.
std::string documentText(const nlohmann::ordered_json& json);

/// A number, or null for what JSON has no number for (infinite, NaN).
nlohmann::ordered_json finiteNumber(double value);

}  // namespace carina::report
