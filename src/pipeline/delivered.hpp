// SPDX-License-Identifier: Apache-2.0
// Programs as Options::delivery wants them written.
#pragma once

#include "base/result.hpp"
#include "pipeline/methods.hpp"
#include "pipeline/pipeline.hpp"
#include "pte/program.hpp"

namespace carina::pipeline {

/// The program of a build, with TOSA graphs for its NPU parts where its options say so.
Result<pte::Program> deliveredProgram(const Build& build);
Result<pte::Program> deliveredProgram(const MethodsBuild& build);

}  // namespace carina::pipeline
