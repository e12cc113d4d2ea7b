// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace carina::app {

/// "carina 0.3.0 (1a2b3c4d5e)": the version, and the commit if the program was built from a repository.
std::string versionLine();

}  // namespace carina::app
