// SPDX-License-Identifier: Apache-2.0
// How names of targets may be written.
#pragma once

#include <string>
#include <string_view>

namespace carina::npu {

/// The name as the tables spell it: in lower case, with '-' for '_'. "Ethos_U55_128" is "ethos-u55-128".
std::string canonicalTargetName(std::string_view name);

}  // namespace carina::npu
