// SPDX-License-Identifier: Apache-2.0
// Output of the command line: diagnostics on stderr, progress bars on terminals only.
#pragma once

#include <filesystem>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace carina::app {

/// Occupies the descriptors of closed standard streams, so that no other file gets their numbers: a write to
/// a closed stream fails.
void reserveStandardStreams();

/// The exit status of a program that would exit with `status`: 1, with a message, if not everything that was
/// printed has reached standard output.
int closeStandardOutput(int status);

/// How diagnostics are printed on stderr.
enum class DiagnosticsFormat {
  Text,  // "carina: error[E0104]: file: place: message", the remedy on a separate line
  Json,  // one object per line: severity, code, message, file, place, remedy
};
void setDiagnosticsFormat(DiagnosticsFormat format);

/// One diagnostic as printed, including the line break.
std::string diagnosticText(std::string_view severity, const Diagnostic& diagnostic);

/// Prints every diagnostic as an error and returns the exit status 1.
int report(const Error& error);
/// The same for a command on the file `input`, to which diagnostics without a file are attributed, except
/// those about an option (their place begins with "--").
int report(const Error& error, const std::filesystem::path& input);

/// The exit status of a command on the file `input` (may be empty): its value, 0 if it has none, or 1 after
/// its errors are printed.
int exitStatus(const Result<int>& outcome, const std::filesystem::path& input = {});
int exitStatus(Status outcome, const std::filesystem::path& input = {});

/// Prints every warning on stderr.
void warn(std::span<const Diagnostic> warnings);

/// Checks of outputs that are possible before the work: missing directories, files that are directories.
/// Empty names are ignored.
Status checkOutputs(std::initializer_list<std::filesystem::path> outputs);

/// A progress bar on stderr that redraws itself; silent if stderr is not a terminal. The line is cleared at
/// the end.
std::function<void(size_t done, size_t total)> progressBar(std::string label);

}  // namespace carina::app
