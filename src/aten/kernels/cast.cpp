// SPDX-License-Identifier: Apache-2.0
// Casts: to.*, _to_copy, type_as, convert_element_type.
#include "aten/kernels/cast.hpp"

#include <cmath>
#include <limits>

#include "aten/kernels/dispatch.hpp"
#include "aten/kernels/kernel.hpp"
#include "base/float16.hpp"

namespace carina::aten {
namespace {

/// Conversion of a float to any number type.
template <typename To>
To toNumber(double value) {
  if constexpr (std::is_floating_point_v<To>) {
    return static_cast<To>(value);
  } else {
    // Out of range is undefined behaviour in C: x86 returns the smallest int64, whose low bits narrower types
    // keep.
    if (!(value > -9.3e18 && value < 9.2e18)) return static_cast<To>(std::numeric_limits<int64_t>::min());
    return static_cast<To>(static_cast<int64_t>(value));
  }
}

template <typename From, typename To>
void convertAll(const From* from, To* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_floating_point_v<From> && !std::is_floating_point_v<To>) {
      to[i] = toNumber<To>(static_cast<double>(from[i]));
    } else {
      to[i] = static_cast<To>(from[i]);
    }
  }
}

Tensor widenHalf(const Tensor& tensor) {
  Tensor result = Tensor::uninitialized(DType::Float32, tensor.shape());
  const auto in = tensor.as<uint16_t>();
  const auto out = result.mutableAs<float>();
  const bool half = tensor.dtype() == DType::Float16;
  for (size_t i = 0; i < in.size(); ++i) out[i] = half ? halfToFloat(in[i]) : bfloat16ToFloat(in[i]);
  return result;
}

Tensor narrowToHalf(const Tensor& tensor, DType to) {
  const Tensor floats = castTo(tensor, DType::Float32);
  Tensor result = Tensor::uninitialized(to, tensor.shape());
  const auto in = floats.as<float>();
  const auto out = result.mutableAs<uint16_t>();
  for (size_t i = 0; i < in.size(); ++i)
    out[i] = to == DType::Float16 ? floatToHalf(in[i]) : floatToBfloat16(in[i]);
  return result;
}

bool isHalf(DType dtype) {
  return dtype == DType::Float16 || dtype == DType::BFloat16;
}

Result<Kernel> prepareCast(const ir::Node&) {
  return Kernel([](Call& call) -> Status {
    call.result() = castTo(call.operand(0), call.type().dtype);
    return {};
  });
}

constexpr KernelEntry kCastKernels[] = {
    {"aten.to.dtype", prepareCast},
    {"aten.to.dtype_layout", prepareCast},
    {"aten.to.device", prepareCast},
    {"aten.to.other", prepareCast},
    {"aten.type_as.default", prepareCast},
    {"aten._to_copy.default", prepareCast},
    {"quantized_decomposed.convert_element_type.no_fuse", prepareCast},
};

}  // namespace

Tensor castTo(const Tensor& tensor, DType to) {
  if (tensor.dtype() == to) return tensor;
  if (isHalf(tensor.dtype())) return castTo(widenHalf(tensor), to);
  if (isHalf(to)) return narrowToHalf(tensor, to);
  Tensor result = Tensor::uninitialized(to, tensor.shape());
  const Status done = forNumber(
      tensor.dtype(),
      [&](auto from) -> Status {
        using From = decltype(from);
        const From* in = tensor.as<From>().data();
        const int64_t n = tensor.numElements();
        if (to == DType::Bool) {
          const auto out = result.mutableAs<uint8_t>();
          for (int64_t i = 0; i < n; ++i) out[static_cast<size_t>(i)] = in[i] != From{0};
          return {};
        }
        return forNumber(to, [&](auto target) -> Status {
          using To = decltype(target);
          convertAll(in, result.mutableAs<To>().data(), n);
          return {};
        });
      },
      true);
  return done.ok() ? result : convert(tensor, to);
}

std::span<const KernelEntry> castKernels() {
  return kCastKernels;
}

}  // namespace carina::aten
