// SPDX-License-Identifier: Apache-2.0
// Statistics of carina run.
#pragma once

#include <string>

#include "pipeline/inference_time.hpp"
#include "pipeline/run.hpp"

namespace carina::report {

/// A few lines, starting with that of `inference` (may be null): samples, NPU cycles, memory.
std::string runStatsText(const pipeline::RunResult& result,
                         const pipeline::InferenceTime* inference = nullptr);
/// Stable JSON (docs/commands/run.md).
std::string runStatsJson(const pipeline::RunResult& result,
                         const pipeline::InferenceTime* inference = nullptr);

}  // namespace carina::report
