// SPDX-License-Identifier: Apache-2.0
// The two halves of quantize(): making the decisions, and applying them to the graph.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "quantize/plan.hpp"
#include "quantize/weight_codes.hpp"

namespace carina::quantize {

struct Planned {
  std::optional<Plan> plan;            // none: the graph is prequantized
  std::optional<ir::Graph> reference;  // the prepared float graph
};

/// Prepares the graph and plans its quantization. The plan refers to values of the graph.
Result<Planned> planQuantization(ir::Graph& graph, const Options& options, std::span<const Sample> samples,
                                 const Progress& progress = nullptr);

/// Integer weights and corrected float biases of layers by the names of their results, for other graphs with
/// the same layers.
struct LayerRounding {
  struct Layer {
    WeightCodes weight;
    std::optional<Tensor> bias;
  };
  std::map<std::string, Layer> layers;
};

/// Integer weights by the float weights that they represent (hash, then contents), for other graphs that
/// share some of these.
struct KnownWeights {
  struct Weight {
    Tensor real;
    WeightCodes codes;
  };
  std::multimap<size_t, Weight> weights;
};

/// Decisions made for earlier networks of a program.
struct Precedent {
  KnownWeights* weights = nullptr;    // reused by layers with equal weights and scales
  LayerRounding* rounding = nullptr;  // of a family: layers in it reuse codes and biases
};

/// Applies the plan to the graph that it was made for. Layers that the precedent lacks are added to it.
Result<Quantized> insertPlanned(ir::Graph graph, const Options& options, std::span<const Sample> samples,
                                Planned planned, const Precedent& precedent = {});

}  // namespace carina::quantize
