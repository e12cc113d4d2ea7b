// SPDX-License-Identifier: Apache-2.0
#include "call.hpp"

#include <string.h>

namespace carina::rt::kernels {

Call::Call(KernelContext& context, uint32_t arguments) : context_(context) {
  if (context.count() < arguments || context.count() > arguments + 1)
    status_ = failure(Code::InvalidArgument,
                      "an operator call has another number of arguments than its schema", context.count());
}

const Tensor* Call::tensor(uint32_t i) {
  Tensor* tensor = nullptr;
  if (!ok()) return nullptr;
  status_ = context_.tensor(i, &tensor);
  require(tensor == nullptr || isReal(tensor->type) || isInteger(tensor->type),
          failure(Code::TypeMismatch, "the kernel does not take this element type", i));
  return tensor;
}

const Tensor* Call::optionalTensor(uint32_t i) {
  return !ok() || context_.isNull(i) ? nullptr : tensor(i);
}

Tensor* Call::output(uint32_t i) {
  Tensor* tensor = nullptr;
  if (!ok()) return nullptr;
  status_ = context_.output(i, &tensor);
  require(!ok() || isReal(tensor->type) || isInteger(tensor->type),
          failure(Code::TypeMismatch, "the kernel does not take this element type", i));
  return tensor;
}

uint32_t Call::tensorCount(uint32_t i) {
  uint32_t count = 0;
  if (ok()) status_ = context_.tensorCount(i, &count);
  return count;
}

Tensor* Call::tensorAt(uint32_t i, uint32_t k) {
  Tensor* tensor = nullptr;
  if (!ok()) return nullptr;
  status_ = context_.tensorAt(i, k, &tensor);
  require(!ok() || tensor == nullptr || isReal(tensor->type) || isInteger(tensor->type),
          failure(Code::TypeMismatch, "the kernel does not take this element type", i));
  return tensor;
}

int64_t Call::integer(uint32_t i) {
  int64_t value = 0;
  if (ok()) status_ = context_.integer(i, &value);
  return value;
}

double Call::real(uint32_t i) {
  double value = 0;
  if (ok()) status_ = context_.scalar(i, &value);
  return value;
}

bool Call::boolean(uint32_t i) {
  bool value = false;
  if (ok()) status_ = context_.boolean(i, &value);
  return value;
}

IntegerList Call::integers(uint32_t i) {
  IntegerList list;
  if (!ok() || context_.isNull(i)) return list;
  list.given = true;
  status_ = context_.integers(i, list.items, kMaxRank, &list.count);
  return list;
}

uint32_t Call::reals(uint32_t i, double* into, uint32_t capacity) {
  if (!ok() || context_.isNull(i)) return 0;
  const Value& value = context_.argument(i);
  require(value.kind == ValueKind::DoubleList && value.list.count <= capacity, outOfRange(i));
  if (!ok()) return 0;
  memcpy(into, value.list.items, size_t{value.list.count} * sizeof(double));
  return value.list.count;
}

bool Call::isText(uint32_t i, const char* text) {
  if (!ok()) return false;
  const Value& value = context_.argument(i);
  return value.kind == ValueKind::String &&
         equals(Text(reinterpret_cast<const char*>(value.list.items), value.list.count), text);
}

uint32_t Call::dimension(uint32_t i, uint32_t rank) {
  uint32_t dim = 0;
  require(wrapDimension(integer(i), rank, &dim), outOfRange(i));
  return dim;
}

Operand Call::operand(uint32_t i) {
  Operand operand;
  if (!ok()) return operand;
  const Value& value = context_.argument(i);
  switch (value.kind) {
    case ValueKind::Tensor:
      operand.tensor = tensor(i);
      operand.isReal = ok() && isReal(operand.tensor->type);
      break;
    case ValueKind::Int:
    case ValueKind::Bool:
      operand.integer = value.kind == ValueKind::Int ? value.integer : value.boolean;
      operand.real = static_cast<float>(operand.integer);
      break;
    default:
      operand.real = static_cast<float>(real(i));
      operand.isReal = true;
      break;
  }
  return operand;
}

}  // namespace carina::rt::kernels
