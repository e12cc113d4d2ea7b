// SPDX-License-Identifier: Apache-2.0
#include "command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <utility>

#include "usage.hpp"

namespace carina::app {
namespace {

ValueRule ruleOf(const CLI::Validator& validator) {
  return {[validator](std::string& value) { return validator(value); }, validator.get_description()};
}

CLI::Validator validatorOf(const ValueRule& rule) {
  return {rule.apply, rule.shown};
}

/// A number that `keeps` accepts. `wanted` describes valid numbers: "a number of at least 0".
ValueRule numberRule(const CLI::Validator& shown, std::string wanted, std::function<bool(double)> keeps) {
  const auto apply = [wanted = std::move(wanted), keeps = std::move(keeps)](const std::string& value) {
    double number = 0;
    const char* end = value.data() + value.size();
    const auto [last, error] = std::from_chars(value.data(), end, number);
    if (error == std::errc() && last == end && keeps(number)) return std::string();
    return fmt::format("'{}' is not {}", value, wanted);
  };
  return {apply, shown.get_description()};
}

template <typename T>
Option declare(CLI::App& app, const std::string& names, T& value, const std::string& description) {
  return Option(*app.add_option(names, value, description));
}

/// The groups of a command's options.
std::vector<CLI::App*> groupsOf(CLI::App& command) {
  return command.get_subcommands([](CLI::App* app) { return app->get_name().empty(); });
}

/// "--calibrate", ... of a command and of its groups of options.
void addOptionNames(CLI::App& command, std::vector<std::string>& names) {
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  for (CLI::App* group : groupsOf(command)) addOptionNames(*group, names);
}

void addGiven(CLI::App& command, std::vector<GivenOption>& given) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0) continue;
    const std::string group = command.get_name().empty() ? command.get_group() : "";
    given.push_back({option->get_name(), group, option->get_positional(), option->results()});
  }
  for (CLI::App* group : groupsOf(command)) addGiven(*group, given);
}

/// The text of an error that CLI11 found in the arguments of `app`'s subcommands.
std::string errorText(CLI::App& app, const CLI::Error& error) {
  WrongUsage usage;
  usage.command = app.get_name();
  CLI::App* chosen = &app;
  for (CLI::App* next : app.get_subcommands()) {
    usage.command += " " + next->get_name();
    chosen = next;
  }
  usage.message = error.what();
  usage.unread = app.remaining(true);
  addOptionNames(*chosen, usage.optionNames);
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) usage.kind = WrongUsage::Kind::Unread;
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) usage.kind = WrongUsage::Kind::Missing;
  return usageError(usage);
}

}  // namespace

ValueRule existingFile() {
  return ruleOf(CLI::ExistingFile);
}

ValueRule existingFolder() {
  return ruleOf(CLI::ExistingDirectory);
}

ValueRule positive() {
  return numberRule(CLI::PositiveNumber, "a number above 0", [](double number) { return number > 0; });
}

ValueRule nonNegative() {
  return numberRule(CLI::NonNegativeNumber, "a number of at least 0",
                    [](double number) { return number >= 0; });
}

ValueRule range(int64_t least, int64_t most) {
  return numberRule(CLI::Range(least, most), fmt::format("a number from {} to {}", least, most),
                    [least, most](double number) {
                      return number >= static_cast<double>(least) && number <= static_cast<double>(most);
                    });
}

ValueRule range(double least, double most) {
  return numberRule(CLI::Range(least, most), fmt::format("a number from {} to {}", least, most),
                    [least, most](double number) { return number >= least && number <= most; });
}

ValueRule listedWord(std::vector<std::string> words) {
  return ruleOf(CLI::IsMember(std::move(words)));
}

Option& Option::required(bool is) {
  option_->required(is);
  return *this;
}

Option& Option::check(const ValueRule& rule) {
  option_->check(validatorOf(rule));
  return *this;
}

Option& Option::check(const std::function<std::string(const std::string&)>& rule) {
  option_->check(rule);
  return *this;
}

Option& Option::transform(const ValueRule& rule) {
  option_->transform(validatorOf(rule));
  return *this;
}

Option& Option::delimiter(char between) {
  option_->delimiter(between);
  return *this;
}

Option& Option::oneValueEach() {
  option_->allow_extra_args(false);
  return *this;
}

Option& Option::excludes(const Option& other) {
  option_->excludes(other.option_);
  return *this;
}

Option& Option::showDefault() {
  option_->capture_default_str();
  return *this;
}

Option& Option::valueOptional(const std::string& otherwise) {
  option_->expected(0, 1)->default_str(otherwise);
  return *this;
}

Option& Option::valueName(const std::string& name) {
  option_->type_name(name);
  return *this;
}

Option OptionGroup::option(const std::string& names, std::string& value, const std::string& description) {
  return declare(*app_, names, value, description);
}

