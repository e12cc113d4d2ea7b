// SPDX-License-Identifier: Apache-2.0
// Reads and writes at positions given by index tensors (int64 or int32, negative from the end): embedding,
// index_select, gather, scatter, index, index_put.
#include <string.h>

#include "carina/kernels.hpp"
#include "positions.hpp"
#include "region.hpp"
#include "stream.hpp"

namespace carina::rt::kernels {
namespace {

bool isIndex(const Tensor& tensor) {
  return tensor.type == ScalarType::Int64 || tensor.type == ScalarType::Int32;
}

/// Element `at` of an index tensor as a position in a dimension of `size`; false if outside. Read only once,
/// because the output may overlap the index tensor.
bool position(const Tensor& index, size_t at, int64_t size, bool negative, size_t* result) {
  int64_t value = 0;
  loadIntegers(index, at, 1, 1, &value);
  if (value < 0 && negative) value += size;
  if (value < 0 || value >= size) return false;
  *result = static_cast<size_t>(value);
  return true;
}

constexpr Status outsideIndex(uint32_t argument) {
  return failure(Code::InvalidArgument, "an index is outside of its dimension", argument);
}

ptrdiff_t step(size_t elements) {
  return static_cast<ptrdiff_t>(elements);
}

Status copyUnlessInPlace(const Tensor& self, const Tensor& output) {
  if (self.type != output.type) return typesDiffer();
  if (!sameShape(self, output)) return shapesDiffer();
  size_t from[kMaxRank], to[kMaxRank];
  strides(self, from);
  strides(output, to);
  // Updated in place: the data is already there.
  if (self.data == output.data && memcmp(from, to, self.rank * sizeof(from[0])) == 0) return Status{};
  Region region;
  region.addAll(output, from, to);
  region.copy(self, 0, output, 0);
  return Status{};
}

/// target += source, in the target's type.
void accumulate(const Tensor& source, size_t from, const Tensor& target, size_t to) {
  if (isReal(target.type)) {
    float sum = 0, value = 0;
    loadReals(target, to, 1, 1, &sum);
    loadReals(source, from, 1, 1, &value);
    sum += value;
    storeReals(target, to, 1, 1, &sum);
  } else {
    int64_t sum = 0, value = 0;
    loadIntegers(target, to, 1, 1, &sum);
    loadIntegers(source, from, 1, 1, &value);
    sum = static_cast<int64_t>(static_cast<uint64_t>(sum) + static_cast<uint64_t>(value));
    storeIntegers(target, to, 1, 1, &sum);
  }
}

}  // namespace

/// (weight [rows, ...], indices, padding_idx, scale_grad_by_freq, sparse, out [indices..., ...])
Status embedding(KernelContext& context) {
  Call call(context, 6);
  const Tensor* weight = call.tensor(0);
  const Tensor* indices = call.tensor(1);
  Tensor* output = call.output(5);
  if (!call.ok()) return call.status();
  if (weight->type != output->type || !isIndex(*indices)) return typesDiffer();
  if (weight->rank != 2 || output->rank != indices->rank + 1u ||
      output->sizes[indices->rank] != weight->sizes[1])
    return shapesDiffer();
  if (output->elements() == 0) return Status{};
  size_t from[kMaxRank], at[kMaxRank], to[kMaxRank];
  strides(*weight, from);
  strides(*indices, at);
  strides(*output, to);
  Positions positions;
  for (uint32_t d = 0; d < indices->rank; ++d) {
    if (indices->sizes[d] != output->sizes[d]) return shapesDiffer();
    positions.add(indices->sizes[d], at[d], to[d]);
  }
  Region row;
  row.add(static_cast<size_t>(weight->sizes[1]), step(from[1]), step(to[indices->rank]));
  for (; !positions.done(); positions.next()) {
    size_t index = 0;
    if (!position(*indices, positions.first(), weight->sizes[0], false, &index)) return outsideIndex(1);
    row.copy(*weight, index * from[0], *output, positions.second());
  }
  return Status{};
}

/// (self, dim, index, out)
Status indexSelect(KernelContext& context) {
  Call call(context, 4);
  const Tensor* self = call.tensor(0);
  const uint32_t dim = call.dimension(1, self);
  const Tensor* index = call.tensor(2);
  Tensor* output = call.output(3);
  if (!call.ok()) return call.status();
  if (self->type != output->type || !isIndex(*index)) return typesDiffer();
  const size_t count = index->elements();
  if (self->rank == 0 || index->rank > 1 || !sameExceptDim(*self, *output, dim) ||
      static_cast<size_t>(output->sizes[dim]) != count)
    return shapesDiffer();
  if (output->elements() == 0) return Status{};
  size_t from[kMaxRank], to[kMaxRank];
  strides(*self, from);
  strides(*output, to);
  Region region;
  for (uint32_t d = 0; d < self->rank; ++d) {
    if (d != dim) region.add(static_cast<size_t>(self->sizes[d]), step(from[d]), step(to[d]));
  }
  for (size_t i = 0; i < count; ++i) {
    size_t at = 0;
    if (!position(*index, i, self->sizes[dim], false, &at)) return outsideIndex(2);
    region.copy(*self, at * from[dim], *output, i * to[dim]);
  }
  return Status{};
}

/// (self, dim, index, sparse_grad, out): out[i][j] = self[index[i][j]][j] for dim 0.
Status gather(KernelContext& context) {
  Call call(context, 5);
  const Tensor* self = call.tensor(0);
  const uint32_t dim = call.dimension(1, self);
  const Tensor* index = call.tensor(2);
  Tensor* output = call.output(4);
  if (!call.ok()) return call.status();
  if (self->type != output->type || !isIndex(*index)) return typesDiffer();
  if (!sameShape(*index, *output) || index->rank != self->rank) return shapesDiffer();
  if (output->elements() == 0) return Status{};
  size_t from[kMaxRank], at[kMaxRank], to[kMaxRank];
  strides(*self, from);
  strides(*index, at);
  strides(*output, to);
  Positions positions;
  for (uint32_t d = 0; d < index->rank; ++d) {
    if (d != dim && index->sizes[d] > self->sizes[d]) return shapesDiffer();
    positions.add(index->sizes[d], at[d], to[d], d == dim ? 0 : from[d]);
  }
  const Region element{};
  const int64_t size = self->rank == 0 ? 1 : self->sizes[dim];
  for (; !positions.done(); positions.next()) {
    size_t k = 0;
    if (!position(*index, positions.first(), size, true, &k)) return outsideIndex(2);
    element.copy(*self, positions.third() + (self->rank == 0 ? 0 : k * from[dim]), *output,
                 positions.second());
  }
  return Status{};
}

namespace {

/// (self, dim, index, src or value, out): out is self with out[index[i][j]][j] = src[i][j] for dim 0.
Status scatterBy(KernelContext& context, bool adds) {
  Call call(context, 5);
  const Tensor* self = call.tensor(0);
  const uint32_t dim = call.dimension(1, self);
  const Tensor* index = call.tensor(2);
  const Operand source = call.operand(3);
  Tensor* output = call.output(4);
  if (!call.ok()) return call.status();
  if (!isIndex(*index) || (source.tensor != nullptr && source.tensor->type != output->type))
    return typesDiffer();
  CARINA_RT_TRY(copyUnlessInPlace(*self, *output));
  if (index->elements() == 0) return Status{};
  if (index->rank != self->rank || (source.tensor != nullptr && source.tensor->rank != self->rank))
    return shapesDiffer();
  size_t at[kMaxRank], from[kMaxRank] = {}, to[kMaxRank];
  strides(*index, at);
  if (source.tensor != nullptr) strides(*source.tensor, from);
  strides(*output, to);
  Positions positions;
  for (uint32_t d = 0; d < index->rank; ++d) {
    if (d != dim && index->sizes[d] > self->sizes[d]) return shapesDiffer();
    if (source.tensor != nullptr && index->sizes[d] > source.tensor->sizes[d]) return shapesDiffer();
    positions.add(index->sizes[d], at[d], from[d], d == dim ? 0 : to[d]);
  }
  const Region element{};
  const int64_t size = self->rank == 0 ? 1 : self->sizes[dim];
  for (; !positions.done(); positions.next()) {
    size_t k = 0;
    if (!position(*index, positions.first(), size, true, &k)) return outsideIndex(2);
    const size_t into = positions.third() + (self->rank == 0 ? 0 : k * to[dim]);
    if (source.tensor == nullptr && source.isReal)
      storeReals(*output, into, 1, 1, &source.real);
    else if (source.tensor == nullptr)
      storeIntegers(*output, into, 1, 1, &source.integer);
    else if (adds)
      accumulate(*source.tensor, positions.second(), *output, into);
    else
      element.copy(*source.tensor, positions.second(), *output, into);
  }
  return Status{};
}

}  // namespace

Status scatter(KernelContext& context) {
  return scatterBy(context, false);
}
Status scatterAdd(KernelContext& context) {
  return scatterBy(context, true);
}

namespace {

/// A list of index tensors, one or none per leading dimension of `self`. They broadcast against each other.
/// In the shape of self[indices], the broadcast shape replaces the indexed dimensions if these are adjacent;
/// otherwise it comes first. The other dimensions of `self` keep their order around it.
struct Indices {
  const Tensor* self;
  const Tensor* tensors[kMaxRank] = {};
  uint32_t count = 0;            // of the list
  uint32_t rank = 0;             // of the broadcast shape
  uint32_t place = 0;            // of the broadcast shape in the indexed tensor
  int32_t sizes[kMaxRank] = {};  // of the broadcast shape
  size_t own[kMaxRank];          // steps of self

