// SPDX-License-Identifier: Apache-2.0
// Accuracy of a quantized network relative to the float network it was made from.
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

/// Runs both networks on at most `most` evenly spaced samples. Empty if the network was prequantized or has
/// no float output. Float results that calibration kept are not recomputed. `simulation`: the quantized graph
/// with whatever the program is known to compute otherwise; null: the graph itself. Errors: networks that the
/// executor cannot run.
Result<std::optional<Accuracy>> estimateAccuracy(const Quantized& quantized, std::span<const Sample> samples,
                                                 size_t most, WorkBudget* loops = nullptr,
                                                 const ir::Graph* simulation = nullptr);

/// A warning if the integer network has little to do with the float network. `narrow`: there are layers of
/// 8 bits, which could have 16.
std::optional<Diagnostic> poorAccuracy(const Accuracy& accuracy, bool narrow);

}  // namespace carina::quantize
