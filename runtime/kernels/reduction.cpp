// SPDX-License-Identifier: Apache-2.0
#include "reduction.hpp"

namespace carina::rt::kernels {

Status Reduction::open(const Tensor& input, const IntegerList& dims, bool keepDims, const Tensor& output) {
  uint32_t mask = 0, dim = 0;
  for (uint32_t i = 0; i < dims.count; ++i) {
    if (!wrapDimension(dims.items[i], input.rank, &dim)) return outOfRange(1);
    if ((mask >> dim & 1) != 0)
      return failure(Code::InvalidArgument, "a reduction names a dimension twice", 1);
    mask |= 1u << dim;
  }
  return openMask(input, mask, keepDims, output);
}

Status Reduction::openAll(const Tensor& input, const Tensor& output) {
  // The output has one element and any rank.
  if (output.elements() != 1) return shapesDiffer();
  return openMask(input, ~0u, output.rank != 0, output);
}

Status Reduction::openMask(const Tensor& input, uint32_t mask, bool keepDims, const Tensor& output) {
  input_ = &input;
  size_t from[kMaxRank], to[kMaxRank];
  strides(input, from);
  strides(output, to);
  uint32_t k = 0;
  for (uint32_t d = 0; d < input.rank; ++d) {
    const bool reduced = (mask >> d & 1) != 0;
    if (reduced && !keepDims) continue;
    if (k == output.rank || output.sizes[k] != (reduced ? 1 : input.sizes[d])) return shapesDiffer();
    if (!reduced) kept_.add(input.sizes[d], from[d], to[k]);
    ++k;
  }
  if (k != output.rank) return shapesDiffer();
  // The innermost reduced dimension larger than 1 is a run; outer ones whose steps continue it join it.
  bool first = true, joins = true;
  uint32_t outer[kMaxRank], outerCount = 0;
  for (uint32_t d = input.rank; d-- > 0;) {
    if ((mask >> d & 1) == 0) continue;
    const size_t size = static_cast<size_t>(input.sizes[d]);
    count_ *= size;
    if (size == 1) continue;
    joins = first || (joins && from[d] == step_ * length_);
    if (joins) {
      if (first) step_ = from[d];
      length_ *= size;
      first = false;
    } else {
      outer[outerCount++] = d;
    }
  }
  while (outerCount > 0) {
    const uint32_t d = outer[--outerCount];
    reduced_.add(input.sizes[d], from[d], 0);
  }
  return Status{};
}

void Reduction::reals(void (*step)(void* state, const float* values, size_t count), void* state) {
  if (count_ == 0) return;
  for (reduced_.restart(); !reduced_.done(); reduced_.next()) {
    const size_t base = kept_.first() + reduced_.first();
    for (size_t i = 0; i < length_; i += kChunk) {
      const size_t n = length_ - i < kChunk ? length_ - i : kChunk;
      float buffer[kChunk];
      step(state, realChunk(*input_, base + i * step_, static_cast<ptrdiff_t>(step_), n, buffer), n);
    }
  }
}

void Reduction::integers(void (*step)(void* state, const int64_t* values, size_t count), void* state) {
  if (count_ == 0) return;
  for (reduced_.restart(); !reduced_.done(); reduced_.next()) {
    const size_t base = kept_.first() + reduced_.first();
    for (size_t i = 0; i < length_; i += kChunk) {
      const size_t n = length_ - i < kChunk ? length_ - i : kChunk;
      int64_t buffer[kChunk];
      loadIntegers(*input_, base + i * step_, static_cast<ptrdiff_t>(step_), n, buffer);
      step(state, buffer, n);
    }
  }
}

}  // namespace carina::rt::kernels
