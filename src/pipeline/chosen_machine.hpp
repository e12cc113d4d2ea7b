// SPDX-License-Identifier: Apache-2.0
// The NPU and memories selected by options.
#pragma once

#include "npu/targets/target.hpp"
#include "pipeline/pipeline.hpp"

namespace carina::pipeline {

/// npu::makeMachine() for the options, whose target is not cpu. Errors are reported at the option that causes
/// them, errors in the file of --config at that file.
Result<npu::Machine> chosenMachine(const Options& options);

/// Whether the target, of any kind, and its memories are known and compatible.
Status checkTarget(const Options& options);

}  // namespace carina::pipeline
