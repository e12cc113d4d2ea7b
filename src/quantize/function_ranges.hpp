// SPDX-License-Identifier: Apache-2.0
// Ranges of values that only functions read, or that they produce.
#pragma once

#include <vector>

#include "quantize/annotate.hpp"
#include "quantize/observer.hpp"

namespace carina::quantize {

/// For int8 groups that only functions read, cuts off the ends of the range within which no reader can
/// distinguish values (the sigmoids of -40 and -20 have the same code): those over which the results of each
/// function vary by at most a quarter of one of their codes. Such codes are wasted and make all others
/// coarser. Ranges that would lose no more than a tenth are
/// kept, as are prequantized ranges and those of observers other than Histogram. `ranges`: one per group.
void cutFlatEnds(const Annotation& annotation, std::vector<Range>& ranges);

/// For int16 groups that a function of int16 codes produces, extends the range to the results for all of
/// these codes if that at most doubles it. Otherwise results saturate at a code between two entries of the
/// function's table, which takes a second table to follow. Prequantized ranges are kept. `ranges`: one per
/// group.
void coverResults(const Annotation& annotation, std::vector<Range>& ranges);

}  // namespace carina::quantize
