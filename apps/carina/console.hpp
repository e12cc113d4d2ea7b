// SPDX-License-Identifier: Apache-2.0
// What the command line says and how: diagnostics on stderr, progress bars on terminals only.
#pragma once

#include <filesystem>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace carina::app {

/// Takes the places of standard streams that are closed, so that no other file gets their numbers: a write to
/// a closed stream fails.
void reserveStandardStreams();

/// The exit status of a program that would end with `status`: 1, with a message, when not everything that was
/// printed has reached standard output.
int closeStandardOutput(int status);

/// How diagnostics are printed on stderr.
enum class DiagnosticsFormat {
  Text,  // "carina: error[E0104]: file: place: message", the remedy on a line of its own
  Json,  // one object per line: severity, code, message, file, place, remedy
};
void setDiagnosticsFormat(DiagnosticsFormat format);

/// One diagnostic as it is printed, with its line's end.
std::string diagnosticText(std::string_view severity, const Diagnostic& diagnostic);

/// Prints every diagnostic as an error and returns the exit status 1.
int report(const Error& error);
/// The same of a command on the file `input`: what names no file is about that one, except what is about an
/// option (its place begins with "--").
int report(const Error& error, const std::filesystem::path& input);

/// The exit status of a command on the file `input` (may be empty): what it gives, 0 where it gives nothing,
/// or 1 after its errors are printed.
int exitStatus(const Result<int>& outcome, const std::filesystem::path& input = {});
int exitStatus(Status outcome, const std::filesystem::path& input = {});

/// Prints every warning on stderr.
void warn(std::span<const Diagnostic> warnings);

/// What can be said about outputs before the work: folders that are missing, files that are folders. Empty
/// names do not count.
Status checkOutputs(std::initializer_list<std::filesystem::path> outputs);

/// A progress bar on stderr that redraws itself; silent when stderr is not a terminal. The line is cleared at
/// the end.
std::function<void(size_t done, size_t total)> progressBar(std::string label);

}  // namespace carina::app
