// SPDX-License-Identifier: Apache-2.0
// Sums of products, shared by convolutions and matrix products: operands without their zero points, exact
// accumulation, range checks at the end.
#pragma once

#include <utility>
#include <vector>

#include "base/float16.hpp"
#include "tosa/kernels/kernel.hpp"

namespace carina::tosa::kernels {

/// Elements minus the zero point. 8-bit and 16-bit data fit int16 (16-bit data has no zero point).
inline std::vector<int16_t> centered(const Tensor& tensor, const Tensor& zeroPoint) {
  std::vector<int16_t> values(static_cast<size_t>(tensor.numElements()));
  const auto zero = static_cast<int16_t>(zeroPoint.integerAt(0));
  withIntegerType(tensor.dtype(), [&](auto example) {
    using T = decltype(example);
    if constexpr (sizeof(T) <= 2) {
      const auto data = tensor.as<T>();
      for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int16_t>(data[i] - zero);
    }
  });
  return values;
}

/// Sum of products of two runs.
template <typename Acc, typename In>
inline Acc dot(const In* a, const In* b, int64_t count) {
  Acc sum = 0;
  if constexpr (std::is_same_v<In, int16_t>) {
    for (int64_t i = 0; i < count; ++i) sum += static_cast<int32_t>(a[i]) * static_cast<int32_t>(b[i]);
  } else {
    for (int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
  }
  return sum;
}

/// Whether `terms` products of operands of these types always fit int32 (255 * 255 each for 8 bits and zero
/// points).
inline bool fitsInt32(int64_t terms, DType a, DType b) {
  const auto magnitude = [](DType dtype) { return dtype == DType::Int16 ? int64_t{32768} : int64_t{255}; };
  return terms <= INT32_MAX / (magnitude(a) * magnitude(b));
}

/// Accumulators plus bias (one per channel or one for all; may be empty) as the integer result,
/// range-checked.
template <typename Acc>
Results finishIntegers(const ir::Node& node, const std::vector<Acc>& sums, const Tensor& bias) {
  Tensor out = resultTensor(node);
  const int64_t channels = out.shape().empty() ? 1 : out.shape().back();
  std::vector<int64_t> added(static_cast<size_t>(channels), 0);
  for (int64_t c = 0; c < channels && bias.numElements() > 0; ++c) {
    added[static_cast<size_t>(c)] = bias.integerAt(bias.numElements() == 1 ? 0 : c);
  }
  const int64_t low = integerMin(out.dtype()), high = integerMax(out.dtype());
  bool bad = false;
  const auto store = [&](auto* target) {
    for (size_t i = 0; i < sums.size();) {
      for (size_t c = 0; c < added.size(); ++c, ++i) {
        const int64_t value = static_cast<int64_t>(sums[i]) + added[c];
        bad |= value < low || value > high;
        target[i] = static_cast<std::remove_pointer_t<decltype(target)>>(value);
      }
    }
  };
  if (out.dtype() == DType::Int32) {
    store(out.mutableAs<int32_t>().data());
  } else {
    store(out.mutableAs<int64_t>().data());
  }
  if (bad) return unpredictable("an accumulator of {} overflows {}", node.opName(), dtypeName(out.dtype()));
  return one(std::move(out));
}

/// float32 accumulators rounded to the result type, with the bias added in that type.
inline Results finishFloats(const ir::Node& node, Tensor out, const Tensor& bias) {
  const DType dtype = node.result()->dtype();
  if (bias.numElements() == 0) return one(roundedTo(dtype, out));
  const Tensor floats = asFloat32(bias);
  const auto given = floats.as<float>();
  const size_t channels = static_cast<size_t>(out.shape().back());
  std::vector<float> added(given.begin(), given.end());
  added.resize(channels, given[0]);
  if (dtype == DType::BFloat16) {
    // Rounds twice without a separate pass over memory for each step.
    Tensor rounded = Tensor::uninitialized(dtype, out.shape());
    const auto sums = std::as_const(out).as<float>();
    const auto to = rounded.mutableAs<uint16_t>();
    for (size_t i = 0; i < to.size(); i += channels) {
      for (size_t c = 0; c < channels; ++c)
        to[i + c] = floatToBfloat16(bfloat16ToFloat(floatToBfloat16(sums[i + c])) + added[c]);
    }
    return one(std::move(rounded));
  }
  out = asFloat32(roundedTo(dtype, out));
  const auto values = out.mutableAs<float>();
  for (size_t i = 0; i < values.size(); i += channels) {
    for (size_t c = 0; c < channels; ++c) values[i + c] += added[c];
  }
  return one(roundedTo(dtype, out));
}

}  // namespace carina::tosa::kernels
