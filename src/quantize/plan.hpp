// SPDX-License-Identifier: Apache-2.0
// The decisions of quantization before it changes the graph: the settings of every operator, which tensors
// have codes, and which codes.
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
  LayerInputs inputs;           // statistics of layer inputs
  std::vector<Range> ranges;    // one per group of the annotation
  std::vector<QParams> params;  // the same
  FloatOutputs outputs;
  NormRowsOf rows;                          // that norms in int8 read
  std::vector<std::string> fineSums;        // names of the source nodes of fine sums (fine_sums.hpp)
  std::vector<std::string> wideLogarithms;  // and of those with 32-bit codes (wide_logarithms.hpp)
};

/// Brings the float graph into the form to be quantized: batch norms folded, every value named, layers
/// equalized if requested. `widest`: the widest codes that operators may get.
Status prepareGraph(ir::Graph& graph, const Options& options, std::span<const Sample> samples,
                    Precision widest);
/// The widest codes that the options and their rules give to operators.
Precision widestPrecision(const Options& options);

/// For a prepared graph. `wanted`: which statistics of layer inputs to gather. Errors: graphs that the
/// executor cannot run.
Result<Plan> makePlan(const ir::Graph& graph, const Options& options, std::span<const Sample> samples,
                      LayerInputs::Wanted wanted, const Progress& progress = nullptr);

}  // namespace carina::quantize
