// SPDX-License-Identifier: Apache-2.0
// What the quantizer is told.
#pragma once

#include "pipeline/pipeline.hpp"
#include "quantize/rules_file.hpp"

namespace carina::pipeline {

/// Of the estimate of accuracy: for a figure without decimals that matter; verify measures.
constexpr size_t kComparedSamples = 2;

struct QuantizerOptions {
  quantize::Options options;
  ProgramIo inputs = ProgramIo::Float, outputs = ProgramIo::Float;  // but for single ones
};

/// The options of a build with its rules file on top. Errors: those of the file.
Result<QuantizerOptions> quantizerOptions(const Options& options);
/// The same with these rules, whatever options.quantizeConfig names.
QuantizerOptions quantizerOptions(const Options& options, quantize::RulesFile file);

}  // namespace carina::pipeline
