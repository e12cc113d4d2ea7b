// SPDX-License-Identifier: Apache-2.0
// Access to the files of one folder for untrusted code: no path leads out of it. Symbolic links are not
// followed, and only regular files are opened.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/result.hpp"

namespace carina::platform {

class ConfinedFiles {
 public:
  /// No folder: every call fails with EACCES.
  ConfinedFiles() = default;
  static Result<ConfinedFiles> open(const std::filesystem::path& folder);
  ~ConfinedFiles();
  ConfinedFiles(ConfinedFiles&& other) noexcept;
  ConfinedFiles& operator=(ConfinedFiles&& other) noexcept;

  bool allowed() const { return folder_ >= 0; }
  /// Like open(2): a descriptor, or -1 and errno. New files get mode 0666.
  int openFile(std::string_view name, int flags) const;
  /// 0, or -1 and errno.
  int remove(std::string_view name) const;
  int rename(std::string_view from, std::string_view to) const;

 private:
  explicit ConfinedFiles(int folder) : folder_(folder) {}
  /// Opens the folder that holds the last part of `name`; the caller closes the descriptor. Or -1 and errno.
  int parentOf(std::string_view name, std::string* last) const;

  int folder_ = -1;
};

}  // namespace carina::platform
