// SPDX-License-Identifier: Apache-2.0
// The remedy of last resort for files.
#pragma once

#include <string_view>

namespace carina {

/// For what a reader cannot take and knows nothing better about: `.inFile(path).withRemedy(kDamagedRemedy)`.
inline constexpr std::string_view kDamagedRemedy =
    "the file is damaged, or of a form that this version does not know: make it anew, or copy it again";

}  // namespace carina
