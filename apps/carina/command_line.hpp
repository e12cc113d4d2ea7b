// SPDX-License-Identifier: Apache-2.0
// Commands and their options, and what is said of wrong usage. CLI11 parses; only command_line.cpp sees it,
// because its headers cost every file that includes them five to fifteen seconds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace carina::app {

/// What the value of an option must be.
struct ValueRule {
  /// What is wrong with the value, behind a line's end the remedy; empty when nothing is. May replace the
  /// value.
  std::function<std::string(std::string& value)> apply;
  std::string shown;  // behind the type in --help: "FILE"
};

ValueRule existingFile();
ValueRule existingFolder();
ValueRule positive();
ValueRule nonNegative();
/// Both ends belong to it.
ValueRule range(int64_t least, int64_t most);
ValueRule range(double least, double most);
/// One of these words, all of which --help lists.
ValueRule listedWord(std::vector<std::string> words);

/// A declared option, to say more of it: command.option(...).transform(inputFile()).required().
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(&option) {}

  Option& required(bool is = true);
  /// The value as it comes, or as the transformations leave it, obeys the rule.
  Option& check(const ValueRule& rule);
  Option& check(const std::function<std::string(const std::string&)>& rule);
  /// The value is replaced by what the rule makes of it. Of several, the last one declared is applied first.
  Option& transform(const ValueRule& rule);
  /// One argument may hold several values.
  Option& delimiter(char between);
  /// What follows a value belongs to others: several values are given by several options.
  Option& oneValueEach();
  Option& excludes(const Option& other);
  /// --help tells the value that the variable has now.
  Option& showDefault();
  /// The option may come without a value, and means this one then.
  Option& valueOptional(const std::string& otherwise);
  /// What --help calls the value instead of TEXT, INT, ...
  Option& valueName(const std::string& name);

 private:
  CLI::Option* option_;
};

/// Options that belong together: those of a command, or a group of them under a heading of its own.
/// Variables are written when the command line is parsed and must live until then.
class OptionGroup {
 public:
  explicit OptionGroup(CLI::App& app) : app_(&app) {}

  /// `names`: "-o,--output", or "FILE" without dashes for an argument that is told by its place.
  Option option(const std::string& names, std::string& value, const std::string& description);
  Option option(const std::string& names, std::filesystem::path& value, const std::string& description);
  Option option(const std::string& names, int& value, const std::string& description);
  Option option(const std::string& names, int64_t& value, const std::string& description);
  Option option(const std::string& names, uint32_t& value, const std::string& description);
  Option option(const std::string& names, uint64_t& value, const std::string& description);
  Option option(const std::string& names, double& value, const std::string& description);
  Option option(const std::string& names, std::optional<int64_t>& value, const std::string& description);
  Option option(const std::string& names, std::optional<uint16_t>& value, const std::string& description);
  Option option(const std::string& names, std::optional<uint64_t>& value, const std::string& description);
  Option option(const std::string& names, std::optional<double>& value, const std::string& description);
  Option option(const std::string& names, std::vector<std::string>& values, const std::string& description);
  Option option(const std::string& names, std::vector<std::filesystem::path>& values,
                const std::string& description);
  Option option(const std::string& names, std::vector<double>& values, const std::string& description);
  /// For values of other kinds: `store` gets the text.
  Option option(const std::string& names, const std::function<void(const std::string&)>& store,
                const std::string& description);
  Option option(const std::string& names, const std::function<void(const std::vector<std::string>&)>& store,
                const std::string& description);
  Option flag(const std::string& names, bool& value, const std::string& description);
  Option flag(const std::string& names, const std::function<void()>& given, const std::string& description);

 protected:
  CLI::App* app_;
};

/// An option or argument of the command line, with its values as they are after the transformations.
struct GivenOption {
  std::string name;   // "--output", "FILE"
  std::string group;  // the heading; empty for the command's own options
  bool positional = false;
  std::vector<std::string> values;  // of a flag "true"
};

class Command : public OptionGroup {
 public:
  using OptionGroup::OptionGroup;

  OptionGroup group(const std::string& heading, const std::string& description);
  /// A declared option of the command's own, to change what was said of it.
  Option find(const std::string& name);
  /// Called when the command was chosen and its options are read.
  void callback(const std::function<void()>& chosen);
  /// The options that the command line holds, in the order of their declaration.
  std::vector<GivenOption> given() const;
};

/// For a command's callback: wrong usage, reported as the parser's own. "WHAT is required", "ONE excludes
/// OTHER", "NAME: WHAT".
[[noreturn]] void throwMissing(const std::string& what);
[[noreturn]] void throwExcluded(const std::string& one, const std::string& other);
[[noreturn]] void throwBadValue(const std::string& name, const std::string& what);

class CommandLine {
 public:
  CommandLine(const std::string& name, const std::string& description, const std::string& version);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  Command add(const std::string& name, const std::string& description);
  /// An option that may stand in front of the command and behind it. After the last add().
  Option optionOfAll(const std::string& name, const std::string& description);
  /// Printed below --help. After the last add().
  void footer(const std::string& text);

  std::vector<std::string> commandNames() const;
  std::string help() const;
  /// Reads the arguments and calls the chosen command's callback. An exit status where that is all: 0 when
  /// help or version was asked for, 2 after wrong usage, which is reported on stderr.
  std::optional<int> parse(int argc, char** argv);
  /// The commands that were chosen.
  std::vector<Command> chosen() const;

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace carina::app
