// SPDX-License-Identifier: Apache-2.0
// Typed access to kernel arguments, and the lookup of kernels by name.
#include "carina/kernel.hpp"

#include <string.h>

namespace carina::rt {

namespace {
Status wrongKind(uint32_t i) {
  return failure(Code::TypeMismatch, "an operator argument is of another kind than the kernel takes", i);
}
Status missing(uint32_t i) {
  return failure(Code::InvalidArgument, "an operator call has too few arguments", i);
}
Status tensorOf(Value& value, uint32_t i, Tensor** tensor) {
  if (value.kind != ValueKind::Tensor) return wrongKind(i);
  if (value.tensor.data == nullptr && value.tensor.bytes != 0)
    return failure(Code::InvalidState, "a tensor argument has no memory", i);
  *tensor = &value.tensor;
  return Status{};
}
}  // namespace

Status KernelContext::tensor(uint32_t i, Tensor** tensor) {
  if (i >= count_) return missing(i);
  return tensorOf(argument(i), i, tensor);
}

Status KernelContext::output(uint32_t i, Tensor** result) {
  CARINA_RT_TRY(tensor(i, result));
  if ((*result)->constant) return failure(Code::InvalidArgument, "an operator writes to a constant", i);
  return Status{};
}

Status KernelContext::integer(uint32_t i, int64_t* value) {
  if (i >= count_) return missing(i);
  if (argument(i).kind != ValueKind::Int) return wrongKind(i);
  *value = argument(i).integer;
  return Status{};
}

Status KernelContext::real(uint32_t i, double* value) {
  if (i >= count_) return missing(i);
  if (argument(i).kind != ValueKind::Double) return wrongKind(i);
  *value = argument(i).real;
  return Status{};
}

Status KernelContext::boolean(uint32_t i, bool* value) {
  if (i >= count_) return missing(i);
  if (argument(i).kind != ValueKind::Bool) return wrongKind(i);
  *value = argument(i).boolean;
  return Status{};
}

Status KernelContext::scalar(uint32_t i, double* value) {
  if (i >= count_) return missing(i);
  switch (argument(i).kind) {
    case ValueKind::Int:
      *value = static_cast<double>(argument(i).integer);
      return Status{};
    case ValueKind::Bool:
      *value = argument(i).boolean ? 1.0 : 0.0;
      return Status{};
    case ValueKind::Double:
      *value = argument(i).real;
      return Status{};
    default:
      return wrongKind(i);
  }
}

Status KernelContext::integers(uint32_t i, int64_t* into, uint32_t capacity, uint32_t* count) {
  if (i >= count_) return missing(i);
  if (argument(i).kind != ValueKind::IntList) return wrongKind(i);
  const List& list = argument(i).list;
  if (list.count > capacity)
    return failure(Code::Unsupported, "an integer list is longer than the kernel takes", i);
  for (uint32_t k = 0; k < list.count; ++k) {
    int64_t index;
    memcpy(&index, list.items + size_t{k} * 8, sizeof(index));
    const Value& item = values_[static_cast<size_t>(index)];
    if (item.kind != ValueKind::Int) return wrongKind(i);  // a move may have replaced it
    into[k] = item.integer;
  }
  *count = list.count;
  return Status{};
}

Status KernelContext::tensorCount(uint32_t i, uint32_t* count) {
  if (i >= count_) return missing(i);
  const Value& value = argument(i);
  if (value.kind != ValueKind::TensorList && value.kind != ValueKind::OptionalTensorList) return wrongKind(i);
  *count = value.list.count;
  return Status{};
}

Status KernelContext::tensorAt(uint32_t i, uint32_t k, Tensor** tensor) {
  uint32_t count = 0;
  CARINA_RT_TRY(tensorCount(i, &count));
  if (k >= count) return missing(i);
  int32_t index;
  memcpy(&index, argument(i).list.items + size_t{k} * 4, sizeof(index));
  *tensor = nullptr;
  if (index < 0) return Status{};
  return tensorOf(values_[static_cast<size_t>(index)], i, tensor);
}

KernelFunction findKernel(KernelTable table, Text name, Text overload) {
  if (name.size == 0) return nullptr;
  for (const Kernel& kernel : table) {
    const char* wanted = kernel.name;
    // The name comes from a file and may hold zeros.
    if (strlen(wanted) < name.size || memcmp(wanted, name.data, name.size) != 0) continue;
    wanted += name.size;
    if (overload.size != 0) {
      if (*wanted != '.') continue;
      ++wanted;
    }
    if (equals(overload, wanted)) return kernel.run;
  }
  return nullptr;
}

}  // namespace carina::rt
