// SPDX-License-Identifier: Apache-2.0
// Counts: sums of a mask, whose limits follow from its shape. Samples show a few of the possible numbers.
#pragma once

#include <optional>

#include "ir/graph.hpp"
#include "quantize/observer.hpp"
#include "quantize/settings.hpp"

namespace carina::quantize {

/// The largest value of a float tensor that holds counts of true elements, possibly limited from below or
/// with a small number added (the divisors of masked means); empty for other values.
std::optional<double> largestCount(const ir::Value& value);

/// The range that such a value, or its reciprocal, has regardless of the samples; empty for other values.
Range rangeOfCounts(const ir::Value& value, Precision precision);

/// The bounds on such values; empty for other values.
Range possibleCounts(const ir::Value& value);

}  // namespace carina::quantize
