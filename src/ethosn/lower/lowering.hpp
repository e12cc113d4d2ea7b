// SPDX-License-Identifier: Apache-2.0
// TOSA to operations of an Ethos-N, node by node: tosa_network.cpp has what corresponds one to one,
// lowering_patterns.cpp what takes more.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "ethosn/lower/tosa_network.hpp"
#include "tosa/tosa.hpp"

namespace carina::ethosn {

ir::Ints valuesOf(const ir::Value* value);
int64_t valueOf(const ir::Value* value);
/// Multiplier / 2^shift of a RESCALE, per tensor or per channel.
std::vector<float> ratiosOf(const tosa::Rescale& rescale);
/// The next size of filter that the MCE has.
int64_t filterSize(int64_t size);

/// A convolution of either kind as TOSA has it.
struct ConvolutionNode {
  const ir::Value *input, *weight, *bias, *inputZp, *weightZp, *output;
  const ir::Ints &pad, &stride, &dilation;
  bool depthwise;
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
  Status addition(const ir::Node& node, const tosa::Add& add, const tosa::Rescale& rescale);
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
  Status table(const ir::Node& node, const tosa::Table& table);
  Status averageByFilter(const ir::Node& node, const tosa::AvgPool2d& pool);
  bool averages(const tosa::AvgPool2d& pool) const;
  Status moveByFilter(const ir::Node& node, const tosa::Reshape& last);

  Result<int32_t> tensorOf(const ir::Value* value) const;
  /// The tensor under another quantization.
  Result<int32_t> seenAs(const ir::Node& node, const ir::Value* value, int64_t zeroPoint, float scale);
  std::vector<int32_t> append(const ir::Node& node, Operation operation, std::vector<int32_t> inputs,
                              std::vector<uint8_t> weights = {}, std::vector<int32_t> biases = {});
  void define(const ir::Value* value, int32_t tensor) { tensors_[value] = tensor; }
  const TensorInfo& info(int32_t tensor) const { return network_.tensors[static_cast<size_t>(tensor)]; }

  const ir::Graph& graph_;
  Network network_;
  std::unordered_map<const ir::Value*, int32_t> tensors_;
  std::unordered_set<const ir::Value*> failed_;  // results of what has no counterpart
};

}  // namespace carina::ethosn
