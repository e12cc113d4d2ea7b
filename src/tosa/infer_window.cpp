// SPDX-License-Identifier: Apache-2.0
// Inference of operators that slide a window over an image: pooling, convolutions, resize.
#include "tosa/infer.hpp"
#include "tosa/node_checker.hpp"
#include "tosa/tosa.hpp"

namespace carina::tosa::infer {
namespace {

Status attributeLength(const ir::Ints& values, size_t count, std::string_view name) {
  if (values.size() == count) return {};
  return broken("AttributeLength", "attribute '{}' has {} entries, expected {}", name, values.size(), count);
}

Status atLeast(const ir::Ints& values, int64_t least, std::string_view name, std::string_view rule) {
  for (int64_t value : values) {
    if (value < least) return broken(rule, "{} {} is smaller than {}", name, value, least);
    if (value > INT32_MAX) return broken("MaxDimExceeded", "{} {} exceeds 32 bits", name, value);
  }
  return {};
}

/// Number of window positions: (size + before + after - extent) / stride + 1, which must divide exactly.
Result<int64_t> positions(int64_t size, int64_t before, int64_t after, int64_t extent, int64_t stride,
                          std::string_view rule) {
  const int64_t room = size + before + after - extent;
  if (room < 0)
    return broken(rule, "a window of {} does not fit {} padded by {} and {}", extent, size, before, after);
  if (room % stride != 0) {
    return broken(rule, "{} padded by {} and {}, minus a window of {}, is not divisible by stride {}", size,
                  before, after, extent, stride);
  }
  return room / stride + 1;
}

struct ConvGeometry {
  const ir::Ints& pad;
  const ir::Ints& stride;
  const ir::Ints& dilation;
};

Status convBias(const ir::Value* bias, int64_t channels) {
  if (bias->dim(0) == 1 || bias->dim(0) == channels) return {};
  return broken("ConvBiasShapeMismatch", "bias has {} elements for {} output channels", bias->dim(0),
                channels);
}

/// Spatial sizes of the result; input and kernel sizes from outermost to innermost.
Result<Shape> convSizes(std::span<const int64_t> input, std::span<const int64_t> kernel,
                        const ConvGeometry& geometry) {
  const size_t n = input.size();
  CARINA_RETURN_IF_ERROR(attributeLength(geometry.pad, 2 * n, "pad"));
  CARINA_RETURN_IF_ERROR(attributeLength(geometry.stride, n, "stride"));
  CARINA_RETURN_IF_ERROR(attributeLength(geometry.dilation, n, "dilation"));
  CARINA_RETURN_IF_ERROR(atLeast(geometry.pad, 0, "padding", "PadSmallerZero"));
  CARINA_RETURN_IF_ERROR(atLeast(geometry.stride, 1, "stride", "StrideSmallerOne"));
  CARINA_RETURN_IF_ERROR(atLeast(geometry.dilation, 1, "dilation", "DilationSmallerOne"));
  Shape sizes;
  for (size_t i = 0; i < n; ++i) {
    const auto extent = checkedMul(kernel[i] - 1, geometry.dilation[i]);
    if (!extent || *extent > INT32_MAX) return broken("MaxDimExceeded", "the dilated kernel exceeds 32 bits");
    CARINA_TRY(const int64_t size, positions(input[i], geometry.pad[2 * i], geometry.pad[2 * i + 1],
                                             *extent + 1, geometry.stride[i], "ConvOutputShapeNonInteger"));
    sizes.push_back(size);
  }
  return sizes;
}

std::span<const int64_t> part(const Shape& shape, size_t first, size_t count) {
  return std::span<const int64_t>(shape).subspan(first, count);
}

/// CONV2D (two spatial dimensions) and CONV3D (three): weight [OC, K.., IC].
template <typename Op>
Types convolution(const ir::Node& node, size_t dimensions) {
  const auto op = ir::cast<Op>(&node);
  NodeChecker checker(node);
  CARINA_RETURN_IF_ERROR(checker.operands());
  const Shape& input = op.input()->shape();
  const Shape& weight = op.weight()->shape();
  CARINA_TRY(const Shape sizes, convSizes(part(input, 1, dimensions), part(weight, 1, dimensions),
                                          {op.pad(), op.stride(), op.dilation()}));
  if (input.back() != weight.back()) {
    return broken("ChannelMismatch", "the input has {} channels, the weight {}", input.back(), weight.back());
  }
  CARINA_RETURN_IF_ERROR(convBias(op.bias(), weight[0]));
  Shape output{input[0]};
  output.insert(output.end(), sizes.begin(), sizes.end());
  output.push_back(weight[0]);
  return checker.results({output}, "ConvOutputShapeMismatch");
}

}  // namespace

Types conv2d(const ir::Node& node) {
  return convolution<Conv2d>(node, 2);
}
Types conv3d(const ir::Node& node) {
  return convolution<Conv3d>(node, 3);
}

Types depthwiseConv2d(const ir::Node& node) {
  const auto op = ir::cast<DepthwiseConv2d>(&node);
  NodeChecker checker(node);
  CARINA_RETURN_IF_ERROR(checker.operands());
  const Shape& input = op.input()->shape();
  const Shape& weight = op.weight()->shape();
  CARINA_TRY(const Shape sizes,
             convSizes(part(input, 1, 2), part(weight, 0, 2), {op.pad(), op.stride(), op.dilation()}));
  if (input[3] != weight[2]) {
    return broken("ChannelMismatch", "the input has {} channels, the weight {}", input[3], weight[2]);
  }
  const auto channels = checkedMul(weight[2], weight[3]);
  if (!channels) return broken("MaxDimExceeded", "too many output channels");
  CARINA_RETURN_IF_ERROR(convBias(op.bias(), *channels));
  return checker.results({{input[0], sizes[0], sizes[1], *channels}}, "ConvOutputShapeMismatch");
}

Types transposeConv2d(const ir::Node& node) {
  const auto op = ir::cast<TransposeConv2d>(&node);
  NodeChecker checker(node);
  CARINA_RETURN_IF_ERROR(checker.operands());
  const Shape& input = op.input()->shape();
  const Shape& weight = op.weight()->shape();
  CARINA_RETURN_IF_ERROR(attributeLength(op.outPad(), 4, "out_pad"));
  CARINA_RETURN_IF_ERROR(attributeLength(op.stride(), 2, "stride"));
  CARINA_RETURN_IF_ERROR(atLeast(op.stride(), 1, "stride", "StrideSmallerOne"));
  CARINA_RETURN_IF_ERROR(atLeast(op.outPad(), -int64_t{INT32_MAX}, "out_pad", "PadLargerEqualKernel"));
  if (input[3] != weight[3]) {
    return broken("ChannelMismatch", "the input has {} channels, the weight {}", input[3], weight[3]);
  }
  CARINA_RETURN_IF_ERROR(convBias(op.bias(), weight[0]));
  Shape output{input[0], 0, 0, weight[0]};
  for (size_t i = 0; i < 2; ++i) {
    const int64_t kernel = weight[1 + i];
    const int64_t before = op.outPad()[2 * i], after = op.outPad()[2 * i + 1];
    if (before <= -kernel || after <= -kernel) {
      return broken("PadLargerEqualKernel", "out_pad {} and {} must be larger than minus the kernel size {}",
                    before, after, kernel);
    }
    const auto span = checkedMul(input[1 + i] - 1, op.stride()[i]);
    if (!span || *span > INT32_MAX) return broken("MaxDimExceeded", "the output exceeds 32 bits");
    output[1 + i] = *span + before + after + kernel;
    if (output[1 + i] < 1) return broken("ConvOutputShapeMismatch", "the output has size {}", output[1 + i]);
  }
  return checker.results({output}, "ConvOutputShapeMismatch");
}

Types pool2d(const ir::Node& node) {
  NodeChecker checker(node);
  CARINA_RETURN_IF_ERROR(checker.operands());
  // Both pooling operators begin their attributes with kernel, stride, pad.
  const auto& kernel = node.attributeAs<ir::Ints>(0);
  const auto& stride = node.attributeAs<ir::Ints>(1);
  const auto& pad = node.attributeAs<ir::Ints>(2);
  CARINA_RETURN_IF_ERROR(attributeLength(kernel, 2, "kernel"));
  CARINA_RETURN_IF_ERROR(attributeLength(stride, 2, "stride"));
  CARINA_RETURN_IF_ERROR(attributeLength(pad, 4, "pad"));
  CARINA_RETURN_IF_ERROR(atLeast(kernel, 1, "kernel", "KernelSmallerOne"));
  CARINA_RETURN_IF_ERROR(atLeast(stride, 1, "stride", "StrideSmallerOne"));
  CARINA_RETURN_IF_ERROR(atLeast(pad, 0, "padding", "PadSmallerZero"));
  const Shape& input = node.operand(0)->shape();
  Shape output = input;
  for (size_t i = 0; i < 2; ++i) {
    if (pad[2 * i] >= kernel[i] || pad[2 * i + 1] >= kernel[i]) {
      return broken("PadLargerEqualKernel", "padding {} and {} must be smaller than the kernel size {}",
                    pad[2 * i], pad[2 * i + 1], kernel[i]);
    }
    CARINA_TRY(output[1 + i], positions(input[1 + i], pad[2 * i], pad[2 * i + 1], kernel[i], stride[i],
                                        "PoolingOutputShapeNonInteger"));
  }
  return checker.results({output}, "PoolingOutputShapeMismatch");
}

Types resize(const ir::Node& node) {
  const auto op = ir::cast<Resize>(&node);
  NodeChecker checker(node);
  CARINA_RETURN_IF_ERROR(checker.operands());
  const auto scale = shapeValues(op.scale()), offset = shapeValues(op.offset()),
             border = shapeValues(op.border());
  if (scale.size() != 4 || offset.size() != 2 || border.size() != 2) {
    return broken("InputRank1WrongRank",
                  "scale, offset and border need 4, 2 and 2 entries, but have {}, {} and {}", scale.size(),
                  offset.size(), border.size());
  }
  if (op.mode() == ResizeMode::UNKNOWN)
    return broken("WrongResizeMode", "the mode must be NEAREST or BILINEAR");
  const DType in = op.input()->dtype();
  const bool widens = op.mode() == ResizeMode::BILINEAR && !isFloat(in);
  CARINA_RETURN_IF_ERROR(checker.keepRows(
      [&](const TypeRow& row) { return (row.results[0] != static_cast<uint8_t>(in)) == widens; },
      "WrongOutputType"));
  const Shape& input = op.input()->shape();
  Shape output = input;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t n = scale[2 * i], d = scale[2 * i + 1];
    if (input[1 + i] >= 16384)
      return broken("MaxDimExceeded", "input size {} must be smaller than 16384", input[1 + i]);
    if (n <= 0 || d <= 0) return broken("ScaleSmallerEqualZero", "scale {}/{} must be positive", n, d);
    if (n > 2048) return broken("ScaleNLargerMax", "scale numerator {} is larger than 2048", n);
    if (d >= 16 * n) return broken("ScaleDLargerMax", "scale {}/{} is not larger than 1/16", n, d);
    if (offset[i] < -n) return broken("OffsetSmallerMin", "offset {} is smaller than {}", offset[i], -n);
    if (offset[i] >= 16 * n)
      return broken("OffsetLargerEqualMax", "offset {} is not smaller than {}", offset[i], 16 * n);
    if (border[i] < -16 * n)
      return broken("BorderSmallerMin", "border {} is smaller than {}", border[i], -16 * n);
    if (border[i] >= n)
      return broken("BorderLargerEqualMax", "border {} is not smaller than {}", border[i], n);
    const int64_t span = (input[1 + i] - 1) * n - offset[i] + border[i];
    if (span < 0 || span % d != 0) {
      return broken("ResizeOutputShapeNonInteger", "the scaled size {} is not divisible by {}", span, d);
    }
    output[1 + i] = span / d + 1;
    if (output[1 + i] >= 16384)
      return broken("MaxDimExceeded", "output size {} must be smaller than 16384", output[1 + i]);
  }
  if (const Shape* recorded = checker.recordedShape(); recorded && recorded->size() == 4) {
    if ((*recorded)[0] != input[0])
      return broken("BatchMismatch", "{} batches become {}", input[0], (*recorded)[0]);
    if ((*recorded)[3] != input[3])
      return broken("ChannelMismatch", "{} channels become {}", input[3], (*recorded)[3]);
  }
  return checker.results({output}, "ResizeOutputShapeMismatch", "WrongRank");
}

}  // namespace carina::tosa::infer
