// SPDX-License-Identifier: Apache-2.0
// Strings of the text form: in double quotes, with \" \\ \n and \xNN for what cannot stand there as it is.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace carina::ir {

/// The text in double quotes on one line; bytes from 0x80 up stay as they are.
std::string quoted(std::string_view text);

/// What stands between the quotes of quoted() (without them); nothing when an escape is unknown or cut off.
std::optional<std::string> unquoted(std::string_view inner);

}  // namespace carina::ir
