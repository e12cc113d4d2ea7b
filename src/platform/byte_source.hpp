// SPDX-License-Identifier: Apache-2.0
// Bytes for a serial line, one at a time.
#pragma once

#include <filesystem>
#include <functional>

#include "base/result.hpp"

namespace carina::platform {

/// The bytes of a file, or of standard input for "-", then -1; an empty function for an empty path.
Result<std::function<int()>> bytesFrom(const std::filesystem::path& path);

}  // namespace carina::platform
