// SPDX-License-Identifier: Apache-2.0
// What quantization decides before it changes the graph: settings of every operator, which tensors have
// codes, and which ones.
#pragma once

#include <span>
#include <vector>

#include "quantize/annotate.hpp"
#include "quantize/assign.hpp"
#include "quantize/joins.hpp"
#include "quantize/layer_inputs.hpp"
#include "quantize/quantize.hpp"

namespace carina::quantize {

struct Plan {
  Assignment assignment;
  Annotation annotation;
  Joins joins;
  LayerInputs inputs;           // what the samples show of layers
  std::vector<Range> ranges;    // one per group of the annotation
  std::vector<QParams> params;  // the same
  FloatOutputs outputs;
};

/// The float graph as it is quantized: batch norms folded, every value named, layers equalized if asked for.
Status prepareGraph(ir::Graph& graph, const Options& options, std::span<const Sample> samples);

/// For a graph that is prepared. `wanted`: what of the layers' inputs is looked at. Errors: what the executor
/// cannot run.
Result<Plan> makePlan(const ir::Graph& graph, const Options& options, std::span<const Sample> samples,
                      LayerInputs::Wanted wanted, const Progress& progress = nullptr);

}  // namespace carina::quantize
