// SPDX-License-Identifier: Apache-2.0
// Copies that change element type or dimension order, element by element in logical order.
#include <string.h>

#include "carina/kernels.hpp"
#include "strided_copy.hpp"

namespace carina::rt::kernels {
namespace {

/// Float to integer truncates toward zero and saturates; NaN becomes 0.
int64_t toInteger(float value) {
  if (value != value) return 0;
  if (value >= 9223372036854775808.0f) return INT64_MAX;
  if (value <= -9223372036854775808.0f) return INT64_MIN;
  return static_cast<int64_t>(value);
}

Status loadInteger(const Tensor& tensor, size_t i, int64_t* value) {
  return withInteger(tensor.type, [&](auto sample) {
    *value = static_cast<int64_t>(tensor.as<const decltype(sample)>()[i]);
    return Status{};
  });
}

Status storeInteger(const Tensor& tensor, size_t i, int64_t value) {
  if (tensor.type == ScalarType::Bool) value = value != 0;
  return withInteger(tensor.type, [&](auto sample) {
    tensor.as<decltype(sample)>()[i] = static_cast<decltype(sample)>(value);
    return Status{};
  });
}

Status convertElement(const Tensor& input, size_t from, const Tensor& output, size_t to) {
  const bool fromFloat = input.type == ScalarType::Float32;
  const bool toFloat = output.type == ScalarType::Float32;
  int64_t integer = 0;
  if (fromFloat) {
    const float real = input.as<const float>()[from];
    if (output.type == ScalarType::Bool) return storeInteger(output, to, real != 0.0f ? 1 : 0);
    integer = toInteger(real);
  } else {
    CARINA_RT_TRY(loadInteger(input, from, &integer));
  }
  if (!toFloat) return storeInteger(output, to, integer);
  output.as<float>()[to] = static_cast<float>(integer);
  return Status{};
}

/// The same tensor but for dimensions of size 1: compares the other sizes.
bool sameButUnits(const Tensor& a, const Tensor& b) {
  uint32_t i = 0, k = 0;
  for (;;) {
    while (i < a.rank && a.sizes[i] == 1) ++i;
    while (k < b.rank && b.sizes[k] == 1) ++k;
    if (i == a.rank || k == b.rank) return i == a.rank && k == b.rank;
    if (a.sizes[i++] != b.sizes[k++]) return false;
  }
}

}  // namespace

Status convertCopy(KernelContext& context) {
  Tensor* input = nullptr;
  Tensor* output = nullptr;
  if (context.count() < 2) return failure(Code::InvalidArgument, "an operator call has too few arguments");
  CARINA_RT_TRY(context.tensor(0, &input));
  CARINA_RT_TRY(context.output(context.count() - 1, &output));
  const bool linear = sameLayout(*input, *output) ||
                      (sameButUnits(*input, *output) && isRowMajor(*input) && isRowMajor(*output));
  if (linear && input->type == output->type) {
    if (input->bytes != 0) memmove(output->data, input->data, input->bytes);
    return Status{};
  }
  if (linear) {
    const size_t count = input->elements();
    for (size_t i = 0; i < count; ++i) CARINA_RT_TRY(convertElement(*input, i, *output, i));
    return Status{};
  }
  if (!sameShape(*input, *output)) return shapesDiffer();
  size_t from[kMaxRank], to[kMaxRank];
  strides(*input, from);
  strides(*output, to);
  if (input->type == output->type) return copyStrided(*input, from, *output, to);
  StridedIndex index(*output, from, to);
  for (size_t n = output->elements(); n > 0; --n, index.next()) {
    CARINA_RT_TRY(convertElement(*input, index.from(), *output, index.to()));
  }
  return Status{};
}

}  // namespace carina::rt::kernels
