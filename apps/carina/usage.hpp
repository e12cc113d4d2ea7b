// SPDX-License-Identifier: Apache-2.0
// Messages on wrong usage: in the form of all errors, with what was probably meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace carina::app {

/// The usage error of a first argument that is none of `commands`; empty if it is one, or an option.
std::string unknownCommand(const std::vector<std::string>& commands, std::string_view word);

/// The parser's finding.
struct WrongUsage {
  enum class Kind : uint8_t { Unread, Missing, Other };

  Kind kind = Kind::Other;
  std::string message;
  std::string command;                   // as far as known: "carina compile"
  std::vector<std::string> unread;       // arguments that belong to no option
  std::vector<std::string> optionNames;  // of that command: "--calibrate", ...
};
std::string usageError(const WrongUsage& usage);

}  // namespace carina::app
