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

/// Fails on float weights and biases that hold NaN or infinite values, with the layers' places. `wanted`: the
/// nodes that it looks at; none: all.
Status checkWeights(const ir::Graph& graph, const std::function<bool(const ir::Node&)>& wanted = nullptr);

/// real = scale * code, with one scale per index along `axis`, or a single one. Of weights or biases.
struct WeightCodes {
  Tensor codes;
  std::vector<float> scales;
  bool perChannel = false;
  int axis = 0;
  CodeRange range = kInt8Weight;  // of the codes

  /// Of the numbers that the codes stand for.
  Sqnr sqnr(const Tensor& weight) const;
};

/// round-half-even of x, cut to weight codes in [-most, most]: between 2^23 and 2^24 floats are whole
/// numbers. Loops over it become vector code, those over nearbyint() do not.
inline float weightCode(float x, float most) {
  constexpr float kWhole = 0x1.8p23f;
  return (std::min(std::max(x, -most), most) + kWhole) - kWhole;
}

/// The integer weights of every layer that has them.
using LayerCodes = std::unordered_map<const ir::Node*, WeightCodes>;

/// Symmetric codes in `range` by the largest magnitude per channel (or overall); of fewer than 8 bits by the
/// share of it at which the squares of the errors are least: few codes are worth more where most weights are.
/// `leastScales` (empty, or one per channel) are bounds from below; with `shortFactor` scales are raised
/// until their product with it has 15 bits. Rounding is that of quantize_per_channel (quantize_per_tensor).
WeightCodes quantizeWeight(const Tensor& weight, int axis, bool perChannel, const CodeRange& range,
                           const std::vector<float>& leastScales = {},
                           std::optional<double> shortFactor = std::nullopt);

/// The scales around a layer.
struct LayerScales {
  double input = 1;
  double output = 1;
};

/// Those of a layer whose input is quantized, else nothing.
std::optional<LayerScales> layerScales(const ir::Node& node, const Annotation& annotation,
                                       const std::vector<QParams>& params);

/// The weight of an operator; a grouped transposed convolution gets one scale. Where a bias would not fit 32
/// bits at input scale * weight scale (a channel with next to no weights), the weight's scale is raised until
/// it does. With int16 activations a scale is raised by up to 2^-14 of itself so that input * weight / output
/// is a number of 15 bits: a 48-bit accumulator is rescaled by no finer one, and any other would be off by
/// the same share for every element.
WeightCodes quantizeWeight(const WeightedOp& op, const LayerScales& scales, const Settings& settings);

/// int32 codes at scale input * weight (a float32 product), as many scales as the weight has. With int16
/// activations, whose accumulators have 48 bits, a scale is doubled until its codes fit 32 bits.
WeightCodes quantizeBias(const Tensor& bias, double inputScale, const WeightCodes& weight,
                         Precision precision);

}  // namespace carina::quantize
