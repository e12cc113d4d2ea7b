// SPDX-License-Identifier: Apache-2.0
// The NPU and memories that options ask for.
#pragma once

#include "npu/targets/target.hpp"
#include "pipeline/pipeline.hpp"

namespace carina::pipeline {

/// npu::makeMachine() of the options; their target is not cpu. What is wrong with a name is told of
/// "--target", what is wrong with --config's file of the file.
Result<npu::Machine> chosenMachine(const Options& options);

/// Whether the target, of any kind, and its memories are known and go together.
Status checkTarget(const Options& options);

}  // namespace carina::pipeline
