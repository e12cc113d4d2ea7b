// SPDX-License-Identifier: Apache-2.0
// Values of options: choices, byte counts, target names, files. Values that do not match are wrong usage,
// reported with what would match.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "command_line.hpp"

namespace carina::app {

/// One of these words.
ValueRule oneOf(std::vector<std::string> choices);

/// An option whose value is one of the words of `choices`, stored as the corresponding value.
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

/// A byte count, at least 1: 262144, 256K, 1.5M, 1G. K, M and G count in 1024s; B and iB may follow.
/// Normalized to plain digits.
ValueRule byteCount();

/// A target in any spelling. Normalized to that of 'carina targets'.
ValueRule targetName();

/// A file to read. A pipe (`<(command)`, /dev/stdin) is read to its end and replaced by a file in memory, at
/// most 4 GiB, which lives as long as this process.
ValueRule inputFile();

/// --trusted, for every command that executes the contents of a file: lifts the limits of
/// base/work_budget.hpp.
void addTrustedOption(Command& command, bool& trusted);

/// NAME=FILE, or a file alone: then the name is empty. An existing file counts as a file, whatever its name
/// contains.
struct NamedFile {
  std::string name;
  std::filesystem::path file;
};

/// A repeatable option with such values; files are read like those of inputFile().
Option addNamedFiles(Command& command, const std::string& flag, std::vector<NamedFile>& files,
                     const std::string& description);

}  // namespace carina::app
