// SPDX-License-Identifier: Apache-2.0
// Parts of a tensor: select, slice, narrow, split, unbind, unfold, diagonal, as_strided.
#include "carina/kernels.hpp"
#include "region.hpp"

namespace carina::rt::kernels {
namespace {

/// A tensor, a dimension of it (argument i) and an output that differs from it in that dimension.
struct Cut {
  const Tensor* self;
  Tensor* output = nullptr;
  uint32_t dim;
  size_t from[kMaxRank], to[kMaxRank];

  Cut(Call& call, uint32_t dimArgument) : self(call.tensor(0)) {
    dim = call.dimension(dimArgument, self);
    call.require(self == nullptr || self->rank > 0, shapesDiffer());
    if (call.ok()) strides(*self, from);
  }
  size_t size() const { return static_cast<size_t>(self->sizes[dim]); }

  /// `count` indices from `start` on, `step` apart, all within the dimension.
  Status range(const Tensor& part, size_t start, size_t count, size_t step) {
    if (!sameExceptDim(*self, part, dim) || static_cast<size_t>(part.sizes[dim]) != count)
      return shapesDiffer();
    strides(part, to);
    Region region;
    for (uint32_t d = 0; d < part.rank; ++d)
      region.add(static_cast<size_t>(part.sizes[d]),
                 static_cast<ptrdiff_t>(d == dim ? from[d] * step : from[d]), static_cast<ptrdiff_t>(to[d]));
    region.copy(*self, start * from[dim], part, 0);
    return Status{};
  }
  /// One index; the output lacks the dimension.
  Status one(const Tensor& part, size_t index) {
    if (part.rank + 1u != self->rank) return shapesDiffer();
    strides(part, to);
    Region region;
    for (uint32_t d = 0, k = 0; d < self->rank; ++d) {
      if (d == dim) continue;
      if (part.sizes[k] != self->sizes[d]) return shapesDiffer();
      region.add(static_cast<size_t>(part.sizes[k]), static_cast<ptrdiff_t>(from[d]),
                 static_cast<ptrdiff_t>(to[k]));
      ++k;
    }
    region.copy(*self, index * from[dim], part, 0);
    return Status{};
  }
};

/// Tensor k of a list of outputs.
Tensor* listed(Call& call, uint32_t list, uint32_t k) {
  Tensor* tensor = call.tensorAt(list, k);
  call.require(!call.ok() || tensor != nullptr, typesDiffer());
  call.require(!call.ok() || !tensor->constant,
               failure(Code::InvalidArgument, "an operator writes to a constant", list));
  return tensor;
}

}  // namespace

Status selectCopy(KernelContext& context) {
  Call call(context, 4);
  Cut cut(call, 1);
  const int64_t index = call.integer(2);
  Tensor* output = call.output(3);
  if (!call.ok()) return call.status();
  const int64_t size = cut.self->sizes[cut.dim], at = index < 0 ? index + size : index;
  if (at < 0 || at >= size) return outOfRange(2);
  return cut.one(*output, static_cast<size_t>(at));
}

Status sliceCopy(KernelContext& context) {
  Call call(context, 6);
  Cut cut(call, 1);
  const int64_t start = call.integer(2, 0), end = call.integer(3, INT64_MAX), step = call.integer(4);
  Tensor* output = call.output(5);
  if (!call.ok()) return call.status();
  if (step <= 0) return outOfRange(4);
  const SliceOf slice(cut.self->sizes[cut.dim], start, end, step);
  return cut.range(*output, slice.start, slice.count, slice.step);
}

Status narrowCopy(KernelContext& context) {
  Call call(context, 5);
  Cut cut(call, 1);
  const int64_t start = call.integer(2), length = call.integer(3);
  Tensor* output = call.output(4);
  if (!call.ok()) return call.status();
  const int64_t size = cut.self->sizes[cut.dim];
  if (start < -size || start > size) return outOfRange(2);
  const size_t first = static_cast<size_t>(start < 0 ? start + size : start);
  if (length < 0 || static_cast<uint64_t>(length) > cut.size() - first) return outOfRange(3);
  return cut.range(*output, first, static_cast<size_t>(length), 1);
}

Status splitCopy(KernelContext& context) {
  Call call(context, 4);
  Cut cut(call, 2);
  const int64_t size = call.integer(1);
  const uint32_t count = call.tensorCount(3);
  call.require(size > 0, outOfRange(1));
  if (!call.ok()) return call.status();
  size_t start = 0;
  for (uint32_t k = 0; k < count; ++k) {
    const Tensor* part = listed(call, 3, k);
    if (!call.ok()) return call.status();
    const size_t left = cut.size() - start;
    const size_t length = static_cast<uint64_t>(size) < left ? static_cast<size_t>(size) : left;
    CARINA_RT_TRY(cut.range(*part, start, length, 1));
    start += length;
  }
  return start == cut.size() ? Status{} : shapesDiffer();
}

Status splitWithSizesCopy(KernelContext& context) {
  Call call(context, 4);
  Cut cut(call, 2);
  const IntegerList sizes = call.integers(1);
  const uint32_t count = call.tensorCount(3);
  if (!call.ok()) return call.status();
  if (count != sizes.count) return shapesDiffer();
  size_t start = 0;
  for (uint32_t k = 0; k < count; ++k) {
    const Tensor* part = listed(call, 3, k);
    if (!call.ok()) return call.status();
    if (sizes.items[k] < 0 || static_cast<uint64_t>(sizes.items[k]) > cut.size() - start)
      return outOfRange(1);
    CARINA_RT_TRY(cut.range(*part, start, static_cast<size_t>(sizes.items[k]), 1));
    start += static_cast<size_t>(sizes.items[k]);
  }
  return start == cut.size() ? Status{} : shapesDiffer();
}

Status unbindCopy(KernelContext& context) {
  Call call(context, 3);
  Cut cut(call, 1);
  const uint32_t count = call.tensorCount(2);
  if (!call.ok()) return call.status();
  if (count != cut.size()) return shapesDiffer();
  for (uint32_t k = 0; k < count; ++k) {
    const Tensor* part = listed(call, 2, k);
    if (!call.ok()) return call.status();
    CARINA_RT_TRY(cut.one(*part, k));
  }
  return Status{};
}

/// Windows of `size` elements, `step` apart, as a new last dimension.
Status unfoldCopy(KernelContext& context) {
  Call call(context, 5);
  const Tensor* self = call.tensor(0);
  const uint32_t dim = call.dimension(1, self);
  const int64_t size = call.integer(2), step = call.integer(3);
  Tensor* output = call.output(4);
  if (!call.ok()) return call.status();
  const int64_t length = self->rank == 0 ? 1 : self->sizes[dim];
  if (size < 0 || size > length || step <= 0) return outOfRange(2);
  const int64_t windows = (length - size) / step + 1;
  if (self->rank == 0 || output->rank != self->rank + 1 || output->sizes[self->rank] != size)
    return shapesDiffer();
  size_t from[kMaxRank], to[kMaxRank];
  strides(*self, from);
  strides(*output, to);
  Region region;
  for (uint32_t d = 0; d < self->rank; ++d) {
    if (output->sizes[d] != (d == dim ? windows : self->sizes[d])) return shapesDiffer();
    const size_t apart = d == dim && windows > 1 ? static_cast<size_t>(step) : 1;
    region.add(static_cast<size_t>(output->sizes[d]), static_cast<ptrdiff_t>(from[d] * apart),
               static_cast<ptrdiff_t>(to[d]));
  }
  region.add(static_cast<size_t>(size), static_cast<ptrdiff_t>(from[dim]),
             static_cast<ptrdiff_t>(to[self->rank]));
  region.copy(*self, 0, *output, 0);
  return Status{};
}

Status diagonalCopy(KernelContext& context) {
  Call call(context, 5);
  const Tensor* self = call.tensor(0);
  const uint32_t rank = self == nullptr ? 0 : self->rank;
  const int64_t offset = call.integer(1);
  const uint32_t first = call.dimension(2, rank), second = call.dimension(3, rank);
  Tensor* output = call.output(4);
  if (!call.ok()) return call.status();
  if (first == second || rank < 2) return outOfRange(3);
  if (output->rank + 1u != rank) return shapesDiffer();
  size_t from[kMaxRank], to[kMaxRank];
  strides(*self, from);
  strides(*output, to);
  const int64_t rows = self->sizes[first], columns = self->sizes[second];
  int64_t length = 0;  // of the diagonal, which starts `offset` columns to the right or -offset rows down
  if (offset >= 0 && offset < columns) length = columns - offset < rows ? columns - offset : rows;
  if (offset < 0 && offset > -rows) length = rows + offset < columns ? rows + offset : columns;
  Region region;
  uint32_t k = 0;
  for (uint32_t d = 0; d < rank; ++d) {
    if (d == first || d == second) continue;
    if (output->sizes[k] != self->sizes[d]) return shapesDiffer();
    region.add(static_cast<size_t>(self->sizes[d]), static_cast<ptrdiff_t>(from[d]),
               static_cast<ptrdiff_t>(to[k++]));
  }
  if (output->sizes[k] != length) return shapesDiffer();
  if (length == 0) return Status{};
  region.add(static_cast<size_t>(length), static_cast<ptrdiff_t>(from[first] + from[second]),
             static_cast<ptrdiff_t>(to[k]));
  region.copy(*self, static_cast<size_t>(offset >= 0 ? offset : -offset) * from[offset >= 0 ? second : first],
              *output, 0);
  return Status{};
}

Status asStridedCopy(KernelContext& context) {
  Call call(context, 5);
  const Tensor* self = call.tensor(0);
  const IntegerList sizes = call.integers(1), steps = call.integers(2);
  const int64_t offset = call.integer(3, 0);
  Tensor* output = call.output(4);
  if (!call.ok()) return call.status();
  if (sizes.count != output->rank || steps.count != output->rank) return shapesDiffer();
  if (!isRowMajor(*self)) return failure(Code::Unsupported, "a view of a tensor that is not row-major", 0);
  size_t to[kMaxRank];
  strides(*output, to);
  Region region;
  int64_t last = offset;  // largest element that the view reaches
  const bool empty = output->elements() == 0;
  for (uint32_t d = 0; d < output->rank; ++d) {
    int64_t reach = 0;
    if (output->sizes[d] != sizes.items[d]) return shapesDiffer();
    if (steps.items[d] < 0 || offset < 0) return outOfRange(2);
    if (!empty && (__builtin_mul_overflow(steps.items[d], sizes.items[d] - 1, &reach) ||
                   __builtin_add_overflow(last, reach, &last)))
      return outOfRange(2);
    region.add(static_cast<size_t>(output->sizes[d]), static_cast<ptrdiff_t>(steps.items[d]),
               static_cast<ptrdiff_t>(to[d]));
  }
  if (empty) return Status{};
  if (offset < 0 || static_cast<uint64_t>(last) >= self->elements()) return outOfRange(3);
  region.copy(*self, static_cast<size_t>(offset), *output, 0);
  return Status{};
}

}  // namespace carina::rt::kernels
