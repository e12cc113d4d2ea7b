// SPDX-License-Identifier: Apache-2.0
// The memory system of a machine as text that programs carry, in the grammar of vela.ini, so that whoever
// runs them times them as the compiler did.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "npu/targets/target.hpp"

namespace carina::npu {

/// What of the machine's system configuration and memory mode is not stock; empty when all of it is.
std::string describeMemories(const Machine& machine);

/// makeMachine() that searches `recorded`, a text of describeMemories() (untrusted, may be empty), after
/// `iniFile` and before the stock ones.
Result<Machine> makeMachine(std::string_view targetName, std::string_view systemConfig,
                            std::string_view memoryMode, const std::filesystem::path& iniFile,
                            std::string_view recorded);

}  // namespace carina::npu