Option OptionGroup::option(const std::string& names, std::filesystem::path& value,
                           const std::string& description) {
  return declare(*app_, names, value, description);
}

Option OptionGroup::option(const std::string& names, int& value, const std::string& description) {
  return declare(*app_, names, value, description);
}

Option OptionGroup::option(const std::string& names, int64_t& value, const std::string& description) {
  return declare(*app_, names, value, description);
}

Option OptionGroup::option(const std::string& names, uint32_t& value, const std::string& description) {
  return declare(*app_, names, value, description);
}

Option OptionGroup::option(const std::string& names, uint64_t& value, const std::string& description) {
  return declare(*app_, names, value, description);
}

Option OptionGroup::option(const std::string& names, double& value, const std::string& description) {
  return declare(*app_, names, value, description);
}

Option OptionGroup::option(const std::string& names, std::optional<int64_t>& value,
                           const std::string& description) {
  return declare(*app_, names, value, description);
}

Option OptionGroup::option(const std::string& names, std::optional<uint16_t>& value,
                           const std::string& description) {
  return declare(*app_, names, value, description);
}

Option OptionGroup::option(const std::string& names, std::optional<uint64_t>& value,
                           const std::string& description) {
  return declare(*app_, names, value, description);
}

Option OptionGroup::option(const std::string& names, std::optional<double>& value,
                           const std::string& description) {
  return declare(*app_, names, value, description);
}

Option OptionGroup::option(const std::string& names, std::vector<std::string>& values,
                           const std::string& description) {
  return declare(*app_, names, values, description);
}

Option OptionGroup::option(const std::string& names, std::vector<std::filesystem::path>& values,
                           const std::string& description) {
  return declare(*app_, names, values, description);
}

Option OptionGroup::option(const std::string& names, std::vector<double>& values,
                           const std::string& description) {
  return declare(*app_, names, values, description);
}

Option OptionGroup::option(const std::string& names, const std::function<void(const std::string&)>& store,
                           const std::string& description) {
  return Option(*app_->add_option_function<std::string>(names, store, description));
}

Option OptionGroup::option(const std::string& names,
                           const std::function<void(const std::vector<std::string>&)>& store,
                           const std::string& description) {
  return Option(*app_->add_option_function<std::vector<std::string>>(names, store, description));
}

Option OptionGroup::flag(const std::string& names, bool& value, const std::string& description) {
  return Option(*app_->add_flag(names, value, description));
}

Option OptionGroup::flag(const std::string& names, const std::function<void()>& given,
                         const std::string& description) {
  return Option(*app_->add_flag_callback(names, given, description));
}

OptionGroup Command::group(const std::string& heading, const std::string& description) {
  return OptionGroup(*app_->add_option_group(heading, description));
}

Option Command::find(const std::string& name) {
  return Option(*app_->get_option(name));
}

void Command::callback(const std::function<void()>& chosen) {
  app_->callback(chosen);
}

std::vector<GivenOption> Command::given() const {
  std::vector<GivenOption> result;
  addGiven(*app_, result);
  return result;
}

void throwMissing(const std::string& what) {
  throw CLI::RequiredError(what);
}

void throwExcluded(const std::string& one, const std::string& other) {
  throw CLI::ExcludesError(one, other);
}

void throwBadValue(const std::string& name, const std::string& what) {
  throw CLI::ValidationError(name, what);
}

CommandLine::CommandLine(const std::string& name, const std::string& description, const std::string& version)
    : app_(std::make_unique<CLI::App>(description, name)) {
  app_->require_subcommand(1);
  app_->set_version_flag("--version", version);
  app_->failure_message([this](const CLI::App*, const CLI::Error& error) { return errorText(*app_, error); });
}

CommandLine::~CommandLine() = default;

Command CommandLine::add(const std::string& name, const std::string& description) {
  return Command(*app_->add_subcommand(name, description));
}

Option CommandLine::optionOfAll(const std::string& name, const std::string& description) {
  for (CLI::App* command : app_->get_subcommands({})) command->fallthrough();
  return Option(*app_->add_option(name, description));
}

void CommandLine::footer(const std::string& text) {
  app_->footer(text);
}

std::vector<std::string> CommandLine::commandNames() const {
  std::vector<std::string> names;
  for (const CLI::App* command : app_->get_subcommands({})) names.push_back(command->get_name());
  return names;
}

std::string CommandLine::help() const {
  return app_->help();
}

std::optional<int> CommandLine::parse(int argc, char** argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app_->exit(error) == 0 ? 0 : 2;
  }
  return std::nullopt;
}

std::vector<Command> CommandLine::chosen() const {
  std::vector<Command> commands;
  for (CLI::App* command : app_->get_subcommands()) commands.emplace_back(*command);
  return commands;
}

}  // namespace carina::app
