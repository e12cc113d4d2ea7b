// SPDX-License-Identifier: Apache-2.0
// float32 to affine integers: a float32 reciprocal, one multiplication, rounding half to even, zero point
// added to the integer. The reciprocal is PyTorch's, float(1 / scale). ExecuTorch's kernels take 1 /
// float(scale), which is the same for scales that float32 holds; for others the compiler writes one that
// gives the same where there is one.
#include "carina/kernels.hpp"
#include "channels.hpp"
#include "helium.hpp"

namespace carina::rt::kernels {
namespace {

struct Range {
  int64_t min, max;
};

/// Sums in 32 bits where rounded value and zero point leave room for it.
template <typename T>
struct Wide {
  using Type = int32_t;
};
template <>
struct Wide<int32_t> {
  using Type = int64_t;
};

template <typename T>
void quantizeRun(const float* input, T* output, size_t count, float inverse, int64_t zeroPoint, Range range) {
  using Sum = typename Wide<T>::Type;
  // Far outside the integer type: saturate before the conversion. A NaN passes neither comparison.
  constexpr Sum kFar = Sum{1} << (sizeof(Sum) * 8 - 2);
  const Sum zero = static_cast<Sum>(zeroPoint), low = static_cast<Sum>(range.min),
            high = static_cast<Sum>(range.max);
  size_t i = 0;
  if constexpr (sizeof(T) <= 2) i = quantizeVectors(input, output, count, inverse, zero, low, high);
  for (; i < count; ++i) {
    const float scaled = __builtin_rintf(input[i] * inverse);
    Sum rounded = 0;
    if (scaled >= static_cast<float>(kFar))
      rounded = kFar;
    else if (scaled <= -static_cast<float>(kFar))
      rounded = -kFar;
    else if (scaled == scaled)
      rounded = static_cast<Sum>(scaled);
    Sum value = rounded + zero;
    if (value < low) value = low;
    if (value > high) value = high;
    output[i] = static_cast<T>(value);
  }
}

/// Range and zero point within the integer type, which also leaves room for the sum above.
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
