// SPDX-License-Identifier: Apache-2.0
// Data movement without arithmetic: permutations and views.
#include <string.h>

#include "carina/kernels.hpp"
#include "strided_copy.hpp"

namespace carina::rt::kernels {
namespace {

template <typename T>
void copyElements(const Tensor& input, const Tensor& output, StridedIndex& index) {
  const T* source = input.as<const T>();
  T* target = output.as<T>();
  for (size_t n = output.elements(); n > 0; --n, index.next()) target[index.to()] = source[index.from()];
}

/// output dimension d is input dimension order[d].
Status permute(const Tensor& input, const Tensor& output, const uint32_t* order) {
  if (input.type != output.type) return typesDiffer();
  size_t inputStrides[kMaxRank], from[kMaxRank], to[kMaxRank];
  strides(input, inputStrides);
  strides(output, to);
  for (uint32_t d = 0; d < output.rank; ++d) {
    if (output.sizes[d] != input.sizes[order[d]]) return shapesDiffer();
    from[d] = inputStrides[order[d]];
  }
  return copyStrided(input, from, output, to);
}

Status ends(KernelContext& context, uint32_t least, Tensor** input, Tensor** output) {
  if (context.count() < least)
    return failure(Code::InvalidArgument, "an operator call has too few arguments");
  CARINA_RT_TRY(context.tensor(0, input));
  return context.output(context.count() - 1, output);
}

bool normalize(int64_t dim, uint32_t rank, uint32_t* result) {
  if (dim < 0) dim += rank;
  if (dim < 0 || dim >= rank) return false;
  *result = static_cast<uint32_t>(dim);
  return true;
}

}  // namespace

Status copyStrided(const Tensor& input, const size_t* fromStrides, const Tensor& output,
                   const size_t* toStrides) {
  StridedIndex index(output, fromStrides, toStrides);
  switch (elementSize(output.type)) {
    case 1:
      copyElements<uint8_t>(input, output, index);
      break;
    case 2:
      copyElements<uint16_t>(input, output, index);
      break;
    case 4:
      copyElements<uint32_t>(input, output, index);
      break;
    default:
      copyElements<uint64_t>(input, output, index);
      break;
  }
  return Status{};
}

Status permuteCopy(KernelContext& context) {
  Tensor* input = nullptr;
  Tensor* output = nullptr;
  int64_t dims[kMaxRank];
  uint32_t order[kMaxRank];
  uint32_t count = 0, seen = 0;
  CARINA_RT_TRY(ends(context, 3, &input, &output));
  CARINA_RT_TRY(context.integers(1, dims, kMaxRank, &count));
  if (count != input->rank || count != output->rank) return shapesDiffer();
  for (uint32_t d = 0; d < count; ++d) {
    if (!normalize(dims[d], count, &order[d]))
      return failure(Code::InvalidArgument, "a dimension is out of range", 1);
    seen |= 1u << order[d];
  }
  if (seen != (1u << count) - 1)
    return failure(Code::InvalidArgument, "a permutation names a dimension twice", 1);
  return permute(*input, *output, order);
}

Status transposeCopy(KernelContext& context) {
  Tensor* input = nullptr;
  Tensor* output = nullptr;
  int64_t first = 0, second = 0;
  uint32_t a = 0, b = 0;
  CARINA_RT_TRY(ends(context, 4, &input, &output));
  CARINA_RT_TRY(context.integer(1, &first));
  CARINA_RT_TRY(context.integer(2, &second));
  if (input->rank != output->rank) return shapesDiffer();
  if (!normalize(first, input->rank, &a) || !normalize(second, input->rank, &b))
    return failure(Code::InvalidArgument, "a dimension is out of range", 1);
  uint32_t order[kMaxRank];
  for (uint32_t d = 0; d < input->rank; ++d) order[d] = d == a ? b : d == b ? a : d;
  return permute(*input, *output, order);
}

Status viewCopy(KernelContext& context) {
  Tensor* input = nullptr;
  Tensor* output = nullptr;
  CARINA_RT_TRY(ends(context, 3, &input, &output));
  if (input->type != output->type) return typesDiffer();
  if (input->bytes != output->bytes) return shapesDiffer();
  if (!isRowMajor(*input) || !isRowMajor(*output))
    return failure(Code::Unsupported, "a view of a tensor that is not row-major");
  if (input->bytes != 0) memmove(output->data, input->data, input->bytes);
  return Status{};
}

Status viewAlias(KernelContext& context) {
  Tensor* input = nullptr;
  if (context.count() < 3) return failure(Code::InvalidArgument, "an operator call has too few arguments");
  CARINA_RT_TRY(context.tensor(0, &input));
  Value& value = context.argument(2);
  if (value.kind != ValueKind::Tensor) return typesDiffer();
  Tensor& output = value.tensor;
  if (output.planned || output.constant || output.data != nullptr) {
    if (output.constant) return failure(Code::InvalidArgument, "an operator writes to a constant", 2);
    if (input->type != output.type) return typesDiffer();
    if (input->bytes != output.bytes) return shapesDiffer();
    if (input->bytes != 0) memmove(output.data, input->data, input->bytes);
    return Status{};
  }
  if (input->type != output.type) return typesDiffer();
  if (input->bytes != output.bytes) return shapesDiffer();
  output.data = input->data;
  return Status{};
}

}  // namespace carina::rt::kernels
