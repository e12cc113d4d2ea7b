// SPDX-License-Identifier: Apache-2.0
// Commands and their options, and messages on wrong usage. CLI11 does the parsing; only command_line.cpp
// includes it, because its headers cost five to fifteen seconds per including file.
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

/// A rule for the value of an option.
struct ValueRule {
  /// Returns what is wrong with the value, followed by a line break and the remedy; empty if it is valid. May
  /// replace the value.
  std::function<std::string(std::string& value)> apply;
  std::string shown;  // shown after the type in --help: "FILE"
};

ValueRule existingFile();
ValueRule existingFolder();
ValueRule positive();
ValueRule nonNegative();
/// Both ends are included.
ValueRule range(int64_t least, int64_t most);
ValueRule range(double least, double most);
/// One of these words, all of which --help lists.
ValueRule listedWord(std::vector<std::string> words);

/// A declared option, to refine it: command.option(...).transform(inputFile()).required().
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(&option) {}

  Option& required(bool is = true);
  /// The value as given, or after the transformations, must obey the rule.
  Option& check(const ValueRule& rule);
  Option& check(const std::function<std::string(const std::string&)>& rule);
  /// The value is replaced by the rule's result. If there are several, the last one declared is applied
  /// first.
  Option& transform(const ValueRule& rule);
  /// One argument may hold several values.
  Option& delimiter(char between);
  /// The next argument does not belong to the option: several values require repeating the option.
  Option& oneValueEach();
  Option& excludes(const Option& other);
  /// --help shows the variable's current value.
  Option& showDefault();
  /// The option may be given without a value, and then means this one.
  Option& valueOptional(const std::string& otherwise);
  /// The name of the value in --help, instead of TEXT, INT, ...
  Option& valueName(const std::string& name);

 private:
  CLI::Option* option_;
};

/// Options that belong together: those of a command, or a group of them under its own heading. Variables are
/// written when the command line is parsed and must live until then.
class OptionGroup {
 public:
  explicit OptionGroup(CLI::App& app) : app_(&app) {}

  /// `names`: "-o,--output", or "FILE" without dashes for a positional argument.
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
  /// For values of other types: `store` receives the text.
  Option option(const std::string& names, const std::function<void(const std::string&)>& store,
                const std::string& description);
  Option option(const std::string& names, const std::function<void(const std::vector<std::string>&)>& store,
                const std::string& description);
  Option flag(const std::string& names, bool& value, const std::string& description);
  Option flag(const std::string& names, const std::function<void()>& given, const std::string& description);

 protected:
  CLI::App* app_;
};

/// An option or argument that was given, with its values after the transformations.
struct GivenOption {
  std::string name;   // "--output", "FILE"
  std::string group;  // the heading; empty for the command's own options
  bool positional = false;
  std::vector<std::string> values;  // "true" for a flag
};

class Command : public OptionGroup {
 public:
  using OptionGroup::OptionGroup;

  OptionGroup group(const std::string& heading, const std::string& description);
  /// A previously declared option of the command itself, to change it.
  Option find(const std::string& name);
  /// Called if the command was chosen, after its options have been read.
  void callback(const std::function<void()>& chosen);
  /// The options that were given, in the order of their declaration.
  std::vector<GivenOption> given() const;
};

/// For a command's callback: wrong usage, reported like that found by the parser. "WHAT is required", "ONE
/// excludes OTHER", "NAME: WHAT".
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
  /// An option that may precede or follow the command. To be called after the last add().
  Option optionOfAll(const std::string& name, const std::string& description);
  /// Printed below --help. To be called after the last add().
  void footer(const std::string& text);

  std::vector<std::string> commandNames() const;
  std::string help() const;
  /// Reads the arguments and calls the chosen command's callback. Returns an exit status if nothing else is
  /// to be done: 0 if help or version was requested, 2 after wrong usage, which is reported on stderr.
  std::optional<int> parse(int argc, char** argv);
  /// The commands that were chosen.
  std::vector<Command> chosen() const;

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace carina::app
