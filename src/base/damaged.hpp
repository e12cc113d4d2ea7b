// SPDX-License-Identifier: Apache-2.0
// The remedy of last resort for files.
#pragma once

#include <string_view>

namespace carina {

/// For errors of readers that have no better remedy: `.inFile(path).withRemedy(kDamagedRemedy)`.
inline constexpr std::string_view kDamagedRemedy =
    "the file is damaged, or its format is unknown to this version: create it again, or copy it again";

}  // namespace carina
