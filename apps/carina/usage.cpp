// SPDX-License-Identifier: Apache-2.0
#include "usage.hpp"

#include <algorithm>
#include <vector>

#include "base/nearest.hpp"
#include "console.hpp"

namespace carina::app {
namespace {

/// "--calibrate", ... of a command and of its groups of options.
std::vector<std::string> optionNames(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  for (const CLI::App* group :
       command.get_subcommands([](const CLI::App* app) { return app->get_name().empty(); })) {
    for (const std::string& name : optionNames(*group)) names.push_back(name);
  }
  return names;
}

bool isOption(const std::string& argument) {
  return argument.size() > 1 && argument.front() == '-';
}

}  // namespace

std::string unknownCommand(const CLI::App& app, std::string_view word) {
  if (word.starts_with('-')) return {};
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  if (std::find(names.begin(), names.end(), word) != names.end()) return {};
  const std::string nearest = nearestWord(word, names);
  return diagnosticText("error", {"unknown command '" + std::string(word) + "'",
                                  nearest.empty() ? "carina --help lists the commands"
                                                  : "did you mean 'carina " + nearest + "'?",
                                  "", "", Code::UnknownName});
}

std::string usageError(const CLI::App* app, const CLI::Error& error) {
  std::string command = "carina";
  const CLI::App* chosen = app;
  for (const CLI::App* next : app->get_subcommands()) {
    command += " " + next->get_name();
    chosen = next;
  }
  std::string what = error.what(), remedy = command + " --help lists the options";
  const std::vector<std::string> extras = app->remaining(true);
  const auto unknown = std::find_if(extras.begin(), extras.end(), isOption);
  // A misspelt option is also missing: what was written says more than what was not.
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr ||
      (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && unknown != extras.end())) {
    what = "unexpected arguments:";
    for (const std::string& argument : extras) what += " " + argument;
    if (unknown != extras.end()) {
      const std::string name = unknown->substr(0, unknown->find('='));
      const std::string nearest = nearestWord(name, optionNames(*chosen));
      if (!nearest.empty()) remedy = "did you mean " + nearest + "?";
    }
  }
  // Validators of option_values.hpp bring a remedy of their own.
  if (const size_t end = what.find('\n'); end != std::string::npos) {
    remedy = what.substr(what.find_first_not_of("\n ", end));
    what.erase(end);
  }
  return diagnosticText("error", {what, remedy, "", "", Code::BadOption});
}

}  // namespace carina::app
