// SPDX-License-Identifier: Apache-2.0
// Strings of the text form: in double quotes, with \" \\ \n and \xNN for characters that need an escape.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace carina::ir {

/// The text in double quotes on one line; bytes from 0x80 up are unchanged.
std::string quoted(std::string_view text);

/// Decodes the text between the quotes of quoted(); nullopt if an escape is unknown or cut off.
std::optional<std::string> unquoted(std::string_view inner);

}  // namespace carina::ir
