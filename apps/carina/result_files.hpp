// SPDX-License-Identifier: Apache-2.0
// Where the results of a command go: --json, --csv etc. name a file, or - for standard output, which then
// contains nothing else.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/file.hpp"
#include "command_line.hpp"

namespace carina::app {

/// The value of such an option; empty if it was not given.
using ResultPath = std::filesystem::path;
/// The value that means standard output.
constexpr std::string_view kStandardOutput = "-";

/// An option that names a result. Without a value it means standard output.
Option addResultOption(OptionGroup& options, const std::string& name, ResultPath& path,
                       const std::string& what);

/// To be called before the work: checks that each can be written, and that at most one is standard output.
Status checkResults(std::initializer_list<ResultPath> paths);

/// Results that are written together.
class ResultFiles {
 public:
  /// No effect if `path` is empty.
  Status add(const ResultPath& path, std::string_view contents);
  OutputFiles& files() { return files_; }
  Status commit() { return files_.commit(); }
  /// What goes to standard output after commit(): the result directed there, else `text`.
  void print(std::string_view text) const;

 private:
  OutputFiles files_;
  bool toStandardOutput_ = false;
  std::string standardOutput_;
};

}  // namespace carina::app