  /// `indexed` has the shape of self[indices].
  Status open(Call& call, uint32_t list, const Tensor& from, const Tensor& indexed, bool broadcasts) {
    self = &from;
    strides(from, own);
    count = call.tensorCount(list);
    call.require(!call.ok() || count <= from.rank, shapesDiffer());
    uint32_t used = 0, first = 0, last = 0;
    for (uint32_t k = 0; call.ok() && k < count; ++k) {
      tensors[k] = call.tensorAt(list, k);
      if (tensors[k] == nullptr) continue;
      call.require(isIndex(*tensors[k]),
                   failure(Code::Unsupported, "the kernel takes int64 and int32 indices, no masks"));
      if (tensors[k]->rank > rank) rank = tensors[k]->rank;
      if (used++ == 0) first = k;
      last = k;
    }
    if (!call.ok()) return call.status();
    if (used == 0) return outOfRange(list);
    place = last - first + 1 == used ? first : 0;
    const uint32_t whole = from.rank - used + rank;
    if (whole > kMaxRank || (broadcasts ? indexed.rank > whole : indexed.rank != whole))
      return shapesDiffer();
    for (uint32_t d = 0; d < rank; ++d) {
      sizes[d] = 1;
      for (uint32_t k = 0; k < count; ++k) {
        if (tensors[k] == nullptr || d + tensors[k]->rank < rank) continue;
        const int32_t size = tensors[k]->sizes[d + tensors[k]->rank - rank];
        if (sizes[d] != 1 && size != 1 && size != sizes[d]) return shapesDiffer();
        if (size != 1) sizes[d] = size;
      }
    }
    return Status{};
  }

