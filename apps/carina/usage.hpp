// SPDX-License-Identifier: Apache-2.0
// What wrong usage is told: the form of all errors, with what was probably meant.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

namespace carina::app {

/// The usage error of a first argument that names no subcommand; empty when it names one or is an option.
std::string unknownCommand(const CLI::App& app, std::string_view word);

/// The text of a usage error that CLI11 found in the arguments of `app`'s subcommands.
std::string usageError(const CLI::App* app, const CLI::Error& error);

}  // namespace carina::app
