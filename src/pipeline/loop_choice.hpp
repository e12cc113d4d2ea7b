// SPDX-License-Identifier: Apache-2.0
// Whether the long recurrences of a network are loops or straight code: what a program of each takes decides.
#pragma once

#include "pipeline/pipeline.hpp"

namespace carina::pipeline {

/// Networks whose recurrences have more steps than that together are not weighed. Straight code takes about
/// steps / 25 times the commands of a loop, and no NPU a sixteenth of its time.
constexpr int64_t kMostWeighed = 400;

/// What another build may begin with; without the float network, the quantizer's report and warnings.
Front cloneOf(const Front& front);

/// Whether both forms are to be built: for an Ethos-U, where Options::unroll does not say it.
bool weighsLoops(const Front& front, const Options& options);

/// The whole front with all loops over slices as straight code.
Result<Front> withoutLoops(const Front& front);

/// Whether the program of `a` costs less than that of `b`: with Optimize::Size its bytes and its arena, else
/// the cycles of an inference times the bytes of the program (half the time is worth twice the bytes).
bool isCheaper(const Build& a, const Build& b);

}  // namespace carina::pipeline
