// SPDX-License-Identifier: Apache-2.0
// The memory system of a machine as text stored in programs, in the grammar of vela.ini, so that runs are
// timed as the compiler timed them.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "npu/targets/target.hpp"

namespace carina::npu {

/// Those of the machine's system configuration and memory mode that are not stock; empty if both are.
std::string describeMemories(const Machine& machine);

/// makeMachine() that also searches `recorded`, text from describeMemories() (untrusted, may be empty), after
/// `iniFile` and before the stock configurations.
Result<Machine> makeMachine(std::string_view targetName, std::string_view systemConfig,
                            std::string_view memoryMode, const std::filesystem::path& iniFile,
                            std::string_view recorded);

}  // namespace carina::npu
