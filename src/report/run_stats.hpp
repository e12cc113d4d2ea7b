// SPDX-License-Identifier: Apache-2.0
// Statistics of carina run.
#pragma once

#include <string>

#include "pipeline/run.hpp"

namespace carina::report {

/// A few lines: samples, NPU cycles, memory.
std::string runStatsText(const pipeline::RunResult& result);
/// Stable JSON (docs/commands/run.md).
std::string runStatsJson(const pipeline::RunResult& result);

}  // namespace carina::report
