// SPDX-License-Identifier: Apache-2.0
// A text file that is written while firmware runs.
#pragma once

#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "base/result.hpp"

namespace carina::platform {

class TraceFile {
 public:
  /// Makes `sink` write its lines to `file`; does nothing if `file` is empty.
  Status open(const std::filesystem::path& file, std::function<void(const std::string&)>& sink);
  /// Flushes and closes the file; an Error if not everything could be written.
  Status close();

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, CloseFile> file_;
  std::string name_;
};

}  // namespace carina::platform
