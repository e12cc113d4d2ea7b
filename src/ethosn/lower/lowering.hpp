// SPDX-License-Identifier: Apache-2.0
// TOSA to operations of an Ethos-N, node by node: one-to-one translations are in tosa_network.cpp, others in
// lowering_patterns.cpp and lowering_products.cpp.
#pragma once

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ethosn/lower/curve_fit.hpp"
#include "ethosn/lower/operands.hpp"
#include "ethosn/lower/tosa_network.hpp"
#include "tosa/tosa.hpp"

namespace carina::ethosn {

/// A weight of 1: 2 times one half.
inline constexpr uint8_t kOne = 2;
inline constexpr float kHalf = 0.5F;

/// The next larger filter size that the MCE has; `size` if there is none.
int64_t filterSize(int64_t size);

/// A convolution of either kind, as in TOSA.
struct ConvolutionNode {
  const ir::Value *input, *weight, *bias, *inputZp, *weightZp, *output;
  const ir::Ints &pad, &stride, &dilation;
  bool depthwise;
};

/// A linear function of a tensor: slope * (code - zero point) + the offset of its channel, in codes, and a
/// zero point.
struct LineTo {
  double slope = 1;
  std::vector<double> offsets;  // one, or one per channel
  int32_t zeroPoint = 0;
};

/// Range of codes minus a zero point, or of products of such.
struct CodeRange {
  int64_t low = 0, high = 0;
  int64_t furthest() const { return std::max(-low, high); }
};

class Lowering {
 public:
  explicit Lowering(const ir::Graph& graph) : graph_(graph) {}
  Result<Network> run();
  const std::unordered_map<const ir::Value*, int32_t>& tensors() const { return tensors_; }

 private:
  Status lower(const ir::Node& node);
  Status rescale(const ir::Node& node, const tosa::Rescale& rescale);
  Status convolution(const ir::Node& node, const ConvolutionNode& conv, const tosa::Rescale& rescale);
  Status wholeMap(const ir::Node& node, const ConvolutionNode& conv, const tosa::Rescale& rescale);
  static std::optional<double> ratioOfMean(const ConvolutionNode& conv, const tosa::Rescale& rescale);
  Status meanOfMap(const ir::Node& node, const ConvolutionNode& conv, const tosa::Rescale& rescale,
                   double ratio);
  Status addition(const ir::Node& node, const ir::Value* left, const ir::Value* right, bool subtracts,
                  const tosa::Rescale& rescale);
  Status pool(const ir::Node& node, const ir::Value* input, const ir::Value* output, const ir::Ints& kernel,
              const ir::Ints& stride, const ir::Ints& pad, PoolingType type);
  Status reshape(const ir::Node& node, const ir::Value* input, const ir::Value* output);
  Status transpose(const ir::Node& node, const tosa::Transpose& transpose);
  Status slice(const ir::Node& node, const tosa::Slice& slice);
  Status concat(const ir::Node& node, const tosa::Concat& concat);
  Status pad(const ir::Node& node, const tosa::Pad& pad);
  Status clamp(const ir::Node& node, const tosa::Clamp& clamp);
  // lowering_patterns.cpp
  Status requantization(const ir::Node& node, const tosa::Rescale& rescale);
  Status transposeConvolution(const ir::Node& node, const tosa::TransposeConv2d& conv,
                              const tosa::Rescale& rescale);
  Status resize(const ir::Node& node, const tosa::Resize& resize, const tosa::Rescale* rescale);
  /// Whether it uses the elements that the MCE uses to produce twice as many, or one less.
  static Status checkDoubles(const tosa::Resize& resize);
  Status table(const ir::Node& node, const tosa::Table& table);
  Status averageByFilter(const ir::Node& node, const tosa::AvgPool2d& pool);
  bool averages(const tosa::AvgPool2d& pool) const;
  Status moveByFilter(const ir::Node& node, const tosa::Reshape& last);
  // lowering_products.cpp
  Status product(const ir::Node& node, const tosa::Mul& mul, const tosa::Rescale& rescale);
  Status productOfConstant(const ir::Node& node, const WideOperand& input, const WideOperand& constant,
                           const tosa::Rescale& rescale);
  /// sign * input + constantSign * constant.
  Status sumWithConstant(const ir::Node& node, const WideOperand& input, int sign,
                         const WideOperand& constant, int constantSign, const tosa::Rescale& rescale);
  Status gatedLine(const ir::Node& node, const tosa::Table& table, const GatedLine& gated,
                   std::span<const int32_t, 256> results);
  int32_t multiplied(const ir::Node& node, int32_t a, int32_t b, const CodeRange& products, double scale,
                     int32_t zeroPoint);
  Status clampedLine(const ir::Node& node, const tosa::Table& table, const ClampedLine& line);
  int32_t line(const ir::Node& node, int32_t tensor, const LineTo& to);
  bool channelsToTheEnd(const ir::Node& node, int32_t& a, int32_t& b);
  int32_t stretched(const ir::Node& node, int32_t tensor, const Shape& whole);
  int32_t pixelOverMap(const ir::Node& node, int32_t tensor, uint32_t height, uint32_t width);
  int32_t planeOverChannels(const ir::Node& node, int32_t tensor, uint32_t channels);
  /// Stretches two operands to one shape. `verb`: what the node does with them, for errors.
  Status stretchToEachOther(const ir::Node& node, std::string_view verb, int32_t& a, int32_t& b);

  Result<int32_t> tensorOf(const ir::Value* value) const;
  /// The tensor with another quantization.
  Result<int32_t> seenAs(const ir::Node& node, const ir::Value* value, int64_t zeroPoint, float scale);
  std::vector<int32_t> append(const ir::Node& node, Operation operation, std::vector<int32_t> inputs,
                              std::vector<uint8_t> weights = {}, std::vector<int32_t> biases = {});
  void define(const ir::Value* value, int32_t tensor) { tensors_[value] = tensor; }
  const TensorInfo& info(int32_t tensor) const { return network_.tensors[static_cast<size_t>(tensor)]; }

  const ir::Graph& graph_;
  Network network_;
  std::unordered_map<const ir::Value*, int32_t> tensors_;
  std::unordered_set<const ir::Value*> failed_;  // results of nodes without a counterpart
};

}  // namespace carina::ethosn
