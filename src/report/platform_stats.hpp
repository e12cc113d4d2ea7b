// SPDX-License-Identifier: Apache-2.0
// The outcome of a run on the virtual platform.
#pragma once

#include <string>

#include "platform/platform.hpp"

namespace carina::report {

/// A few lines: how it ended, instructions and cycles, NPU jobs, faults.
std::string platformStatsText(const platform::Outcome& outcome, const platform::Options& options);
/// Stable JSON (docs/commands/run.md).
std::string platformStatsJson(const std::string& file, const platform::Outcome& outcome,
                              const platform::Options& options);

}  // namespace carina::report
