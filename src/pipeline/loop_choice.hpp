// SPDX-License-Identifier: Apache-2.0
// Whether the long recurrences of a network become loops or are unrolled, decided by comparing the two
// programs.
#pragma once

#include "pipeline/pipeline.hpp"

namespace carina::pipeline {

/// Networks whose recurrences have more steps than this in total are not built in both forms. Unrolled code
/// takes about steps / 25 times the commands of a loop, and on no NPU runs in a sixteenth of its time.
constexpr int64_t kMaxWeighed = 400;

/// A front from which another build can start, without the float network, the quantizer's report and
/// warnings.
Front cloneOf(const Front& front);

/// Whether to build both forms: for an Ethos-U, unless Options::unroll decides.
bool weighsLoops(const Front& front, const Options& options);

/// The whole front with all loops over slices unrolled.
Result<Front> withoutLoops(const Front& front);

/// Whether the program of `a` costs less than that of `b`: with Optimize::Size the bytes of program and
/// arena, else the cycles of an inference times the bytes of the program (half the time is worth twice the
/// bytes).
bool isCheaper(const Build& a, const Build& b);

}  // namespace carina::pipeline
