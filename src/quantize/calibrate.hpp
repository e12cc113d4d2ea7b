// SPDX-License-Identifier: Apache-2.0
// Runs samples through the float executor and observes the annotated values.
#pragma once

#include <span>
#include <vector>

#include "quantize/annotate.hpp"
#include "quantize/quantize.hpp"

namespace carina::quantize {

/// The range of every group of the annotation. A group's observer sees all its values of the first sample, in
/// program order, then those of the second, and so on, whatever the number of threads. Constants are observed
/// once.
Result<std::vector<Range>> calibrate(const ir::Graph& graph, const Annotation& annotation,
                                     const Options& options, std::span<const Sample> samples,
                                     const Progress& progress);

}  // namespace carina::quantize
