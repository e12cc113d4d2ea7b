// SPDX-License-Identifier: Apache-2.0
// Operations of an Ethos-N network as its compiler accepts them: four-dimensional tensors with quantization,
// and the parameters, without data, of each operation. They are the input of the support rules (support.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace carina::ethosn {

/// N, H, W, C (weights: H, W, I, O or H, W, I, M). N is 1.
using Shape = std::array<uint32_t, 4>;

enum class DataType : uint8_t { U8, S8, S32 };
enum class DataFormat : uint8_t { Nhwc, Nchw, Hwio, Nhwcb, Hwim };

/// real = (q - zeroPoint) * scale. `dim`: the dimension along which the scales vary, for weights and biases.
struct Quantization {
  int32_t zeroPoint = 0;
  std::vector<float> scales{1.0F};
  std::optional<uint32_t> dim;
  friend bool operator==(const Quantization&, const Quantization&) = default;
};

struct TensorInfo {
  Shape shape{};
  DataType type = DataType::U8;
  DataFormat format = DataFormat::Nhwc;
  Quantization quantization;
  friend bool operator==(const TensorInfo&, const TensorInfo&) = default;
};

struct Padding {
  uint32_t top = 0, bottom = 0, left = 0, right = 0;
  friend bool operator==(const Padding&, const Padding&) = default;
};

struct Extent {
  uint32_t x = 1, y = 1;
  friend bool operator==(const Extent&, const Extent&) = default;
};

enum class PoolingType : uint8_t { Max, Average };
enum class ResizeAlgorithm : uint8_t { NearestNeighbour, Bilinear };

enum class Operator : uint8_t {
  Input,
  Output,
  Constant,
  Convolution,
  DepthwiseConvolution,
  TransposeConvolution,
  FullyConnected,
  StandalonePadding,
  Concatenation,
  Split,
  Addition,
  Multiplication,
  Relu,
  LeakyRelu,
  Requantize,
  ReinterpretQuantization,
  Sigmoid,
  Tanh,
  MeanXy,
  Pooling,
  Reshape,
  DepthToSpace,
  SpaceToDepth,
  Transpose,
  Resize,
  EstimateOnly,
};
inline constexpr size_t kOperators = 26;

std::string_view operatorName(Operator op);  // "depthwise_convolution"
std::string_view dataTypeName(DataType type);
std::string_view dataFormatName(DataFormat format);

/// One operation; `op` determines which members are used.
struct Operation {
  Operator op = Operator::Input;
  TensorInfo weights, bias;                    // convolutions (HWIO, HWIM), fully connected ([1,1,I,O])
  Padding padding;                             // convolutions, pooling, standalone padding
  Extent stride;                               // convolutions, pooling
  Extent window;                               // pooling
  PoolingType pooling = PoolingType::Max;      // pooling
  Quantization outputQuantization;             // operators that requantize
  std::optional<DataType> outputType;          // requantize; none: that of the input
  DataFormat outputFormat = DataFormat::Nhwc;  // output
  uint32_t axis = 3;                           // concatenation, split
  std::vector<uint32_t> sizes;                 // split
  int32_t lower = 0, upper = 255;              // relu: bounds as quantized values of the input, 16 bits
  float alpha = 0.01F;                         // leaky relu
  uint32_t blockSize = 2;                      // depth to space, space to depth
  Shape newShape{};                            // reshape; resize: H and W
  std::array<uint32_t, 4> permutation{0, 1, 2, 3};
  ResizeAlgorithm resize = ResizeAlgorithm::NearestNeighbour;
  std::vector<TensorInfo> estimateOutputs;  // estimate only
};

uint64_t elements(const Shape& shape);

/// Padding that yields ceil(size / stride) outputs. If the total is odd, the mode determines which side gets
/// the larger half; Symmetric gives it to both sides.
enum class SamePadding : uint8_t { PreferBefore, PreferAfter, Symmetric };
Padding samePadding(uint32_t height, uint32_t width, Extent window, Extent stride, SamePadding mode);

/// The operation's outputs for these inputs. The support rules must have validated the parameters: strides
/// and block sizes are not zero, axes and permutations are in range.
std::vector<TensorInfo> outputsOf(const Operation& operation, std::span<const TensorInfo> inputs);

}  // namespace carina::ethosn
