// SPDX-License-Identifier: Apache-2.0
// The two halves of quantize(): what is decided, and what is done to the graph.
#pragma once

#include "quantize/plan.hpp"

namespace carina::quantize {

struct Planned {
  std::optional<Plan> plan;            // none: the graph carries its quantization
  std::optional<ir::Graph> reference;  // the float graph as it is quantized
};

/// Prepares the graph and decides. The plan refers to values of the graph.
Result<Planned> planQuantization(ir::Graph& graph, const Options& options, std::span<const Sample> samples,
                                 const Progress& progress = nullptr);

/// Carries the plan out, on the graph that it was made for.
Result<Quantized> insertPlanned(ir::Graph graph, const Options& options, std::span<const Sample> samples,
                                Planned planned);

}  // namespace carina::quantize
