// SPDX-License-Identifier: Apache-2.0
// How near a quantized network comes to the float one it was made of.
#pragma once

#include <optional>
#include <span>

#include "quantize/quantize.hpp"

namespace carina::quantize {

/// SQNR of a network's outputs against float, simulated.
struct Accuracy {
  double decibels = 0;  // of the worst float output; infinite without error
  size_t outputs = 0;   // float outputs
  size_t samples = 0;   // compared
};

/// Runs both networks on at most `most` of the samples, taken evenly. Nothing when the network came quantized
/// or has no float output. What the float network makes of a sample is not computed again where calibration
/// kept it. Errors: what the executor cannot run.
Result<std::optional<Accuracy>> estimateAccuracy(const Quantized& quantized, std::span<const Sample> samples,
                                                 size_t most, WorkBudget* loops = nullptr);

}  // namespace carina::quantize
