// SPDX-License-Identifier: Apache-2.0
// Checks whether a file can be written before the work that produces its contents.
#pragma once

#include <filesystem>

#include "base/result.hpp"

namespace carina {

/// Fails if OutputFiles::add() would: no file name, a folder of that name, a parent folder that is missing or
/// not writable. Later changes are only detected by add().
Status checkOutputPath(const std::filesystem::path& path);

/// The same for a folder of outputs, which is created with its parents: fails if a file is in the way.
Status checkOutputFolder(const std::filesystem::path& path);

}  // namespace carina
