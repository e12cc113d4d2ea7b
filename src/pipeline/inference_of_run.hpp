// SPDX-License-Identifier: Apache-2.0
// The time of an inference that was run: NPU cycles as counted, the rest as estimated.
#pragma once

#include "pipeline/inference_time.hpp"
#include "pipeline/run.hpp"

namespace carina::pipeline {

/// For a program (.pte) that ran with these options; nullopt if the method that ran is not known.
Result<std::optional<InferenceTime>> inferenceOfRun(ByteSpan program, const RunOptions& options,
                                                    const device::RunStats& stats, const std::string& core);

}  // namespace carina::pipeline
