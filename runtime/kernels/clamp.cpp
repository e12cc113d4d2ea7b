// SPDX-License-Identifier: Apache-2.0
// hardtanh, clamp, relu: values between two bounds. A NaN stays a NaN.
#include "carina/kernels.hpp"
#include "elements.hpp"

namespace carina::rt::kernels {
namespace {

template <typename T>
void clampRun(const T* input, T* output, size_t count, T low, T high) {
  for (size_t i = 0; i < count; ++i) {
    T value = input[i];
    if (value < low) value = low;
    if (value > high) value = high;
    output[i] = value;
  }
}

/// A bound as T: beyond the type's range it does not bind.
template <typename T>
T bound(double value, T least, T most) {
  return value <= static_cast<double>(least)  ? least
         : value >= static_cast<double>(most) ? most
                                              : static_cast<T>(value);
}

Status clampTensor(const Tensor& input, const Tensor& output, double low, double high) {
  if (input.type != output.type) return typesDiffer();
  if (!sameLayout(input, output)) return shapesDiffer();
  const size_t count = input.elements();
  switch (input.type) {
    case ScalarType::Float32:
      clampRun(input.as<const float>(), output.as<float>(), count, static_cast<float>(low),
               static_cast<float>(high));
      return Status{};
    case ScalarType::Int8:
      clampRun(input.as<const int8_t>(), output.as<int8_t>(), count, bound<int8_t>(low, -128, 127),
               bound<int8_t>(high, -128, 127));
      return Status{};
    case ScalarType::UInt8:
      clampRun(input.as<const uint8_t>(), output.as<uint8_t>(), count, bound<uint8_t>(low, 0, 255),
               bound<uint8_t>(high, 0, 255));
      return Status{};
    case ScalarType::Int16:
      clampRun(input.as<const int16_t>(), output.as<int16_t>(), count,
               bound<int16_t>(low, INT16_MIN, INT16_MAX), bound<int16_t>(high, INT16_MIN, INT16_MAX));
      return Status{};
    case ScalarType::Int32:
      clampRun(input.as<const int32_t>(), output.as<int32_t>(), count,
               bound<int32_t>(low, INT32_MIN, INT32_MAX), bound<int32_t>(high, INT32_MIN, INT32_MAX));
      return Status{};
    default:
      return typesDiffer();
  }
}

}  // namespace

Status clamp(KernelContext& context) {
  Tensor* input = nullptr;
  Tensor* output = nullptr;
  double low = -__builtin_inf(), high = __builtin_inf();
  if (context.count() < 4) return failure(Code::InvalidArgument, "an operator call has too few arguments");
  CARINA_RT_TRY(context.tensor(0, &input));
  if (!context.isNull(1)) CARINA_RT_TRY(context.scalar(1, &low));
  if (!context.isNull(2)) CARINA_RT_TRY(context.scalar(2, &high));
  CARINA_RT_TRY(context.output(context.count() - 1, &output));
  return clampTensor(*input, *output, low, high);
}

Status relu(KernelContext& context) {
  Tensor* input = nullptr;
  Tensor* output = nullptr;
  if (context.count() < 2) return failure(Code::InvalidArgument, "an operator call has too few arguments");
  CARINA_RT_TRY(context.tensor(0, &input));
  CARINA_RT_TRY(context.output(context.count() - 1, &output));
  return clampTensor(*input, *output, 0.0, __builtin_inf());
}

}  // namespace carina::rt::kernels
