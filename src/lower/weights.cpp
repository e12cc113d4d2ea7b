// SPDX-License-Identifier: Apache-2.0
// Reads weight and bias constants from their dequantize nodes.
#include "lower/weights.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace carina::lower {
namespace {

template <typename T>
void transposeInto(std::span<const T> from, std::span<T> to, const Shape& shape,
                   const std::vector<int>& permutation) {
  const size_t rank = shape.size();
  const Shape strides = rowMajorStrides(shape);
  std::vector<int64_t> extent(rank), step(rank);
  for (size_t i = 0; i < rank; ++i) {
    extent[i] = shape[static_cast<size_t>(permutation[i])];
    step[i] = strides[static_cast<size_t>(permutation[i])];
  }
  if (to.empty()) return;
  std::vector<int64_t> index(rank, 0);
  const int64_t inner = rank ? extent[rank - 1] : 1, innerStep = rank ? step[rank - 1] : 1;
  int64_t offset = 0;
  for (size_t done = 0; done < to.size(); done += static_cast<size_t>(inner)) {
    for (int64_t i = 0; i < inner; ++i)
      to[done + static_cast<size_t>(i)] = from[static_cast<size_t>(offset + i * innerStep)];
    for (size_t i = rank < 2 ? 0 : rank - 1; i-- > 0;) {
      offset += step[i];
      if (++index[i] < extent[i]) break;
      offset -= step[i] * extent[i];
      index[i] = 0;
    }
  }
}

}  // namespace

Tensor transposed(const Tensor& tensor, const std::vector<int>& permutation) {
  Shape shape;
  for (int d : permutation) shape.push_back(tensor.dim(d));
  Tensor result = Tensor::uninitialized(tensor.dtype(), shape);
  switch (dtypeSize(tensor.dtype())) {
    case 1:
      transposeInto(tensor.as<uint8_t>(), result.mutableAs<uint8_t>(), tensor.shape(), permutation);
      break;
    case 2:
      transposeInto(tensor.as<uint16_t>(), result.mutableAs<uint16_t>(), tensor.shape(), permutation);
      break;
    case 4:
      transposeInto(tensor.as<uint32_t>(), result.mutableAs<uint32_t>(), tensor.shape(), permutation);
      break;
    default:
      transposeInto(tensor.as<int64_t>(), result.mutableAs<int64_t>(), tensor.shape(), permutation);
      break;
  }
  return result;
}

Result<Weight> weightOf(const Lowering& lowering, const ir::Value* value, int channelAxis) {
  const QuantizedConstant* constant = lowering.quantizedConstant(value);
  if (!constant) {
    return fail(Code::UnusableQuantization, "weight {} is not a quantized constant", value->name)
        .withRemedy(
            "quantize the network with this operator included; weights computed at run time need matmul");
  }
  if (constant->axis >= 0 && constant->axis != channelAxis) {
    return fail(Code::UnusableQuantization,
                "weight scales run along dimension {} instead of the output channels ({})", constant->axis,
                channelAxis)
        .withRemedy("quantize weights per output channel, or per tensor");
  }
  const auto& zeros = constant->zeroPoints;
  if (std::any_of(zeros.begin(), zeros.end(), [&](int64_t z) { return z != zeros[0]; })) {
    return fail(Code::UnusableQuantization, "weight {} has zero points that differ between channels",
                value->name)
        .withRemedy("quantize weights symmetrically");
  }
  Weight weight{constant->codes, constant->scales, zeros[0]};
  if (weight.codes.dtype() == DType::UInt8) {  // the same values, shifted to int8
    Tensor shifted = Tensor::uninitialized(DType::Int8, weight.codes.shape());
    const auto from = weight.codes.as<uint8_t>();
    const auto to = shifted.mutableAs<int8_t>();
    for (size_t i = 0; i < from.size(); ++i) to[i] = static_cast<int8_t>(from[i] - 128);
    weight.codes = std::move(shifted);
    weight.zeroPoint -= 128;
  }
  if (weight.codes.dtype() != DType::Int8) {
    return fail(Code::NoIntegerForm, "weight {} has {} codes", value->name, dtypeName(weight.codes.dtype()))
        .withRemedy("quantize weights to int8");
  }
  return weight;
}

Result<Tensor> biasOf(const Lowering& lowering, const ir::Value* value, int64_t channels, double inputScale,
                      const std::vector<double>& weightScales, DType inputType) {
  const bool wide = inputType == DType::Int16;
  Tensor bias = Tensor::zeros(wide ? DType::Int48 : DType::Int32, {channels});
  if (!value) return bias;
  const QuantizedConstant* constant = lowering.quantizedConstant(value);
  if (!constant && !(value->isConstant() && value->dtype() == DType::Float32)) {
    return fail(Code::UnusableQuantization, "bias {} is not a constant", value->name)
        .withRemedy("add it with an add operator");
  }
  const DType type = bias.dtype();
  const auto low = static_cast<double>(integerMin(type)), high = static_cast<double>(integerMax(type));
  // Larger biases overflow the sums, and the results would be wrong.
  const double most = wide ? 0x1p46 : 0x1.8p30;
  for (int64_t c = 0; c < channels; ++c) {
    const double scale = inputScale * weightScales[weightScales.size() == 1 ? 0 : static_cast<size_t>(c)];
    const size_t entry = constant && constant->scales.size() > 1 ? static_cast<size_t>(c) : 0;
    const double real =
        constant ? static_cast<double>(constant->codes.integerAt(c) - constant->zeroPoints[entry]) *
                       constant->scales[entry]
                 : value->constant().realAt(c);
    if (!(std::abs(real / scale) <= most)) {
      return fail(Code::HardwareLimit,
                  "bias {:.3g} of channel {} is {:.3g} times the product of input and weight scale, beyond "
                  "sums of {} bits",
                  real, c, std::abs(real / scale), wide ? 48 : 32)
          .withRemedy("quantize the weight with larger scales, or add the bias with a separate operator");
    }
    if (!constant) {
      bias.setIntegerAt(c, static_cast<int64_t>(
                               std::clamp(std::nearbyint(value->constant().realAt(c) / scale), low, high)));
      continue;
    }
    const size_t i = constant->scales.size() == 1 ? 0 : static_cast<size_t>(c);
    const int64_t code = constant->codes.integerAt(c) - constant->zeroPoints[i];
    const double ratio = constant->scales[i] / scale;
    // The stored scale is the float32 product of the same two scales.
    const bool same = std::abs(ratio - 1) < 1e-6;
    bias.setIntegerAt(c, same ? code
                              : static_cast<int64_t>(std::clamp(
                                    std::nearbyint(static_cast<double>(code) * ratio), low, high)));
  }
  return bias;
}

std::optional<Interval> sumsOf(const Tensor& weight, int64_t zeroPoint, const Tensor& bias) {
  if (bias.dtype() != DType::Int48) return std::nullopt;
  const int64_t channels = bias.numElements(), inner = weight.numElements() / std::max<int64_t>(channels, 1);
  const auto codes = weight.as<int8_t>();
  int64_t most = 0;
  for (int64_t c = 0; c < channels; ++c) {
    int64_t sum = 0;
    for (int64_t i = c * inner; i < (c + 1) * inner; ++i)
      sum += std::abs(codes[static_cast<size_t>(i)] - zeroPoint);
    most = std::max(most, (sum << 15) + std::abs(bias.integerAt(c)));
  }
  return Interval{-most, most};
}

}  // namespace carina::lower
