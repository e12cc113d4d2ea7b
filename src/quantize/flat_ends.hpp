// SPDX-License-Identifier: Apache-2.0
// Ends of a range that nobody tells apart: the sigmoid of -40 and that of -20 are one code. Codes for such
// numbers are wasted on them, and all others are the coarser for it.
#pragma once

#include <vector>

#include "quantize/annotate.hpp"
#include "quantize/observer.hpp"

namespace carina::quantize {

/// Takes from the ranges of int8 groups, which only functions read, the ends over which none of these gives
/// results that are further apart than a quarter of a code of theirs. Where a range loses less than a tenth
/// it stays, as do ranges that the network brings or that an observer was asked for. `ranges`: one per group.
void cutFlatEnds(const Annotation& annotation, std::vector<Range>& ranges);

}  // namespace carina::quantize
