// SPDX-License-Identifier: Apache-2.0
// What the quantizer is told.
#pragma once

#include "pipeline/pipeline.hpp"

namespace carina::pipeline {

struct QuantizerOptions {
  quantize::Options options;
  ProgramIo inputs = ProgramIo::Float, outputs = ProgramIo::Float;
};

/// The options of a build with its rules file on top. Errors: those of the file.
Result<QuantizerOptions> quantizerOptions(const Options& options);

}  // namespace carina::pipeline
