// SPDX-License-Identifier: Apache-2.0
#include "usage.hpp"

#include <algorithm>

#include "base/nearest.hpp"
#include "console.hpp"

namespace carina::app {
namespace {

bool isOption(const std::string& argument) {
  return argument.size() > 1 && argument.front() == '-';
}

}  // namespace

std::string unknownCommand(const std::vector<std::string>& commands, std::string_view word) {
  if (word.starts_with('-')) return {};
  if (std::find(commands.begin(), commands.end(), word) != commands.end()) return {};
  const std::string nearest = nearestWord(word, commands);
  return diagnosticText("error", {"unknown command '" + std::string(word) + "'",
                                  nearest.empty() ? "carina --help lists the commands"
                                                  : "did you mean 'carina " + nearest + "'?",
                                  "", "", Code::UnknownName});
}

std::string usageError(const WrongUsage& usage) {
  std::string what = usage.message, remedy = usage.command + " --help lists the options";
  const auto unknown = std::find_if(usage.unread.begin(), usage.unread.end(), isOption);
  // A misspelt option is missing as well: what was written is more informative than what was not.
  if (usage.kind == WrongUsage::Kind::Unread ||
      (usage.kind == WrongUsage::Kind::Missing && unknown != usage.unread.end())) {
    what = "unexpected arguments:";
    for (const std::string& argument : usage.unread) what += " " + argument;
    if (unknown != usage.unread.end()) {
      const std::string name = unknown->substr(0, unknown->find('='));
      const std::string nearest = nearestWord(name, usage.optionNames);
      if (!nearest.empty()) remedy = "did you mean " + nearest + "?";
    }
  }
  // Validators of option_values.hpp include their own remedy.
  if (const size_t end = what.find('\n'); end != std::string::npos) {
    remedy = what.substr(what.find_first_not_of("\n ", end));
    what.erase(end);
  }
  return diagnosticText("error", {what, remedy, "", "", Code::BadOption});
}

}  // namespace carina::app
