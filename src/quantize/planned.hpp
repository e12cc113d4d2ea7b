// SPDX-License-Identifier: Apache-2.0
// The two halves of quantize(): what is decided, and what is done to the graph.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "quantize/plan.hpp"
#include "quantize/weight_codes.hpp"

namespace carina::quantize {

struct Planned {
  std::optional<Plan> plan;            // none: the graph carries its quantization
  std::optional<ir::Graph> reference;  // the float graph as it is quantized
};

/// Prepares the graph and decides. The plan refers to values of the graph.
Result<Planned> planQuantization(ir::Graph& graph, const Options& options, std::span<const Sample> samples,
                                 const Progress& progress = nullptr);

/// Integer weights and biases of layers by the names of their results, for other graphs with the same layers.
struct LayerRounding {
  struct Layer {
    WeightCodes weight;
    std::optional<Tensor> bias;
  };
  std::map<std::string, Layer> layers;
};

/// Integer weights by the float weights that they stand for (hash, then contents), for other graphs that have
/// some of these.
struct KnownWeights {
  struct Weight {
    Tensor real;
    WeightCodes codes;
  };
  std::multimap<size_t, Weight> weights;
};

/// What earlier networks of a program decide.
struct Precedent {
  KnownWeights* weights = nullptr;    // layers with equal weights and scales are rounded as it says
  LayerRounding* rounding = nullptr;  // and those that it holds, with their biases; of a family
};

/// Carries the plan out, on the graph that it was made for. What the precedent lacks is added to it.
Result<Quantized> insertPlanned(ir::Graph graph, const Options& options, std::span<const Sample> samples,
                                Planned planned, const Precedent& precedent = {});

}  // namespace carina::quantize
