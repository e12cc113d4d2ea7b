// SPDX-License-Identifier: Apache-2.0
// Runs samples through the float executor and observes the annotated values.
#pragma once

#include <span>
#include <vector>

#include "quantize/annotate.hpp"
#include "quantize/layer_inputs.hpp"
#include "quantize/quantize.hpp"
#include "quantize/seen.hpp"

namespace carina::quantize {

/// The range of every group of the annotation. A group's observer sees all its values of the first sample, in
/// program order, then those of the second, and so on, whatever the number of threads. Constants are observed
/// once. `inputs` sees the samples as well. With `rangeMargin` the ranges of histograms reach beyond the
/// samples, as far as these differ. The int16 form of a value that is made in int8 has the range of the
/// latter. `loops`: of the executor. `first`: what the first sample shows, where it ran before; it is used
/// up. `outputs`: is given what the network makes of the samples that it has.
Result<std::vector<Range>> calibrate(const ir::Graph& graph, const Annotation& annotation,
                                     std::span<const Sample> samples, bool rangeMargin, LayerInputs& inputs,
                                     const Progress& progress, WorkBudget* loops, Seen* first = nullptr,
                                     FloatOutputs* outputs = nullptr);

}  // namespace carina::quantize
