// SPDX-License-Identifier: Apache-2.0
// Weights and biases as integers.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "quantize/annotate.hpp"
#include "quantize/sqnr.hpp"

namespace carina::quantize {

/// Fails if float weights or biases hold NaN or infinite values, and names the layers. `wanted`: the nodes to
/// check; null: all.
Status checkWeights(const ir::Graph& graph, const std::function<bool(const ir::Node&)>& wanted = nullptr);

/// Codes of weights or biases: real = scale * code, with one scale per index along `axis`, or a single one.
struct WeightCodes {
  Tensor codes;
  std::vector<float> scales;
  bool perChannel = false;
  int axis = 0;
  CodeRange range = kInt8Weight;  // of the codes

  /// Of the values that the codes represent.
  Sqnr sqnr(const Tensor& weight) const;
};

/// x clamped to [-most, most] and rounded half to even: between 2^23 and 2^24, floats are whole numbers.
/// Unlike nearbyint(), it allows loops to be vectorised.
inline float weightCode(float x, float most) {
  constexpr float kWhole = 0x1.8p23f;
  return (std::min(std::max(x, -most), most) + kWhole) - kWhole;
}

/// The integer weights of every layer that has them.
using LayerCodes = std::unordered_map<const ir::Node*, WeightCodes>;

/// Symmetric codes in `range`, scaled by the largest magnitude per channel (or overall); with fewer than 8
/// bits, by the fraction of it with the least squared error, since few codes are worth more where most
/// weights are. `leastScales` (empty, or one per channel) are lower bounds; with `shortFactor`, scales are
/// raised until their product with it has 15 bits. Rounding is that of quantize_per_channel
/// (quantize_per_tensor).
WeightCodes quantizeWeight(const Tensor& weight, int axis, bool perChannel, const CodeRange& range,
                           const std::vector<float>& leastScales = {},
                           std::optional<double> shortFactor = std::nullopt);

/// The scales of a layer's input and output.
struct LayerScales {
  double input = 1;
  double output = 1;
};

/// Empty if the layer's input is not quantized.
std::optional<LayerScales> layerScales(const ir::Node& node, const Annotation& annotation,
                                       const std::vector<QParams>& params);

/// The weight of an operator; a grouped transposed convolution gets one scale. If a bias would not fit in 32
/// bits at input scale * weight scale (a channel whose weights are almost zero), the weight's scale is raised
/// until it does. With int16 activations, a scale is raised by up to 2^-14 of itself so that input * weight /
/// output has 15 bits: a 48-bit accumulator can be rescaled by no finer factor, and rounding the factor would
/// change every element in the same proportion.
WeightCodes quantizeWeight(const WeightedOp& op, const LayerScales& scales, const Settings& settings);

/// int32 codes at scale input * weight (a float32 product), as many scales as the weight has. With int16
/// activations, whose accumulators have 48 bits, a scale is doubled until its codes fit 32 bits.
WeightCodes quantizeBias(const Tensor& bias, double inputScale, const WeightCodes& weight,
                         Precision precision);

}  // namespace carina::quantize