  /// Computes the steps of `indexed` (which broadcasts to the shape of self[indices]) per dimension of the
  /// broadcast shape, and per dimension of self that is not indexed.
  Status match(const Tensor& indexed, size_t* shapeSteps, size_t* selfSteps) const {
    size_t theirs[kMaxRank];
    strides(indexed, theirs);
    uint32_t d = 0;  // in the whole shape
    uint32_t used = 0;
    for (uint32_t k = 0; k < count; ++k) used += tensors[k] != nullptr ? 1 : 0;
    const uint32_t missing = self->rank - used + rank - indexed.rank;
    const auto one = [&](int32_t size, size_t* into) {
      *into = 0;
      const uint32_t at = d++;
      if (at < missing) return true;
      const int32_t given = indexed.sizes[at - missing];
      if (given != 1) *into = theirs[at - missing];
      return given == 1 || given == size;
    };
    bool fits = true, placed = false;
    uint32_t passed = 0;  // dimensions of self that are not indexed
    for (uint32_t s = 0; s <= self->rank; ++s) {
      if (!placed && passed == place) {
        for (uint32_t b = 0; b < rank; ++b) fits = one(sizes[b], &shapeSteps[b]) && fits;
        placed = true;
      }
      if (s == self->rank || (s < count && tensors[s] != nullptr)) continue;
      fits = one(self->sizes[s], &selfSteps[s]) && fits;
      ++passed;
    }
    return fits ? Status{} : shapesDiffer();
  }

  /// The element of an index tensor for position `at` of the broadcast shape. Recomputed each time: a table
  /// of steps for every tensor would take a kilobyte of stack.
  size_t elementOf(const Tensor& tensor, const int32_t* at) const {
    size_t element = 0, step = 1;
    for (uint32_t i = tensor.rank; i-- > 0;) {
      const uint32_t d = tensor.dimOrder[i];
      if (tensor.sizes[d] == 1) continue;
      element += static_cast<size_t>(at[d + rank - tensor.rank]) * step;
      step *= static_cast<size_t>(tensor.sizes[d]);
    }
    return element;
  }

