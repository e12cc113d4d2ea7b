// SPDX-License-Identifier: Apache-2.0
#include "ethosn/support/operation.hpp"

#include <algorithm>

namespace carina::ethosn {
namespace {

constexpr std::string_view kOperatorNames[] = {
    "input",
    "output",
    "constant",
    "convolution",
    "depthwise_convolution",
    "transpose_convolution",
    "fully_connected",
    "standalone_padding",
    "concatenation",
    "split",
    "addition",
    "multiplication",
    "relu",
    "leaky_relu",
    "requantize",
    "reinterpret_quantization",
    "sigmoid",
    "tanh",
    "mean_xy",
    "pooling",
    "reshape",
    "depth_to_space",
    "space_to_depth",
    "transpose",
    "resize",
    "estimate_only",
};
static_assert(std::size(kOperatorNames) == kOperators);

/// Sizes are 32-bit as in the hardware's registers; the result is 0 if the window exceeds the padded input.
uint32_t convolvedSize(uint32_t size, uint32_t window, uint32_t stride, uint32_t padding) {
  const uint32_t positive = size + stride + padding;
  return (std::max(positive, window) - window) / stride;
}

uint32_t transposedSize(uint32_t size, uint32_t window, uint32_t stride, uint32_t padding) {
  const uint32_t positive = size * stride + window, negative = stride + padding;
  return std::max(positive, negative) - negative;
}

TensorInfo convolved(const Operation& operation, const TensorInfo& input) {
  const auto size = operation.op == Operator::TransposeConvolution ? transposedSize : convolvedSize;
  const Shape& weights = operation.weights.shape;
  const Padding& pad = operation.padding;
  TensorInfo out = input;
  out.shape = {input.shape[0], size(input.shape[1], weights[0], operation.stride.y, pad.top + pad.bottom),
               size(input.shape[2], weights[1], operation.stride.x, pad.left + pad.right), weights[3]};
  if (operation.weights.format == DataFormat::Hwim) out.shape[3] *= input.shape[3];
  out.quantization = operation.outputQuantization;
  return out;
}

uint32_t samePaddingTotal(uint32_t size, uint32_t window, uint32_t stride) {
  const uint32_t steps = size / stride + (size % stride != 0 ? 1 : 0);
  const uint32_t padded = (steps - 1) * stride + window;
  return padded > size ? padded - size : 0;
}

}  // namespace

std::string_view operatorName(Operator op) {
  return kOperatorNames[static_cast<size_t>(op)];
}

std::string_view dataTypeName(DataType type) {
  constexpr std::string_view kNames[] = {"u8", "s8", "s32"};
  return kNames[static_cast<size_t>(type)];
}

std::string_view dataFormatName(DataFormat format) {
  constexpr std::string_view kNames[] = {"nhwc", "nchw", "hwio", "nhwcb", "hwim"};
  return kNames[static_cast<size_t>(format)];
}

uint64_t elements(const Shape& shape) {
  uint64_t count = 1;
  for (uint32_t size : shape) count *= size;
  return count;
}

Padding samePadding(uint32_t height, uint32_t width, Extent window, Extent stride, SamePadding mode) {
  const auto sides = [mode](uint32_t total, uint32_t& before, uint32_t& after) {
    const uint32_t large = total / 2 + total % 2, small = total - large;
    before = mode == SamePadding::PreferAfter ? small : large;
    after = mode == SamePadding::PreferBefore ? small : large;
  };
  Padding out;
  sides(samePaddingTotal(height, window.y, stride.y), out.top, out.bottom);
  sides(samePaddingTotal(width, window.x, stride.x), out.left, out.right);
  return out;
}

std::vector<TensorInfo> outputsOf(const Operation& operation, std::span<const TensorInfo> inputs) {
  TensorInfo out = inputs.empty() ? TensorInfo{} : inputs[0];
  switch (operation.op) {
    case Operator::Input:
    case Operator::Constant:
    case Operator::Relu:
      break;
    case Operator::Output:
      out.format = operation.outputFormat;
      break;
    case Operator::Convolution:
    case Operator::DepthwiseConvolution:
    case Operator::TransposeConvolution:
      out = convolved(operation, inputs[0]);
      break;
    case Operator::FullyConnected:
      out.shape = {out.shape[0], 1, 1, operation.weights.shape[3]};
      out.quantization = operation.outputQuantization;
      break;
    case Operator::StandalonePadding:
      out.shape[1] += operation.padding.top + operation.padding.bottom;
      out.shape[2] += operation.padding.left + operation.padding.right;
      break;
    case Operator::Concatenation:
      out.shape[operation.axis] = 0;
      for (const TensorInfo& input : inputs) out.shape[operation.axis] += input.shape[operation.axis];
      out.quantization = operation.outputQuantization;
      break;
    case Operator::Split: {
      std::vector<TensorInfo> parts;
      for (uint32_t size : operation.sizes) parts.emplace_back(out).shape[operation.axis] = size;
      return parts;
    }
    case Operator::Addition:
    case Operator::Multiplication:
      for (size_t i = 0; i < 4; ++i) out.shape[i] = std::max(inputs[0].shape[i], inputs[1].shape[i]);
      out.format = DataFormat::Nhwc;
      out.quantization = operation.outputQuantization;
      break;
    case Operator::LeakyRelu:
    case Operator::ReinterpretQuantization:
      out.quantization = operation.outputQuantization;
      break;
    case Operator::Requantize:
      out.quantization = operation.outputQuantization;
      out.type = operation.outputType.value_or(out.type);
      break;
    case Operator::Sigmoid:
      out.quantization = {out.type == DataType::S8 ? -128 : 0, {1.0F / 256}, std::nullopt};
      break;
    case Operator::Tanh:
      out.quantization = {out.type == DataType::S8 ? 0 : 128, {1.0F / 128}, std::nullopt};
      break;
    case Operator::MeanXy:
      out.shape[1] = out.shape[2] = 1;
      break;
    case Operator::Pooling:
      out.shape[1] = (out.shape[1] + operation.padding.top + operation.padding.bottom - operation.window.y) /
                         operation.stride.y +
                     1;
      out.shape[2] = (out.shape[2] + operation.padding.left + operation.padding.right - operation.window.x) /
                         operation.stride.x +
                     1;
      break;
    case Operator::Reshape:
      out.shape = operation.newShape;
      break;
    case Operator::DepthToSpace:
      out.shape[1] *= operation.blockSize;
      out.shape[2] *= operation.blockSize;
      out.shape[3] /= operation.blockSize * operation.blockSize;
      break;
    case Operator::SpaceToDepth:
      out.shape[1] /= operation.blockSize;
      out.shape[2] /= operation.blockSize;
      out.shape[3] *= operation.blockSize * operation.blockSize;
      break;
    case Operator::Transpose:
      for (size_t i = 1; i < 4; ++i) out.shape[i] = inputs[0].shape[operation.permutation[i]];
      break;
    case Operator::Resize:
      out.shape[1] = operation.newShape[1];
      out.shape[2] = operation.newShape[2];
      out.quantization = operation.outputQuantization;
      break;
    case Operator::EstimateOnly:
      return operation.estimateOutputs;
  }
  return {out};
}

}  // namespace carina::ethosn
