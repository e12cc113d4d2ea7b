// SPDX-License-Identifier: Apache-2.0
// Whether a file can be written, asked before the work whose result it is to hold.
#pragma once

#include <filesystem>

#include "base/result.hpp"

namespace carina {

/// Fails where OutputFiles::add() would: no file name, a folder of that name, a parent folder that is missing
/// or may not be written to. What changes later is found then.
Status checkOutputPath(const std::filesystem::path& path);

/// The same for a folder of outputs, which is created with its parents: fails where a file is in the way.
Status checkOutputFolder(const std::filesystem::path& path);

}  // namespace carina
