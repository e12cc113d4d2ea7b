// SPDX-License-Identifier: Apache-2.0
// Parsing of numbers in options and scripts.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace carina::platform {

/// Parses the whole text as a number; `how` is passed to std::from_chars (a base).
template <typename Number, typename... How>
std::optional<Number> parseNumber(std::string_view text, How... how) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, how...);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional<Number>(value)
                                                                  : std::nullopt;
}

}  // namespace carina::platform
