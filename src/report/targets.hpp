// SPDX-License-Identifier: Apache-2.0
// What can be compiled for, for programs that read it.
#pragma once

#include <string>

namespace carina::report {

/// docs/schema/targets.json
std::string targetsJson();
/// One line for each target and memory mode.
std::string targetsCsv();

}  // namespace carina::report
