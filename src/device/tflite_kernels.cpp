// SPDX-License-Identifier: Apache-2.0
#include "device/tflite_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "lower_tfl/fixed_point.hpp"

namespace carina::device {
namespace {

using Kernel = TfliteKernel;
using lower_tfl::multiply;
using Types = tflite::TensorType;

/// Converts float32 to codes as TensorFlow Lite does, with halves rounded away from zero.
template <typename T>
Tensor quantized(const Tensor& from, DType dtype, double scale, int64_t zero) {
  Tensor to = Tensor::uninitialized(dtype, from.shape());
  const auto values = from.as<float>();
  const auto codes = to.mutableAs<T>();
  const auto low = static_cast<double>(std::numeric_limits<T>::min());
  const auto high = static_cast<double>(std::numeric_limits<T>::max());
  for (size_t i = 0; i < values.size(); ++i) {
    const double rounded = std::round(values[i] / static_cast<float>(scale)) + static_cast<double>(zero);
    codes[i] = static_cast<T>(std::isnan(rounded) ? low : std::clamp(rounded, low, high));
  }
  return to;
}

/// A QUANTIZE from float, or a DEQUANTIZE to it.
std::optional<Kernel> conversionOf(const tflite::Subgraph& graph, const tflite::Operator& op) {
  if ((op.name != "QUANTIZE" && op.name != "DEQUANTIZE") || op.custom || op.inputs.size() != 1 ||
      op.outputs.size() != 1 || op.inputs[0] < 0 || op.outputs[0] < 0)
    return std::nullopt;
  const auto& tensors = graph.tensors;
  const tflite::Tensor& from = tensors[static_cast<size_t>(op.inputs[0])];
  const tflite::Tensor& to = tensors[static_cast<size_t>(op.outputs[0])];
  const tflite::Tensor& codes = op.name == "QUANTIZE" ? to : from;
  const tflite::Tensor& numbers = op.name == "QUANTIZE" ? from : to;
  if (numbers.type != tflite::TensorType::Float32 || codes.scales.size() != 1 || from.shape != to.shape)
    return std::nullopt;
  const double scale = codes.scales[0];
  const int64_t zero = codes.zeroPoints.empty() ? 0 : codes.zeroPoints[0];
  const tflite::TensorType type = codes.type;
  if (type != Types::Int8 && type != Types::UInt8 && type != Types::Int16) return std::nullopt;
  if (op.name == "QUANTIZE") {
    return [=](std::span<const Tensor> inputs) -> Result<std::vector<Tensor>> {
      const Tensor& input = inputs[0];
      return std::vector<Tensor>{type == Types::Int8 ? quantized<int8_t>(input, DType::Int8, scale, zero)
                                 : type == Types::UInt8
                                     ? quantized<uint8_t>(input, DType::UInt8, scale, zero)
                                     : quantized<int16_t>(input, DType::Int16, scale, zero)};
    };
  }
  return [=](std::span<const Tensor> inputs) -> Result<std::vector<Tensor>> {
    Tensor output = Tensor::uninitialized(DType::Float32, inputs[0].shape());
    const auto values = output.mutableAs<float>();
    for (size_t i = 0; i < values.size(); ++i) {
      const int64_t code = inputs[0].integerAt(static_cast<int64_t>(i));
      values[i] = static_cast<float>(scale * static_cast<double>(code - zero));
    }
    return std::vector<Tensor>{std::move(output)};
  };
}

/// A RESHAPE, SQUEEZE or EXPAND_DIMS of any element type: the result has the bytes of the operand.
std::optional<Kernel> viewOf(const tflite::Subgraph& graph, const tflite::Operator& op) {
  if ((op.name != "RESHAPE" && op.name != "SQUEEZE" && op.name != "EXPAND_DIMS") || op.custom ||
      op.inputs.empty() || op.inputs[0] < 0 || op.outputs.size() != 1 || op.outputs[0] < 0)
    return std::nullopt;
  const auto& tensors = graph.tensors;
  const tflite::Tensor& from = tensors[static_cast<size_t>(op.inputs[0])];
  const tflite::Tensor& to = tensors[static_cast<size_t>(op.outputs[0])];
  const auto dtype = tflite::toDType(to.type);
  if (!dtype || from.type != to.type || tflite::tensorBytes(from) != tflite::tensorBytes(to) ||
      !from.data.empty())
    return std::nullopt;
  return [dtype = *dtype, shape = to.shape](std::span<const Tensor> inputs) -> Result<std::vector<Tensor>> {
    Tensor output = Tensor::uninitialized(dtype, shape);
    std::copy(inputs[0].bytes().begin(), inputs[0].bytes().end(), output.mutableBytes().begin());
    return std::vector<Tensor>{std::move(output)};
  };
}

int64_t zeroPointOf(const tflite::Tensor& tensor) {
  return tensor.zeroPoints.empty() ? 0 : tensor.zeroPoints[0];
}

/// A QUANTIZE between codes of 8 or 16 bits.
std::optional<Kernel> requantizationOf(const tflite::Subgraph& graph, const tflite::Operator& op) {
  if (op.name != "QUANTIZE" || op.custom || op.inputs.size() != 1 || op.outputs.size() != 1 ||
      op.inputs[0] < 0 || op.outputs[0] < 0)
    return std::nullopt;
  const tflite::Tensor& from = graph.tensors[static_cast<size_t>(op.inputs[0])];
  const tflite::Tensor& to = graph.tensors[static_cast<size_t>(op.outputs[0])];
  const auto isCode = [](const tflite::Tensor& tensor) {
    const bool fits =
        tensor.type == Types::Int8 || tensor.type == Types::UInt8 || tensor.type == Types::Int16;
    return fits && tensor.scales.size() == 1 && tensor.scales[0] > 0 && std::isfinite(tensor.scales[0]) &&
           std::abs(zeroPointOf(tensor)) <= 32768;
  };
  if (!isCode(from) || !isCode(to) || from.shape != to.shape) return std::nullopt;
  const auto factor = lower_tfl::quantizeMultiplier(static_cast<double>(from.scales[0]) / to.scales[0]);
  if (factor.shift > 20) return std::nullopt;
  return [factor, zeroIn = zeroPointOf(from), zeroOut = zeroPointOf(to),
          dtype = *tflite::toDType(to.type)](std::span<const Tensor> inputs) -> Result<std::vector<Tensor>> {
    Tensor output = Tensor::uninitialized(dtype, inputs[0].shape());
    for (int64_t i = 0; i < output.numElements(); ++i) {
      const auto difference = static_cast<int32_t>(inputs[0].integerAt(i) - zeroIn);
      const int64_t code = multiply(difference, factor) + zeroOut;
      output.setIntegerAt(i, std::clamp<int64_t>(code, integerMin(dtype), integerMax(dtype)));
    }
    return std::vector<Tensor>{std::move(output)};
  };
}

template <typename T>
std::vector<T> stored(const tflite::Tensor& tensor) {
  std::vector<T> values(static_cast<size_t>(*tflite::tensorBytes(tensor)) / sizeof(T));
  std::memcpy(values.data(), tensor.data.data(), values.size() * sizeof(T));
  return values;
}

/// A layer of filters over features and then over time: the state holds the results of each feature filter
/// for the last `memory` inputs.
struct Svdf {
  int64_t batches = 0, inputs = 0, filters = 0, memory = 0, rank = 0, zeroIn = 0, zeroState = 0, zeroOut = 0;
  DType stateType = DType::Int16;
  std::vector<int8_t> features;
  std::vector<int16_t> times;
  std::vector<int32_t> bias;  // may be empty
  lower_tfl::Multiplier toState, toOutput;

