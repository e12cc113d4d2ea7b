// SPDX-License-Identifier: Apache-2.0
// Permutations and views.
#include <string.h>

#include "carina/kernels.hpp"
#include "region.hpp"

namespace carina::rt::kernels {

Status permuteCopy(KernelContext& context) {
  Call call(context, 3);
  const Tensor* input = call.tensor(0);
  const IntegerList dims = call.integers(1);
  Tensor* output = call.output(2);
  if (!call.ok()) return call.status();
  if (dims.count != input->rank || dims.count != output->rank) return shapesDiffer();
  uint32_t order[kMaxRank], seen = 0;
  for (uint32_t d = 0; d < dims.count; ++d) {
    if (!wrapDimension(dims.items[d], dims.count, &order[d])) return outOfRange(1);
    seen |= 1u << order[d];
  }
  if (seen != (1u << dims.count) - 1)
    return failure(Code::InvalidArgument, "a permutation names a dimension twice", 1);
  return permute(*input, *output, order);
}

namespace {

Status swapped(Call& call, const Tensor* input, uint32_t first, uint32_t second, uint32_t out) {
  Tensor* output = call.output(out);
  if (!call.ok()) return call.status();
  if (input->rank != output->rank) return shapesDiffer();
  uint32_t order[kMaxRank];
  for (uint32_t d = 0; d < input->rank; ++d) order[d] = d == first ? second : d == second ? first : d;
  return permute(*input, *output, order);
}

}  // namespace

Status transposeCopy(KernelContext& context) {
  Call call(context, 4);
  const Tensor* input = call.tensor(0);
  const uint32_t rank = input == nullptr ? 0 : input->rank;
  const uint32_t first = call.dimension(1, rank), second = call.dimension(2, rank);
  return swapped(call, input, first, second, 3);
}

Status tCopy(KernelContext& context) {
  Call call(context, 2);
  const Tensor* input = call.tensor(0);
  call.require(input == nullptr || input->rank <= 2, shapesDiffer());
  return swapped(call, input, 0, input != nullptr && input->rank == 2 ? 1 : 0, 1);
}

namespace {

Status viewOf(const Tensor& input, Tensor& output) {
  if (input.type != output.type) return typesDiffer();
  if (input.bytes != output.bytes) return shapesDiffer();
  if (!isRowMajor(input) || !isRowMajor(output))
    return failure(Code::Unsupported, "a view of a tensor that is not row-major");
  return Status{};
}

}  // namespace

Status viewCopy(KernelContext& context) {
  Call call(context, 3);
  const Tensor* input = call.tensor(0);
  Tensor* output = call.output(2);
  if (!call.ok()) return call.status();
  CARINA_RT_TRY(viewOf(*input, *output));
  if (input->bytes != 0) memmove(output->data, input->data, input->bytes);
  return Status{};
}

Status viewAlias(KernelContext& context) {
  Call call(context, 3);
  const Tensor* input = call.tensor(0);
  if (!call.ok()) return call.status();
  Value& value = context.argument(2);
  if (value.kind != ValueKind::Tensor) return typesDiffer();
  Tensor& output = value.tensor;
  if (output.constant) return failure(Code::InvalidArgument, "an operator writes to a constant", 2);
  CARINA_RT_TRY(viewOf(*input, output));
  if (!output.planned && output.data == nullptr)
    output.data = input->data;
  else if (input->bytes != 0)
    memmove(output.data, input->data, input->bytes);
  return Status{};
}

}  // namespace carina::rt::kernels
