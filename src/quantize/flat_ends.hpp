// SPDX-License-Identifier: Apache-2.0
// Ends of a range within which no reader can distinguish values: the sigmoids of -40 and -20 have the same
// code. Codes for such values are wasted and make all others coarser.
#pragma once

#include <vector>

#include "quantize/annotate.hpp"
#include "quantize/observer.hpp"

namespace carina::quantize {

/// For int8 groups that only functions read, cuts off the ends of the range over which the results of each
/// function vary by at most a quarter of one of their codes. Ranges that would lose no more than a tenth are
/// kept, as are prequantized ranges and those of observers other than Histogram. `ranges`: one per group.
void cutFlatEnds(const Annotation& annotation, std::vector<Range>& ranges);

}  // namespace carina::quantize