  Result<std::vector<Tensor>> run(std::span<const Tensor> operands) const {
    const auto input = operands[0].as<int8_t>();
    const int64_t elements = operands[1].numElements();
    Tensor state = Tensor::zeros(stateType, operands[1].shape());
    for (int64_t i = 0; i + 1 < elements; ++i) state.setIntegerAt(i, operands[1].integerAt(i + 1));
    const int64_t units = filters / rank;
    Tensor output = Tensor::uninitialized(DType::Int8, {batches, units});
    for (int64_t b = 0; b < batches; ++b) {
      std::vector<int64_t> sums(static_cast<size_t>(units));
      for (int64_t u = 0; u < units && !bias.empty(); ++u)
        sums[static_cast<size_t>(u)] = bias[static_cast<size_t>(u)];
      for (int64_t f = 0; f < filters; ++f) {
        int64_t product = 0;
        for (int64_t i = 0; i < inputs; ++i)
          product += features[static_cast<size_t>(f * inputs + i)] *
                     (input[static_cast<size_t>(b * inputs + i)] - zeroIn);
        const int64_t row = (b * filters + f) * memory;
        const int32_t code = multiply(static_cast<int32_t>(product), toState);
        const int64_t limited = std::clamp<int64_t>(code, integerMin(stateType), integerMax(stateType));
        // The kernel does not clamp the sum when storing it: it wraps.
        const int64_t sum = limited + zeroState;
        state.setIntegerAt(row + memory - 1,
                           stateType == DType::Int8 ? static_cast<int8_t>(sum) : static_cast<int16_t>(sum));
        for (int64_t t = 0; t < memory; ++t)
          sums[static_cast<size_t>(f / rank)] +=
              times[static_cast<size_t>(f * memory + t)] * (state.integerAt(row + t) - zeroState);
      }
      for (int64_t u = 0; u < units; ++u) {
        const int64_t code = multiply(static_cast<int32_t>(sums[static_cast<size_t>(u)]), toOutput) + zeroOut;
        output.setIntegerAt(b * units + u, std::clamp<int64_t>(code, -128, 127));
      }
    }
    return std::vector<Tensor>{std::move(output), std::move(state)};
  }
};

std::optional<Kernel> svdfOf(const tflite::Subgraph& graph, const tflite::Operator& op) {
  if (op.name != "SVDF" || op.custom || op.inputs.size() != 5 || op.outputs.size() != 1) return std::nullopt;
  std::vector<const tflite::Tensor*> tensors;
  for (const int32_t index :
       {op.inputs[0], op.inputs[1], op.inputs[2], op.inputs[3], op.inputs[4], op.outputs[0]})
    tensors.push_back(index < 0 ? nullptr : &graph.tensors[static_cast<size_t>(index)]);
  const auto fits = [&](size_t i, Types type, size_t rank, bool constant) {
    const tflite::Tensor* tensor = tensors[i];
    const auto bytes = tensor ? tflite::tensorBytes(*tensor) : std::nullopt;
    return bytes && *bytes > 0 && tensor->type == type && tensor->shape.size() == rank &&
           tensor->scales.size() == 1 && tensor->scales[0] > 0 &&
           (!constant || tensor->data.size() >= static_cast<size_t>(*bytes)) &&
           constant != tensor->data.empty();
  };
  const bool biased = tensors[3] != nullptr;
  const Types stateType = tensors[4] ? tensors[4]->type : Types::Int16;
  if (stateType != Types::Int8 && stateType != Types::Int16) return std::nullopt;
  if (!fits(0, Types::Int8, 2, false) || !fits(1, Types::Int8, 2, true) || !fits(2, stateType, 2, true) ||
      (biased && !fits(3, Types::Int32, 1, true)) || !fits(4, stateType, 2, false) ||
      !fits(5, Types::Int8, 2, false) || !tensors[4]->isVariable || tensors[0]->isVariable)
    return std::nullopt;
  Svdf layer;
  layer.batches = tensors[0]->shape[0];
  layer.inputs = tensors[0]->shape[1];
  layer.filters = tensors[1]->shape[0];
  layer.memory = tensors[2]->shape[1];
  for (const tflite::Option& option : op.options) {
    if (option.name == "rank") layer.rank = static_cast<int64_t>(option.value);
  }
  if (layer.rank < 1 || layer.filters % layer.rank != 0 || tensors[1]->shape[1] != layer.inputs ||
      tensors[2]->shape[0] != layer.filters ||
      (biased && tensors[3]->shape[0] != layer.filters / layer.rank) ||
      tensors[4]->shape != Shape{layer.batches, layer.memory * layer.filters} ||
      tensors[5]->shape != Shape{layer.batches, layer.filters / layer.rank})
    return std::nullopt;
  layer.zeroIn = zeroPointOf(*tensors[0]);
  layer.stateType = *tflite::toDType(stateType);
  layer.zeroState = zeroPointOf(*tensors[4]);
  layer.zeroOut = zeroPointOf(*tensors[5]);
  const auto factor = [&](size_t a, size_t b, size_t c) {
    return lower_tfl::quantizeMultiplier(
        static_cast<double>(tensors[a]->scales[0] * tensors[b]->scales[0] / tensors[c]->scales[0]));
  };
  layer.toState = factor(0, 1, 4);
  layer.toOutput = factor(4, 2, 5);
  if (layer.toState.shift > 20 || layer.toOutput.shift > 20 || std::abs(layer.zeroIn) > 128 ||
      std::abs(layer.zeroState) > 128 || std::abs(layer.zeroOut) > 128)
    return std::nullopt;
  layer.features = stored<int8_t>(*tensors[1]);
  if (stateType == Types::Int16) {
    layer.times = stored<int16_t>(*tensors[2]);
  } else {
    const std::vector<int8_t> times = stored<int8_t>(*tensors[2]);
    layer.times.assign(times.begin(), times.end());
  }
  if (biased) layer.bias = stored<int32_t>(*tensors[3]);
  return [layer = std::make_shared<const Svdf>(std::move(layer))](std::span<const Tensor> operands) {
    return layer->run(operands);
  };
}

}  // namespace

std::optional<TfliteKernel> kernelOf(const tflite::Subgraph& graph, const tflite::Operator& op) {
  for (const auto& find : {conversionOf, requantizationOf, viewOf, svdfOf, integerKernelOf}) {
    if (auto kernel = find(graph, op)) return kernel;
  }
  return std::nullopt;
}

}  // namespace carina::device
