// SPDX-License-Identifier: Apache-2.0
// Per-channel parameters of quantize and dequantize: arguments 1 (scales), 2 (zero points or null) and 3
// (axis).
#pragma once

#include "elements.hpp"

namespace carina::rt::kernels {

/// The tensor in memory order is [outer][count][inner], one scale and zero point per middle index.
struct Channels {
  const Tensor* scales = nullptr;
  const Tensor* zeros = nullptr;
  size_t outer = 1, count = 1, inner = 1;

  double scale(size_t c) const {
    return scales->type == ScalarType::Float32 ? static_cast<double>(scales->as<const float>()[c])
                                               : scales->as<const double>()[c];
  }
  int64_t zeroPoint(size_t c) const {
    if (zeros == nullptr) return 0;
    return zeros->type == ScalarType::Int32 ? zeros->as<const int32_t>()[c] : zeros->as<const int64_t>()[c];
  }

  static Status read(KernelContext& context, const Tensor& tensor, Channels* channels);
};

}  // namespace carina::rt::kernels
