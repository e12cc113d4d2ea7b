// SPDX-License-Identifier: Apache-2.0
// Regions of control flow are quantized like networks of their own: their inputs and results stay float,
// their calibration samples are what they are given while the network around them runs.
#pragma once

#include <unordered_map>
#include <vector>

#include "quantize/observer.hpp"
#include "quantize/quantize.hpp"

namespace carina::quantize {

/// What a choice or loop takes and gives while the samples run in float, in all turns: by input of its
/// regions, by result. Empty for what is not float, and where no sample comes.
struct BorderRange {
  std::vector<Range> taken, given;
};
using BorderRanges = std::unordered_map<const ir::Node*, BorderRange>;

/// Quantizes the regions of the control flow nodes of `quantized.graph`, whose reference holds the same nodes
/// with regions in float, and puts the quantized ones and their references in their places. What a region
/// says (report, warnings, kept operators) is added. A region that no sample reaches is calibrated with what
/// its node was given, and a warning says so; where that cannot be computed, it stays in float.
/// Gives what the nodes of `quantized.graph` take and give.
Result<BorderRanges> quantizeRegions(Quantized& quantized, const Options& options,
                                     std::span<const Sample> samples);

}  // namespace carina::quantize
