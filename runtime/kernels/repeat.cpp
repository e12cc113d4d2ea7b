// SPDX-License-Identifier: Apache-2.0
// Elements repeated, reversed and rearranged: expand, repeat, flip, roll, pixel shuffles, tril.
#include "carina/kernels.hpp"
#include "region.hpp"

namespace carina::rt::kernels {

/// Sizes of 1 and missing outer dimensions repeat; -1 in the size list keeps a size.
Status expandCopy(KernelContext& context) {
  Call call(context, 4);
  const Tensor* self = call.tensor(0);
  const IntegerList sizes = call.integers(1);
  Tensor* output = call.output(3);
  if (!call.ok()) return call.status();
  if (sizes.count != output->rank || self->rank > output->rank) return shapesDiffer();
  size_t from[kMaxRank] = {}, to[kMaxRank] = {};
  strides(*self, from);
  strides(*output, to);
  const uint32_t missing = static_cast<uint32_t>(output->rank - self->rank);
  Region region;
  for (uint32_t d = 0; d < output->rank; ++d) {
    const bool repeats = d < missing || self->sizes[d - missing] == 1;
    if (!repeats && self->sizes[d - missing] != output->sizes[d]) return shapesDiffer();
    region.add(static_cast<size_t>(output->sizes[d]), repeats ? 0 : static_cast<ptrdiff_t>(from[d - missing]),
               static_cast<ptrdiff_t>(to[d]));
  }
  region.copy(*self, 0, *output, 0);
  return Status{};
}

Status repeat(KernelContext& context) {
  Call call(context, 3);
  const Tensor* self = call.tensor(0);
  const IntegerList repeats = call.integers(1);
  Tensor* output = call.output(2);
  if (!call.ok()) return call.status();
  if (repeats.count != output->rank || self->rank > output->rank) return shapesDiffer();
  size_t from[kMaxRank] = {}, to[kMaxRank] = {};
  strides(*self, from);
  strides(*output, to);
  const uint32_t missing = static_cast<uint32_t>(output->rank - self->rank);
  Region region;
  for (uint32_t d = 0; d < output->rank; ++d) {
    const int64_t size = d < missing ? 1 : self->sizes[d - missing];
    int64_t product = 0;
    if (repeats.items[d] < 0 || __builtin_mul_overflow(repeats.items[d], size, &product) ||
        product != output->sizes[d])
      return shapesDiffer();
    region.add(static_cast<size_t>(size == 0 ? 0 : repeats.items[d]), 0,
               static_cast<ptrdiff_t>(to[d] * static_cast<size_t>(size)));
    region.add(static_cast<size_t>(size), d < missing ? 0 : static_cast<ptrdiff_t>(from[d - missing]),
               static_cast<ptrdiff_t>(to[d]));
  }
  region.copy(*self, 0, *output, 0);
  return Status{};
}

Status flip(KernelContext& context) {
  Call call(context, 3);
  const Tensor* self = call.tensor(0);
  const IntegerList dims = call.integers(1);
  Tensor* output = call.output(2);
  if (!call.ok()) return call.status();
  if (!sameShape(*self, *output)) return shapesDiffer();
  if (self->elements() == 0) return Status{};
  size_t from[kMaxRank] = {}, to[kMaxRank] = {};
  strides(*self, from);
  strides(*output, to);
  uint32_t reversed = 0, dim = 0;
  for (uint32_t i = 0; i < dims.count; ++i) {
    if (!wrapDimension(dims.items[i], self->rank, &dim)) return outOfRange(1);
    reversed |= 1u << dim;
  }
  Region region;
  size_t start = 0;
  for (uint32_t d = 0; d < self->rank; ++d) {
    const ptrdiff_t step = static_cast<ptrdiff_t>(from[d]);
    const bool back = (reversed >> d & 1) != 0;
    if (back) start += from[d] * static_cast<size_t>(self->sizes[d] - 1);
    region.add(static_cast<size_t>(self->sizes[d]), back ? -step : step, static_cast<ptrdiff_t>(to[d]));
  }
  region.copy(*self, start, *output, 0);
  return Status{};
}

namespace {

int64_t positiveRemainder(int64_t value, int64_t by) {
  const int64_t rest = value % by;
  return rest < 0 ? rest + by : rest;
}

}  // namespace

/// Along a dimension rolled by s, output index (i + s) mod size is input index i: two boxes per dimension.
Status roll(KernelContext& context) {
  Call call(context, 4);
  const Tensor* self = call.tensor(0);
  const IntegerList shifts = call.integers(1), dims = call.integers(2);
  Tensor* output = call.output(3);
  if (!call.ok()) return call.status();
  if (!sameShape(*self, *output)) return shapesDiffer();
  const size_t count = self->elements();
  if (count == 0) return Status{};
  size_t from[kMaxRank], to[kMaxRank], sizes[kMaxRank], by[kMaxRank] = {};
  uint32_t rank = self->rank;
  strides(*self, from);
  strides(*output, to);
  for (uint32_t d = 0; d < rank; ++d) sizes[d] = static_cast<size_t>(self->sizes[d]);
  if (dims.count == 0) {  // all elements in row-major order as one dimension
    if (shifts.count != 1 || !isRowMajor(*self) || !isRowMajor(*output)) return shapesDiffer();
    rank = 1;
    sizes[0] = count;
    from[0] = to[0] = 1;
    by[0] = static_cast<size_t>(positiveRemainder(shifts.items[0], static_cast<int64_t>(count)));
  } else if (dims.count != shifts.count || rank == 0) {
    return shapesDiffer();
  }
  for (uint32_t i = 0; i < dims.count; ++i) {
    uint32_t dim = 0;
    if (!wrapDimension(dims.items[i], rank, &dim)) return outOfRange(2);
    by[dim] =
        (by[dim] + static_cast<size_t>(positiveRemainder(shifts.items[i], self->sizes[dim]))) % sizes[dim];
  }
  // Bit d of `box` selects the elements that wrap around in dimension d.
  for (uint32_t box = 0; box < 1u << rank; ++box) {
    Region region;
    size_t source = 0, target = 0;
    bool empty = false;
    for (uint32_t d = 0; d < rank; ++d) {
      const bool wraps = (box >> d & 1) != 0;
      const size_t length = wraps ? by[d] : sizes[d] - by[d];
      empty = empty || length == 0;
      source += wraps ? (sizes[d] - by[d]) * from[d] : 0;
      target += wraps ? 0 : by[d] * to[d];
      region.add(length, static_cast<ptrdiff_t>(from[d]), static_cast<ptrdiff_t>(to[d]));
    }
    if (!empty) region.copy(*self, source, *output, target);
  }
  return Status{};
}

namespace {

/// Channels c * r * r + i * r + j at (y, x) of `deep` are channel c at (y * r + i, x * r + j) of `flat`.
Status shuffle(Call& call, bool toFlat) {
  const Tensor* self = call.tensor(0);
  const int64_t factor = call.integer(1);
  Tensor* output = call.output(2);
  if (!call.ok()) return call.status();
  const Tensor& deep = toFlat ? *self : *output;
  const Tensor& flat = toFlat ? *output : *self;
  const uint32_t rank = deep.rank;
  if (factor <= 0 || factor > 1 << 15) return outOfRange(1);
  if (rank < 3 || flat.rank != rank) return shapesDiffer();
  const uint32_t c = rank - 3, y = rank - 2, x = rank - 1;
  if (deep.sizes[c] != flat.sizes[c] * factor * factor || flat.sizes[y] != deep.sizes[y] * factor ||
      flat.sizes[x] != deep.sizes[x] * factor)
    return shapesDiffer();
  size_t inDeep[kMaxRank], inFlat[kMaxRank];
  strides(deep, inDeep);
  strides(flat, inFlat);
  Region region;
  const size_t r = static_cast<size_t>(factor);
  const auto add = [&](int32_t size, size_t deepStep, size_t flatStep) {
    region.add(static_cast<size_t>(size), static_cast<ptrdiff_t>(toFlat ? deepStep : flatStep),
               static_cast<ptrdiff_t>(toFlat ? flatStep : deepStep));
  };
  for (uint32_t d = 0; d < c; ++d) {
    if (deep.sizes[d] != flat.sizes[d]) return shapesDiffer();
    add(deep.sizes[d], inDeep[d], inFlat[d]);
  }
  add(flat.sizes[c], inDeep[c] * r * r, inFlat[c]);
  add(deep.sizes[y], inDeep[y], inFlat[y] * r);
  add(static_cast<int32_t>(factor), inDeep[c] * r, inFlat[y]);
  add(deep.sizes[x], inDeep[x], inFlat[x] * r);
  add(static_cast<int32_t>(factor), inDeep[c], inFlat[x]);
  region.copy(*self, 0, *output, 0);
  return Status{};
}

}  // namespace

Status pixelShuffle(KernelContext& context) {
  Call call(context, 3);
  return shuffle(call, true);
}
Status pixelUnshuffle(KernelContext& context) {
  Call call(context, 3);
  return shuffle(call, false);
}

/// Row i keeps its first i + 1 + diagonal elements.
Status tril(KernelContext& context) {
  Call call(context, 3);
  const Tensor* self = call.tensor(0);
  const int64_t diagonal = call.integer(1);
  Tensor* output = call.output(2);
  if (!call.ok()) return call.status();
  if (self->rank < 2 || !sameShape(*self, *output)) return shapesDiffer();
  if (self->elements() == 0) return Status{};
  fillWith(*output, Operand{});
  size_t from[kMaxRank] = {}, to[kMaxRank] = {};
  strides(*self, from);
  strides(*output, to);
  const uint32_t y = self->rank - 2u, x = self->rank - 1u;
  for (int64_t row = 0; row < self->sizes[y]; ++row) {
    if (diagonal < -row) continue;
    const int64_t columns = self->sizes[x];
    const int64_t kept = diagonal >= columns - row - 1 ? columns : row + 1 + diagonal;
    Region region;
    for (uint32_t d = 0; d < y; ++d)
      region.add(static_cast<size_t>(self->sizes[d]), static_cast<ptrdiff_t>(from[d]),
                 static_cast<ptrdiff_t>(to[d]));
    region.add(static_cast<size_t>(kept), static_cast<ptrdiff_t>(from[x]), static_cast<ptrdiff_t>(to[x]));
    region.copy(*self, static_cast<size_t>(row) * from[y], *output, static_cast<size_t>(row) * to[y]);
  }
  return Status{};
}

}  // namespace carina::rt::kernels
