// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace carina::delivery {

/// Identifies the build of this code, for results that are cached in files: the version, followed by the
/// linker's build ID of the executable or shared object that contains the compiler; the version alone if the
/// linker wrote no ID.
const std::string& buildIdentity();

}  // namespace carina::delivery
