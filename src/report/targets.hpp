// SPDX-License-Identifier: Apache-2.0
// The available targets, in machine-readable form.
#pragma once

#include <string>

namespace carina::report {

/// JSON by docs/schema/targets.json.
std::string targetsJson();
/// One line per target and memory mode.
std::string targetsCsv();

}  // namespace carina::report
