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

/// What calibration gathers besides the ranges of groups. The keys say what is wanted.
struct Gathered {
  FloatOutputs outputs;  // of the network, by the number of the sample; large ones are left out
  RangesOf ranges;       // of single values; what they hold is extended
  NormRowsOf rows;       // the same
};

/// Returns the range of every group of the annotation. A group's observer sees all its values of the first
/// sample, in program order, then those of the second, and so on, regardless of the number of threads.
/// Constants are observed once. `inputs` is fed with the samples as well. With `rangeMargin`, histogram
/// ranges extend beyond the samples, depending on how much these differ. The int16 form of a value produced
/// in int8 has the range of its int8 form. `loops`: the executor's budget. `first`: the values of the first
/// sample, if it has already run; consumed. It holds no ranges of single values.
Result<std::vector<Range>> calibrate(const ir::Graph& graph, const Annotation& annotation,
                                     std::span<const Sample> samples, bool rangeMargin, LayerInputs& inputs,
                                     const Progress& progress, WorkBudget* loops, Seen* first = nullptr,
                                     Gathered* gathered = nullptr);

}  // namespace carina::quantize
