// SPDX-License-Identifier: Apache-2.0
// The vector loops of the observers (SIMD by Highway, the best instruction set of the machine at run time).
#pragma once

#include <cstddef>
#include <span>

#include "quantize/observer.hpp"

namespace carina::quantize {

/// Tables that a histogram is counted in, and entries of each: one for every bin, one for what is not counted
/// (non-finite values), and padding.
constexpr size_t kTables = 4;
constexpr size_t kTableEntries = HistogramObserver::kBins + 16;

/// Smallest and largest finite element (+infinity, -infinity when there is none), and whether another kind
/// was seen.
struct RangeResult {
  float min, max;
  bool nonFinite;
};

/// Sum over all bins of the squared error of values spread evenly inside their bin: bin i lies at (i - first)
/// * width, codes are codeWidth apart starting at 0, values outside [0, levels * codeWidth) go to the nearest
/// code. For a part of a bin from a to b around its code's centre with density d the error is d * (b^3 - a^3)
/// / 3.
double clippedQuantizationError(std::span<const float> histogram, int first, float width, float codeWidth,
                                int levels);

}  // namespace carina::quantize
