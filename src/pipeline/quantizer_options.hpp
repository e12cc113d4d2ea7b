// SPDX-License-Identifier: Apache-2.0
// The options passed to the quantizer.
#pragma once

#include "pipeline/pipeline.hpp"
#include "quantize/rules_file.hpp"

namespace carina::pipeline {

/// Samples for the accuracy estimate: enough for a figure whose decimals do not matter; verify measures.
constexpr size_t kComparedSamples = 2;

struct QuantizerOptions {
  quantize::Options options;
  ProgramIo inputs = ProgramIo::Float, outputs = ProgramIo::Float;  // except for individual ones
};

/// The options of a build with its rules file on top. Errors: those of the file.
Result<QuantizerOptions> quantizerOptions(const Options& options);
/// The same with these rules, regardless of options.quantizeConfig.
QuantizerOptions quantizerOptions(const Options& options, quantize::RulesFile file);

}  // namespace carina::pipeline
