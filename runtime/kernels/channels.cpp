// SPDX-License-Identifier: Apache-2.0
#include "channels.hpp"

namespace carina::rt::kernels {

Status Channels::read(KernelContext& context, const Tensor& tensor, Channels* channels) {
  Tensor* scaleTensor = nullptr;
  Tensor* zeroTensor = nullptr;
  int64_t axis = 0;
  CARINA_RT_TRY(context.tensor(1, &scaleTensor));
  if (!context.isNull(2)) CARINA_RT_TRY(context.tensor(2, &zeroTensor));
  CARINA_RT_TRY(context.integer(3, &axis));
  if (axis < 0) axis += tensor.rank;
  if (axis < 0 || axis >= tensor.rank)
    return failure(Code::InvalidArgument, "a channel axis is out of range", 3);
  if (scaleTensor->type != ScalarType::Float32 && scaleTensor->type != ScalarType::Float64)
    return typesDiffer();
  if (zeroTensor != nullptr && zeroTensor->type != ScalarType::Int32 && zeroTensor->type != ScalarType::Int64)
    return typesDiffer();
  channels->scales = scaleTensor;
  channels->zeros = zeroTensor;
  bool passed = false;
  for (uint32_t k = 0; k < tensor.rank; ++k) {
    const uint8_t d = tensor.dimOrder[k];
    const size_t size = static_cast<size_t>(tensor.sizes[d]);
    if (d == axis) {
      channels->count = size;
      passed = true;
    } else {
      (passed ? channels->inner : channels->outer) *= size;
    }
  }
  if (scaleTensor->elements() != channels->count ||
      (zeroTensor != nullptr && zeroTensor->elements() != channels->count))
    return shapesDiffer();
  if (tensor.elements() == 0) channels->outer = 0;
  return Status{};
}

}  // namespace carina::rt::kernels
