// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace carina::delivery {

/// Tells builds of this code apart, as results that are kept in files need it: the linker's build ID of the
/// executable or shared object that holds the compiler, behind the version; the version alone where the
/// linker wrote no ID.
const std::string& buildIdentity();

}  // namespace carina::delivery
