// SPDX-License-Identifier: Apache-2.0
// Vector loops of the observers (SIMD through Highway, which selects the machine's best instruction set at
// run time).
#pragma once

#include <cstddef>
#include <span>

#include "quantize/observer.hpp"

namespace carina::quantize {

/// Tables in which a histogram is counted, and entries of each: one per bin, one for values that are not
/// counted (non-finite ones), and padding.
constexpr size_t kTables = 4;
constexpr size_t kTableEntries = HistogramObserver::kBins + 16;

/// Smallest and largest finite element (+infinity, -infinity if there is none), and whether there are others.
struct RangeResult {
  float min, max;
  bool nonFinite;
};

/// Sum over all bins of the squared error of values spread evenly inside their bin: bin i begins at (i -
/// first) * width, codes are codeWidth apart starting at 0, and values outside [0, levels * codeWidth) go to
/// the nearest code. A part of a bin from a to b relative to its code's centre with density d contributes d *
/// (b^3 - a^3) / 3.
double clippedQuantizationError(std::span<const float> histogram, int first, float width, float codeWidth,
                                int levels);

}  // namespace carina::quantize
