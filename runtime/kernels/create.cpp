// SPDX-License-Identifier: Apache-2.0
// Tensors created from numbers: full, zeros, ones, fill, arange, scalar_tensor.
#include "carina/kernels.hpp"
#include "region.hpp"
#include "stream.hpp"

namespace carina::rt::kernels {
namespace {

/// Whether a size list matches the output's shape.
bool describes(const IntegerList& sizes, const Tensor& output) {
  if (sizes.count != output.rank) return false;
  for (uint32_t d = 0; d < sizes.count; ++d) {
    if (sizes.items[d] != output.sizes[d]) return false;
  }
  return true;
}

Status filled(Call& call, const Operand& value, uint32_t out) {
  Tensor* output = call.output(out);
  call.require(value.tensor == nullptr, typesDiffer());
  if (!call.ok()) return call.status();
  fillWith(*output, value);
  return Status{};
}

/// (size[], [value,] [memory_format,] out)
Status sized(Call& call, const Operand& value, uint32_t out) {
  const IntegerList sizes = call.integers(0);
  Tensor* output = call.output(out);
  call.require(!call.ok() || describes(sizes, *output), shapesDiffer());
  return filled(call, value, out);
}

Operand number(int64_t value) {
  return Operand{nullptr, static_cast<float>(value), value, false};
}

/// start, start + step, ... below `end`.
Status counted(Call& call, const Operand& start, const Operand& end, const Operand& step, uint32_t out) {
  Tensor* output = call.output(out);
  call.require(start.tensor == nullptr && end.tensor == nullptr && step.tensor == nullptr, typesDiffer());
  if (!call.ok()) return call.status();
  if (output->rank != 1) return shapesDiffer();
  const size_t count = output->elements();
  if (isReal(output->type) && (start.isReal || step.isReal)) {
    for (size_t i = 0; i < count; ++i)
      output->as<float>()[i] = static_cast<float>(static_cast<double>(start.real) +
                                                  static_cast<double>(i) * static_cast<double>(step.real));
    return Status{};
  }
  const int64_t first = start.isReal ? truncated(start.real) : start.integer;
  const int64_t by = step.isReal ? truncated(step.real) : step.integer;
  for (size_t i = 0; i < count; ++i) {
    const int64_t value = static_cast<int64_t>(static_cast<uint64_t>(first) +
                                               static_cast<uint64_t>(i) * static_cast<uint64_t>(by));
    storeIntegers(*output, i, 1, 1, &value);
  }
  return Status{};
}

}  // namespace

Status full(KernelContext& context) {
  Call call(context, 3);
  const Operand value = call.operand(1);
  return sized(call, value, 2);
}
Status zeros(KernelContext& context) {
  Call call(context, 2);
  return sized(call, number(0), 1);
}
Status ones(KernelContext& context) {
  Call call(context, 2);
  return sized(call, number(1), 1);
}
Status fullLike(KernelContext& context) {
  Call call(context, 4);
  const Tensor* self = call.tensor(0);
  const Operand value = call.operand(1);
  Tensor* output = call.output(3);
  call.require(!call.ok() || sameShape(*self, *output), shapesDiffer());
  return filled(call, value, 3);
}
Status fill(KernelContext& context) {
  Call call(context, 3);
  const Tensor* self = call.tensor(0);
  Operand value = call.operand(1);
  Tensor* output = call.output(2);
  if (!call.ok()) return call.status();
  if (!sameShape(*self, *output)) return shapesDiffer();
  if (value.tensor != nullptr) {
    if (value.tensor->elements() != 1) return shapesDiffer();
    if (value.isReal)
      loadReals(*value.tensor, 0, 1, 1, &value.real);
    else
      loadIntegers(*value.tensor, 0, 1, 1, &value.integer);
    value.tensor = nullptr;
  }
  fillWith(*output, value);
  return Status{};
}
Status scalarTensor(KernelContext& context) {
  Call call(context, 2);
  const Operand value = call.operand(0);
  Tensor* output = call.output(1);
  call.require(!call.ok() || output->elements() == 1, shapesDiffer());
  return filled(call, value, 1);
}
Status arange(KernelContext& context) {
  Call call(context, 2);
  const Operand end = call.operand(0);
  return counted(call, number(0), end, number(1), 1);
}
Status arangeStart(KernelContext& context) {
  Call call(context, 4);
  const Operand start = call.operand(0), end = call.operand(1), step = call.operand(2);
  return counted(call, start, end, step, 3);
}

}  // namespace carina::rt::kernels
