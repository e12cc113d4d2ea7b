// SPDX-License-Identifier: Apache-2.0
// float32 to affine integers: multiply by a float32 reciprocal, round half to even, add the zero point to the
// integer. The reciprocal is PyTorch's, float(1 / scale). ExecuTorch's kernels use 1 / float(scale), which is
// the same for scales that float32 can represent; for others the compiler writes a scale for which both
// agree, if there is one.
#include "carina/kernels.hpp"
#include "channels.hpp"
#include "helium.hpp"
#include "rounding.hpp"

namespace carina::rt::kernels {
namespace {

struct Range {
  int64_t min, max;
};

/// Sums in 64 bits, because rounded value plus zero point may exceed 32.
void quantizeRun(const float* input, int32_t* output, size_t count, float inverse, int64_t zeroPoint,
                 Range range) {
  // Far outside the integer type: saturate before the conversion. A NaN passes neither comparison.
  constexpr int64_t kFar = int64_t{1} << 62;
  for (size_t i = 0; i < count; ++i) {
    const float scaled = __builtin_rintf(input[i] * inverse);
    int64_t value = 0;
    if (scaled >= static_cast<float>(kFar))
      value = kFar;
    else if (scaled <= -static_cast<float>(kFar))
      value = -kFar;
    else if (scaled == scaled)
      value = static_cast<int64_t>(scaled);
    value += zeroPoint;
    if (value < range.min) value = range.min;
    if (value > range.max) value = range.max;
    output[i] = static_cast<int32_t>(value);
  }
}

/// Integers of 8 and 16 bits.
template <typename T>
void quantizeRun(const float* input, T* output, size_t count, float inverse, int64_t zeroPoint, Range range) {
  const int32_t zero = static_cast<int32_t>(zeroPoint), low = static_cast<int32_t>(range.min),
                high = static_cast<int32_t>(range.max);
  const size_t done = quantizeVectors(input, output, count, inverse, zero, low, high);
  input += done, output += done, count -= done;
  if (low == Saturated<T>::kLow && high == Saturated<T>::kHigh) {
    for (; count >= 4; input += 4, output += 4, count -= 4) {
      // All products before the first store, which may alias the input as far as the compiler knows.
      const int32_t a = roundToInteger(input[0] * inverse), b = roundToInteger(input[1] * inverse),
                    c = roundToInteger(input[2] * inverse), d = roundToInteger(input[3] * inverse);
      output[0] = saturatedSum<T>(a, zero);
      output[1] = saturatedSum<T>(b, zero);
      output[2] = saturatedSum<T>(c, zero);
      output[3] = saturatedSum<T>(d, zero);
    }
  }
  for (; count > 0; ++input, ++output, --count) {
    // Clamping before the zero point is added keeps the sum in range, whatever the rounded value.
    int32_t value = roundToInteger(*input * inverse);
    if (value < low - zero) value = low - zero;
    if (value > high - zero) value = high - zero;
    *output = static_cast<T>(value + zero);
  }
}

/// Checks that range and zero point are within the integer type, which also keeps the sum above in range.
Status checkRange(ScalarType type, Range range, int64_t zeroPoint) {
  int64_t low = 0, high = 0;
  switch (type) {
    case ScalarType::Int8:
      low = -128;
      high = 127;
      break;
    case ScalarType::UInt8:
      high = 255;
      break;
    case ScalarType::Int16:
      low = -32768;
      high = 32767;
      break;
    case ScalarType::UInt16:
      high = 65535;
      break;
    case ScalarType::Int32:
      low = INT32_MIN;
      high = INT32_MAX;
      break;
    default:
      return typesDiffer();
  }
  if (range.min < low || range.max > high || range.min > range.max || zeroPoint < low || zeroPoint > high) {
    return failure(Code::InvalidArgument, "quantized range or zero point do not fit the integer type");
  }
  return Status{};
}

Status quantizeBlock(const Tensor& input, const Tensor& output, size_t from, size_t count, double scale,
                     int64_t zeroPoint, Range range) {
  const float inverse = static_cast<float>(1.0 / scale);
  const float* source = input.as<const float>() + from;
  switch (output.type) {
    case ScalarType::Int8:
      quantizeRun(source, output.as<int8_t>() + from, count, inverse, zeroPoint, range);
      break;
    case ScalarType::UInt8:
      quantizeRun(source, output.as<uint8_t>() + from, count, inverse, zeroPoint, range);
      break;
    case ScalarType::Int16:
      quantizeRun(source, output.as<int16_t>() + from, count, inverse, zeroPoint, range);
      break;
    case ScalarType::UInt16:
      quantizeRun(source, output.as<uint16_t>() + from, count, inverse, zeroPoint, range);
      break;
    case ScalarType::Int32:
      quantizeRun(source, output.as<int32_t>() + from, count, inverse, zeroPoint, range);
      break;
    default:
      return typesDiffer();
  }
  return Status{};
}

}  // namespace

Status quantizePerTensor(KernelContext& context) {
  Tensor* input = nullptr;
  Tensor* output = nullptr;
  double scale = 0;
  int64_t zeroPoint = 0;
  Range range{};
  if (context.count() < 7) return failure(Code::InvalidArgument, "an operator call has too few arguments");
  CARINA_RT_TRY(context.tensor(0, &input));
  CARINA_RT_TRY(context.real(1, &scale));
  CARINA_RT_TRY(context.integer(2, &zeroPoint));
  CARINA_RT_TRY(context.integer(3, &range.min));
  CARINA_RT_TRY(context.integer(4, &range.max));
  CARINA_RT_TRY(context.output(context.count() - 1, &output));
  if (input->type != ScalarType::Float32) return typesDiffer();
  if (!sameLayout(*input, *output)) return shapesDiffer();
  CARINA_RT_TRY(checkRange(output->type, range, zeroPoint));
  return quantizeBlock(*input, *output, 0, input->elements(), scale, zeroPoint, range);
}

Status quantizePerChannel(KernelContext& context) {
  Tensor* input = nullptr;
  Tensor* output = nullptr;
  Range range{};
  if (context.count() < 8) return failure(Code::InvalidArgument, "an operator call has too few arguments");
  CARINA_RT_TRY(context.tensor(0, &input));
  CARINA_RT_TRY(context.integer(4, &range.min));
  CARINA_RT_TRY(context.integer(5, &range.max));
  CARINA_RT_TRY(context.output(context.count() - 1, &output));
  if (input->type != ScalarType::Float32) return typesDiffer();
  if (!sameLayout(*input, *output)) return shapesDiffer();
  Channels channels;
  CARINA_RT_TRY(Channels::read(context, *input, &channels));
  size_t from = 0;
  for (size_t o = 0; o < channels.outer; ++o) {
    for (size_t c = 0; c < channels.count; ++c, from += channels.inner) {
      CARINA_RT_TRY(checkRange(output->type, range, channels.zeroPoint(c)));
      CARINA_RT_TRY(quantizeBlock(*input, *output, from, channels.inner, channels.scale(c),
                                  channels.zeroPoint(c), range));
    }
  }
  return Status{};
}

}  // namespace carina::rt::kernels
