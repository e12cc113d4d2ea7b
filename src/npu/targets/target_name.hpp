// SPDX-License-Identifier: Apache-2.0
// Spelling of target names.
#pragma once

#include <string>
#include <string_view>

namespace carina::npu {

/// The name as spelled in the tables: in lower case, with '-' instead of '_'. "Ethos_U55_128" is
/// "ethos-u55-128".
std::string canonicalTargetName(std::string_view name);

}  // namespace carina::npu
