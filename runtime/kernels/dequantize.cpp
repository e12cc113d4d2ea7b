// SPDX-License-Identifier: Apache-2.0
// Affine integers to float32: (q - zero point) * scale, one rounding.
#include "carina/kernels.hpp"
#include "channels.hpp"
#include "helium.hpp"

namespace carina::rt::kernels {
namespace {

template <typename T>
void dequantizeRun(const T* input, float* output, size_t count, double scale, int64_t zeroPoint) {
  if constexpr (sizeof(T) <= 2) {
    // The difference fits a float exactly, so the float product has the single rounding of the exact one.
    const float factor = static_cast<float>(scale);
    const int32_t zero = static_cast<int32_t>(zeroPoint);
    const auto real = [zero, factor](T code) {
      return static_cast<float>(static_cast<int32_t>(code) - zero) * factor;
    };
    const size_t done = dequantizeVectors(input, output, count, factor, zero);
    input += done, output += done, count -= done;
    for (; count >= 4; input += 4, output += 4, count -= 4) {
      const float a = real(input[0]), b = real(input[1]), c = real(input[2]), d = real(input[3]);
      output[0] = a;
      output[1] = b;
      output[2] = c;
      output[3] = d;
    }
    for (; count > 0; ++input, ++output, --count) *output = real(*input);
  } else {
    for (size_t i = 0; i < count; ++i) {
      output[i] = static_cast<float>(static_cast<double>(static_cast<int64_t>(input[i]) - zeroPoint) * scale);
    }
  }
}

Status dequantizeBlock(const Tensor& input, const Tensor& output, size_t from, size_t count, double scale,
                       int64_t zeroPoint) {
  if (zeroPoint < -16777216 / 2 || zeroPoint > 16777216 / 2)
    return failure(Code::InvalidArgument, "a zero point is out of range");
  float* target = output.as<float>() + from;
  switch (input.type) {
    case ScalarType::Int8:
      dequantizeRun(input.as<const int8_t>() + from, target, count, scale, zeroPoint);
      break;
    case ScalarType::UInt8:
      dequantizeRun(input.as<const uint8_t>() + from, target, count, scale, zeroPoint);
      break;
    case ScalarType::Int16:
      dequantizeRun(input.as<const int16_t>() + from, target, count, scale, zeroPoint);
      break;
    case ScalarType::UInt16:
      dequantizeRun(input.as<const uint16_t>() + from, target, count, scale, zeroPoint);
      break;
    case ScalarType::Int32:
      dequantizeRun(input.as<const int32_t>() + from, target, count, scale, zeroPoint);
      break;
    default:
      return typesDiffer();
  }
  return Status{};
}

Status ends(KernelContext& context, uint32_t least, Tensor** input, Tensor** output) {
  if (context.count() < least)
    return failure(Code::InvalidArgument, "an operator call has too few arguments");
  CARINA_RT_TRY(context.tensor(0, input));
  CARINA_RT_TRY(context.output(context.count() - 1, output));
  if ((*output)->type != ScalarType::Float32) return typesDiffer();
  return sameLayout(**input, **output) ? Status{} : shapesDiffer();
}

}  // namespace

Status dequantizePerTensor(KernelContext& context) {
  Tensor* input = nullptr;
  Tensor* output = nullptr;
  double scale = 0;
  int64_t zeroPoint = 0;
  CARINA_RT_TRY(ends(context, 7, &input, &output));
  CARINA_RT_TRY(context.real(1, &scale));
  CARINA_RT_TRY(context.integer(2, &zeroPoint));
  return dequantizeBlock(*input, *output, 0, input->elements(), scale, zeroPoint);
}

Status dequantizePerChannel(KernelContext& context) {
  Tensor* input = nullptr;
  Tensor* output = nullptr;
  Channels channels;
  CARINA_RT_TRY(ends(context, 8, &input, &output));
  CARINA_RT_TRY(Channels::read(context, *input, &channels));
  size_t from = 0;
  for (size_t o = 0; o < channels.outer; ++o) {
    for (size_t c = 0; c < channels.count; ++c, from += channels.inner) {
      CARINA_RT_TRY(
          dequantizeBlock(*input, *output, from, channels.inner, channels.scale(c), channels.zeroPoint(c)));
    }
  }
  return Status{};
}

}  // namespace carina::rt::kernels
