// SPDX-License-Identifier: Apache-2.0
#include "region.hpp"

#include <string.h>

#include "stream.hpp"

namespace carina::rt::kernels {
namespace {

template <typename T>
void moveRun(const uint8_t* source, ptrdiff_t fromStep, uint8_t* target, ptrdiff_t toStep, size_t count) {
  const T* from = reinterpret_cast<const T*>(source);
  T* to = reinterpret_cast<T*>(target);
  for (; count > 0; --count, from += fromStep, to += toStep) *to = *from;
}

/// memmove() by way of memcpy() where ranges do not overlap: that copies words at any alignment, while the C
/// library's memmove() copies bytes unless both sides are aligned.
void moveContiguous(const uint8_t* source, uint8_t* target, size_t bytes) {
  const uintptr_t from = reinterpret_cast<uintptr_t>(source), to = reinterpret_cast<uintptr_t>(target);
  if ((from < to ? to - from : from - to) >= bytes)
    memcpy(target, source, bytes);
  else
    memmove(target, source, bytes);
}

void moveBytes(const uint8_t* source, ptrdiff_t fromStep, uint8_t* target, ptrdiff_t toStep, size_t count,
               size_t element) {
  if (fromStep == 1 && toStep == 1) {
    return moveContiguous(source, target, count * element);
  }
  switch (element) {
    case 1:
      return moveRun<uint8_t>(source, fromStep, target, toStep, count);
    case 2:
      return moveRun<uint16_t>(source, fromStep, target, toStep, count);
    case 4:
      return moveRun<uint32_t>(source, fromStep, target, toStep, count);
    default:
      return moveRun<uint64_t>(source, fromStep, target, toStep, count);
  }
}

void convertRun(const Tensor& source, ptrdiff_t from, ptrdiff_t fromStep, const Tensor& target, ptrdiff_t to,
                ptrdiff_t toStep, size_t count) {
  while (count > 0) {
    const size_t n = count < kChunk ? count : kChunk;
    const size_t first = static_cast<size_t>(from), second = static_cast<size_t>(to);
    if (isReal(source.type) || isReal(target.type)) {  // one rounding either way
      float values[kChunk];
      loadReals(source, first, fromStep, n, values);
      storeReals(target, second, toStep, n, values);
    } else {
      int64_t values[kChunk];
      loadIntegers(source, first, fromStep, n, values);
      storeIntegers(target, second, toStep, n, values);
    }
    from += fromStep * static_cast<ptrdiff_t>(n);
    to += toStep * static_cast<ptrdiff_t>(n);
    count -= n;
  }
}

}  // namespace

void Region::add(size_t size, ptrdiff_t from, ptrdiff_t to) {
  if (size == 0) empty_ = true;
  if (size <= 1 || empty_) return;
  const auto across = [&](ptrdiff_t step) {
    return static_cast<ptrdiff_t>(static_cast<size_t>(step) * size);
  };
  if (rank_ > 0 && from_[rank_ - 1] == across(from) && to_[rank_ - 1] == across(to)) {
    sizes_[rank_ - 1] *= size;
    from_[rank_ - 1] = from;
    to_[rank_ - 1] = to;
    return;
  }
  sizes_[rank_] = size;
  from_[rank_] = from;
  to_[rank_++] = to;
}

void Region::addAll(const Tensor& shape, const size_t* from, const size_t* to) {
  for (uint32_t d = 0; d < shape.rank; ++d)
    add(static_cast<size_t>(shape.sizes[d]), static_cast<ptrdiff_t>(from[d]), static_cast<ptrdiff_t>(to[d]));
}

void Region::copy(const Tensor& source, size_t from, const Tensor& target, size_t to) const {
  if (empty_) return;
  const bool same = source.type == target.type;
  const size_t element = elementSize(source.type);
  const uint32_t inner = rank_ == 0 ? 0 : rank_ - 1;
  const size_t length = rank_ == 0 ? 1 : sizes_[inner];
  const ptrdiff_t fromStep = rank_ == 0 ? 1 : from_[inner], toStep = rank_ == 0 ? 1 : to_[inner];
  size_t index[kDimensions] = {};
  ptrdiff_t at = static_cast<ptrdiff_t>(from), into = static_cast<ptrdiff_t>(to);
  for (;;) {
    if (same)
      moveBytes(source.as<const uint8_t>() + static_cast<size_t>(at) * element, fromStep,
                target.as<uint8_t>() + static_cast<size_t>(into) * element, toStep, length, element);
    else
      convertRun(source, at, fromStep, target, into, toStep, length);
    uint32_t d = inner;
    for (; d > 0; --d) {
      at += from_[d - 1];
      into += to_[d - 1];
      if (++index[d - 1] < sizes_[d - 1]) break;
      at -= from_[d - 1] * static_cast<ptrdiff_t>(sizes_[d - 1]);
      into -= to_[d - 1] * static_cast<ptrdiff_t>(sizes_[d - 1]);
      index[d - 1] = 0;
    }
    if (d == 0) return;
  }
}

void fillWith(const Tensor& target, const Operand& value) {
  const size_t count = target.elements();
  if (count == 0) return;
  // Converts the first element and copies it to the others.
  if (value.isReal)
    storeReals(target, 0, 1, 1, &value.real);
  else
    storeIntegers(target, 0, 1, 1, &value.integer);
  const size_t element = elementSize(target.type);
  moveBytes(target.as<const uint8_t>(), 0, target.as<uint8_t>() + element, 1, count - 1, element);
}

Status permute(const Tensor& input, const Tensor& output, const uint32_t* order) {
  size_t from[kMaxRank], to[kMaxRank], own[kMaxRank];
  strides(input, own);
  strides(output, to);
  for (uint32_t d = 0; d < output.rank; ++d) {
    if (output.sizes[d] != input.sizes[order[d]]) return shapesDiffer();
    from[d] = own[order[d]];
  }
  Region region;
  region.addAll(output, from, to);
  region.copy(input, 0, output, 0);
  return Status{};
}

namespace {
/// A bound of a slice, clamped to the dimension; negative values count from the end.
size_t bounded(int64_t value, int64_t size) {
  if (value < 0) value = value < -size ? 0 : value + size;
  return static_cast<size_t>(value > size ? size : value);
}
}  // namespace

SliceOf::SliceOf(int32_t size, int64_t first, int64_t end, int64_t apart) {
  start = bounded(first, size);
  const size_t last = bounded(end, size);
  step = static_cast<size_t>(apart > size ? int64_t{size} + 1 : apart);
  count = last > start ? (last - start + step - 1) / step : 0;
}

bool sameExceptDim(const Tensor& a, const Tensor& b, uint32_t dim) {
  if (a.rank != b.rank) return false;
  for (uint32_t d = 0; d < a.rank; ++d) {
    if (d != dim && a.sizes[d] != b.sizes[d]) return false;
  }
  return true;
}

}  // namespace carina::rt::kernels
