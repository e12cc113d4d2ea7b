// SPDX-License-Identifier: Apache-2.0
// The cross compiler as a child process, and the firmware kit: the libraries, headers and scripts from which
// images are linked.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace carina::firmware {

struct CommandOutcome {
  int status = 0;      // exit status; 128 + signal when it was killed
  std::string output;  // stdout and stderr together
};
/// Runs a program (looked up in PATH if its name has no slash) in `folder`. Error: it cannot be started.
Result<CommandOutcome> runCommand(const std::vector<std::string>& command,
                                  const std::filesystem::path& folder);

/// The kit: `given`, else $CARINA_FIRMWARE, else ../share/carina/firmware relative to the folder of the
/// running program. Error if it has nothing for `core`.
Result<std::filesystem::path> findKit(const std::filesystem::path& given, const std::string& core);

/// Cores for which the kit has libraries.
std::vector<std::string> kitCores(const std::filesystem::path& kit);

}  // namespace carina::firmware
