// SPDX-License-Identifier: Apache-2.0
// The cross compiler as another program, and the firmware kit: the libraries, headers and scripts that images
// are linked from.
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
/// Runs a program (found along PATH when its name has no slash) in `folder`. Error: it cannot be started.
Result<CommandOutcome> runCommand(const std::vector<std::string>& command,
                                  const std::filesystem::path& folder);

/// The kit: `given`, else $CARINA_FIRMWARE, else ../share/carina/firmware beside the running program. Error
/// when it holds nothing for `core`.
Result<std::filesystem::path> findKit(const std::filesystem::path& given, const std::string& core);

/// Cores that the kit holds libraries for.
std::vector<std::string> kitCores(const std::filesystem::path& kit);

}  // namespace carina::firmware
