// SPDX-License-Identifier: Apache-2.0
// Control-flow regions are quantized like separate networks: their inputs and results stay float, and their
// calibration samples are the inputs they receive while the surrounding network runs.
#pragma once

#include <unordered_map>
#include <vector>

#include "quantize/observer.hpp"
#include "quantize/quantize.hpp"

namespace carina::quantize {

/// Ranges of the inputs and results of a conditional or loop while the samples run in float, over all
/// iterations: by input of its regions, and by result. Empty for values that are not float or that no sample
/// reaches.
struct BorderRange {
  std::vector<Range> taken, given;
};
using BorderRanges = std::unordered_map<const ir::Node*, BorderRange>;

/// Quantizes the regions of the control-flow nodes of `quantized.graph`, whose reference holds the same nodes
/// with float regions, and replaces the regions of both. Reports, warnings and kept operators of regions are
/// added to those of `quantized`. A region that no sample reaches is calibrated with the operands of its
/// node, with a warning; if that fails, it stays in float. Returns the ranges at the nodes of
/// `quantized.graph`.
Result<BorderRanges> quantizeRegions(Quantized& quantized, const Options& options,
                                     std::span<const Sample> samples);

}  // namespace carina::quantize
