// SPDX-License-Identifier: Apache-2.0
// Values of options: choices, numbers of bytes, names of targets, files. What does not fit is wrong usage,
// with what would fit.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "command_line.hpp"

namespace carina::app {

/// One of these words.
ValueRule oneOf(std::vector<std::string> choices);

/// An option whose value is one of the words of `choices`, stored as what the word stands for.
template <typename Target, typename Value>
Option addChoice(OptionGroup& options, const std::string& flag, Target& target,
                 std::vector<std::pair<std::string, Value>> choices, const std::string& description) {
  std::vector<std::string> words;
  words.reserve(choices.size());
  for (const auto& choice : choices) words.push_back(choice.first);
  const auto store = [&target, choices = std::move(choices)](const std::string& word) {
    for (const auto& [name, value] : choices) {
      if (name == word) target = value;
    }
  };
  return options.option(flag, store, description).check(oneOf(std::move(words)));
}

/// A number of bytes, at least 1: 262144, 256K, 1.5M, 1G. K, M and G count in 1024s; B and iB may follow.
/// Replaced by the number in digits.
ValueRule byteCount();

/// A target in any spelling. Replaced by the spelling of 'carina targets'.
ValueRule targetName();

/// A file to read. What is no regular file but a pipe (`<(command)`, /dev/stdin) is read to its end and
/// replaced by a file in memory, at most 4 GiB, which lives as long as this process.
ValueRule inputFile();

/// --trusted, of every command that executes what a file says: the limits of base/work_budget.hpp are gone.
void addTrustedOption(Command& command, bool& trusted);

/// NAME=FILE, or a file alone: then the name is empty. A file that is there counts as one, whatever its name
/// holds.
struct NamedFile {
  std::string name;
  std::filesystem::path file;
};

/// An option that takes such values, as often as it is given; files are read as by inputFile().
Option addNamedFiles(Command& command, const std::string& flag, std::vector<NamedFile>& files,
                     const std::string& description);

}  // namespace carina::app
