// SPDX-License-Identifier: Apache-2.0
// Joins tensors: cat, stack, and tensors with a part replaced.
#include "carina/kernels.hpp"
#include "region.hpp"

namespace carina::rt::kernels {
namespace {

/// Writes `part` to the output from index `at` of dimension `dim` on, with indices `step` apart.
void place(const Tensor& part, const Tensor& output, uint32_t dim, size_t at, size_t step) {
  size_t from[kMaxRank], to[kMaxRank];
  strides(part, from);
  strides(output, to);
  const size_t start = at * to[dim];
  to[dim] *= step;
  Region region;
  region.addAll(part, from, to);
  region.copy(part, 0, output, start);
}

/// Writes `part`, which lacks dimension `dim`, at index `at` of it.
Status placeOne(const Tensor& part, const Tensor& output, uint32_t dim, size_t at) {
  size_t from[kMaxRank], to[kMaxRank];
  strides(part, from);
  strides(output, to);
  Region region;
  for (uint32_t d = 0, k = 0; d < output.rank; ++d) {
    if (d == dim) continue;
    if (part.sizes[k] != output.sizes[d]) return shapesDiffer();
    region.add(static_cast<size_t>(part.sizes[k]), static_cast<ptrdiff_t>(from[k]),
               static_cast<ptrdiff_t>(to[d]));
    ++k;
  }
  region.copy(part, 0, output, at * to[dim]);
  return Status{};
}

/// Copies all of `self`, before a part of it is replaced.
Status copyAll(const Tensor& self, const Tensor& output) {
  if (!sameShape(self, output)) return shapesDiffer();
  size_t from[kMaxRank], to[kMaxRank];
  strides(self, from);
  strides(output, to);
  Region region;
  region.addAll(output, from, to);
  region.copy(self, 0, output, 0);
  return Status{};
}

}  // namespace

Status cat(KernelContext& context) {
  Call call(context, 3);
  const uint32_t count = call.tensorCount(0);
  Tensor* output = call.output(2);
  const uint32_t dim = call.dimension(1, output);
  if (!call.ok()) return call.status();
  size_t at = 0;
  for (uint32_t k = 0; k < count; ++k) {
    const Tensor* part = call.tensorAt(0, k);
    call.require(!call.ok() || part != nullptr, typesDiffer());
    if (!call.ok()) return call.status();
    if (part->rank == 1 && part->sizes[0] == 0) continue;  // PyTorch skips these whatever the other shapes
    if (part->rank == 0 || !sameExceptDim(*part, *output, dim)) return shapesDiffer();
    if (static_cast<size_t>(part->sizes[dim]) > static_cast<size_t>(output->sizes[dim]) - at)
      return shapesDiffer();
    place(*part, *output, dim, at, 1);
    at += static_cast<size_t>(part->sizes[dim]);
  }
  const bool whole = output->rank == 0 || at == static_cast<size_t>(output->sizes[dim]);
  return whole ? Status{} : shapesDiffer();
}

Status stack(KernelContext& context) {
  Call call(context, 3);
  const uint32_t count = call.tensorCount(0);
  Tensor* output = call.output(2);
  const uint32_t dim = call.dimension(1, output);
  if (!call.ok()) return call.status();
  if (output->rank == 0 || static_cast<size_t>(output->sizes[dim]) != count) return shapesDiffer();
  for (uint32_t k = 0; k < count; ++k) {
    const Tensor* part = call.tensorAt(0, k);
    call.require(!call.ok() || part != nullptr, typesDiffer());
    if (!call.ok()) return call.status();
    if (part->rank + 1u != output->rank) return shapesDiffer();
    CARINA_RT_TRY(placeOne(*part, *output, dim, k));
  }
  return Status{};
}

Status selectScatter(KernelContext& context) {
  Call call(context, 5);
  const Tensor* self = call.tensor(0);
  const Tensor* source = call.tensor(1);
  const uint32_t dim = call.dimension(2, self);
  const int64_t index = call.integer(3);
  Tensor* output = call.output(4);
  if (!call.ok()) return call.status();
  if (self->rank == 0 || source->rank + 1u != self->rank) return shapesDiffer();
  const int64_t size = self->sizes[dim], at = index < 0 ? index + size : index;
  if (at < 0 || at >= size) return outOfRange(3);
  CARINA_RT_TRY(copyAll(*self, *output));
  return placeOne(*source, *output, dim, static_cast<size_t>(at));
}

Status sliceScatter(KernelContext& context) {
  Call call(context, 7);
  const Tensor* self = call.tensor(0);
  const Tensor* source = call.tensor(1);
  const uint32_t dim = call.dimension(2, self);
  const int64_t start = call.integer(3, 0), end = call.integer(4, INT64_MAX), step = call.integer(5);
  Tensor* output = call.output(6);
  if (!call.ok()) return call.status();
  if (step <= 0) return outOfRange(5);
  if (self->rank == 0 || !sameExceptDim(*self, *source, dim)) return shapesDiffer();
  const SliceOf slice(self->sizes[dim], start, end, step);
  if (static_cast<size_t>(source->sizes[dim]) != slice.count) return shapesDiffer();
  CARINA_RT_TRY(copyAll(*self, *output));
  place(*source, *output, dim, slice.start, slice.step);
  return Status{};
}

}  // namespace carina::rt::kernels