  /// Calls f(offset in self, offset in the indexed tensor) for every position of the broadcast shape.
  template <typename F>
  Status each(const size_t* shapeSteps, F f) const {
    int32_t at[kMaxRank] = {};
    for (uint32_t d = 0; d < rank; ++d) {
      if (sizes[d] == 0) return Status{};
    }
    for (;;) {
      size_t from = 0, to = 0;
      for (uint32_t d = 0; d < rank; ++d) to += static_cast<size_t>(at[d]) * shapeSteps[d];
      for (uint32_t k = 0; k < count; ++k) {
        if (tensors[k] == nullptr) continue;
        size_t index = 0;
        if (!position(*tensors[k], elementOf(*tensors[k], at), self->sizes[k], true, &index))
          return outsideIndex(1);
        from += index * own[k];
      }
      f(from, to);
      uint32_t d = rank;
      for (; d > 0; --d) {
        if (++at[d - 1] < sizes[d - 1]) break;
        at[d - 1] = 0;
      }
      if (d == 0) return Status{};
    }
  }
};

}  // namespace

/// (self, indices, out)
Status indexTensor(KernelContext& context) {
  Call call(context, 3);
  const Tensor* self = call.tensor(0);
  Tensor* output = call.output(2);
  if (!call.ok()) return call.status();
  if (self->type != output->type) return typesDiffer();
  Indices indices;
  CARINA_RT_TRY(indices.open(call, 1, *self, *output, false));
  size_t shapeSteps[kMaxRank], selfSteps[kMaxRank];
  CARINA_RT_TRY(indices.match(*output, shapeSteps, selfSteps));
  Region region;
  for (uint32_t d = 0, k = 0; d < self->rank; ++d) {
    if (d < indices.count && indices.tensors[d] != nullptr) continue;
    // The output does not broadcast: its sizes must equal those of the shape.
    const uint32_t at = k < indices.place ? k : k + indices.rank;
    if (output->sizes[at] != self->sizes[d]) return shapesDiffer();
    region.add(static_cast<size_t>(self->sizes[d]), step(indices.own[d]), step(selfSteps[d]));
    ++k;
  }
  for (uint32_t b = 0; b < indices.rank; ++b) {
    if (output->sizes[indices.place + b] != indices.sizes[b]) return shapesDiffer();
  }
  if (output->elements() == 0) return Status{};
  return indices.each(shapeSteps, [&](size_t from, size_t to) { region.copy(*self, from, *output, to); });
}

/// (self, indices, values, accumulate, out): self with self[indices] replaced or added to.
Status indexPut(KernelContext& context) {
  Call call(context, 5);
  const Tensor* self = call.tensor(0);
  const Tensor* values = call.tensor(2);
  const bool adds = call.boolean(3);
  Tensor* output = call.output(4);
  if (!call.ok()) return call.status();
  if (values->type != output->type) return typesDiffer();
  CARINA_RT_TRY(copyUnlessInPlace(*self, *output));
  Indices indices;
  CARINA_RT_TRY(indices.open(call, 1, *output, *values, true));
  size_t shapeSteps[kMaxRank], selfSteps[kMaxRank];
  CARINA_RT_TRY(indices.match(*values, shapeSteps, selfSteps));
  if (output->elements() == 0 || values->elements() == 0) return Status{};
  Positions positions;
  for (uint32_t d = 0; d < self->rank; ++d) {
    if (d >= indices.count || indices.tensors[d] == nullptr)
      positions.add(self->sizes[d], selfSteps[d], indices.own[d]);
  }
  const size_t bytes = elementSize(output->type);
  const auto* source = static_cast<const uint8_t*>(values->data);
  auto* target = static_cast<uint8_t*>(output->data);
  return indices.each(shapeSteps, [&](size_t into, size_t from) {
    for (positions.restart(); !positions.done(); positions.next()) {
      if (adds)
        accumulate(*values, from + positions.first(), *output, into + positions.second());
      else
        memcpy(target + (into + positions.second()) * bytes, source + (from + positions.first()) * bytes,
               bytes);
    }
  });
}

}  // namespace carina::rt::kernels
