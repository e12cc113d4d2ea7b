// SPDX-License-Identifier: Apache-2.0
// A file of lines that is written while firmware runs.
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
  /// Makes `sink` write its lines to `file`; does nothing when `file` is empty.
  Status open(const std::filesystem::path& file, std::function<void(const std::string&)>& sink);
  /// Writes what is still kept back; an Error when the file has not taken everything.
  Status close();

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, CloseFile> file_;
  std::string name_;
};

}  // namespace carina::platform
