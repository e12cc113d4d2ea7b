// SPDX-License-Identifier: Apache-2.0
#include "pipeline/quantizer_options.hpp"

#include "npu/targets/target.hpp"

namespace carina::pipeline {
namespace {

ProgramIo programIoOf(quantize::Precision precision) {
  switch (precision) {
    case quantize::Precision::Int8:
      return ProgramIo::Int8;
    case quantize::Precision::Int16x8:
      return ProgramIo::Int16;
    case quantize::Precision::Float:
      return ProgramIo::Float;
  }
  CARINA_UNREACHABLE("precision");
}

/// One side of the program: the options, with the rules on top. `io` receives the element type.
std::optional<quantize::BoundarySettings> boundaryOf(ProgramIo asked, bool symmetric,
                                                     const std::optional<quantize::BoundarySettings>& rules,
                                                     ProgramIo& io) {
  quantize::BoundarySettings settings = rules.value_or(quantize::BoundarySettings{});
  io = settings.precision ? programIoOf(*settings.precision) : asked;
  settings.precision.reset();
  if (io == ProgramIo::Int8 || io == ProgramIo::UInt8) settings.precision = quantize::Precision::Int8;
  if (io == ProgramIo::Int16) settings.precision = quantize::Precision::Int16x8;
  if (symmetric && !settings.scheme) settings.scheme = quantize::Scheme::Symmetric;
  if (!settings.precision && !settings.scheme && !settings.observer) return std::nullopt;
  return settings;
}

}  // namespace

Result<QuantizerOptions> quantizerOptions(const Options& options) {
  quantize::RulesFile file;
  if (!options.quantizeConfig.empty()) {
    CARINA_TRY(file, quantize::readRules(options.quantizeConfig));
  }
  return quantizerOptions(options, std::move(file));
}

QuantizerOptions quantizerOptions(const Options& options, quantize::RulesFile file) {
  QuantizerOptions quantizer;
  quantize::Options& result = quantizer.options;
  result.precision = quantizationOf(options) == Quantization::Int16x8 ? quantize::Precision::Int16x8
                                                                      : quantize::Precision::Int8;
  result.perChannelWeights = options.perChannel;
  result.weightBits = options.weightBits;
  result.observer = options.observer;
  file.global.apply(result);
  result.rules = std::move(file.rules);
  result.equalize = file.equalize.value_or(options.equalize);
  result.rangeMargin = true;
  result.compared = options.estimateAccuracy ? kComparedSamples : 0;
  result.fitWeights = file.fitWeights.value_or(options.fitWeights);
  result.correctBiases = file.correctBiases.value_or(options.correctBiases);
  result.inputs = boundaryOf(options.inputs, options.symmetricIo, file.inputs, quantizer.inputs);
  const auto npu = npu::findTarget(options.target);
  result.codesInRegions = npu.ok() && (*npu)->architecture().branches;
  result.outputs = boundaryOf(options.outputs, options.symmetricIo, file.outputs, quantizer.outputs);
  return quantizer;
}

}  // namespace carina::pipeline
