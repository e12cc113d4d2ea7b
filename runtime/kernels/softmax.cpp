// SPDX-License-Identifier: Apache-2.0
// Operators along one dimension: softmax, log_softmax, cumsum, topk.
#include <math.h>

#include "carina/kernels.hpp"
#include "functions.hpp"
#include "mathematics.hpp"
#include "positions.hpp"
#include "reduction.hpp"
#include "region.hpp"

namespace carina::rt::kernels {
namespace {

/// Iterates over the lines of two tensors along a dimension.
struct Lines {
  Positions positions;
  size_t fromStep = 1, toStep = 1, fromLength = 1, toLength = 1;

  /// Shapes must agree except in `dim`. Scalars are lines of one element.
  Status open(const Tensor& from, const Tensor& to, uint32_t dim) {
    if (!sameExceptDim(from, to, dim)) return shapesDiffer();
    size_t fromSteps[kMaxRank] = {}, toSteps[kMaxRank] = {};
    strides(from, fromSteps);
    strides(to, toSteps);
    for (uint32_t d = 0; d < from.rank; ++d) {
      if (d != dim) positions.add(from.sizes[d], fromSteps[d], toSteps[d]);
    }
    if (from.rank == 0) return Status{};
    fromStep = fromSteps[dim];
    toStep = toSteps[dim];
    fromLength = static_cast<size_t>(from.sizes[dim]);
    toLength = static_cast<size_t>(to.sizes[dim]);
    return Status{};
  }
};

/// (self, dim, half_to_float, out)
Status softmaxOf(KernelContext& context, bool logarithm) {
  Call call(context, 4);
  const Tensor* self = call.tensor(0);
  const uint32_t dim = call.dimension(1, self);
  Tensor* output = call.output(3);
  if (!call.ok()) return call.status();
  if (!isReal(self->type) || !isReal(output->type)) return typesDiffer();
  if (!sameShape(*self, *output)) return shapesDiffer();
  if (output->elements() == 0) return Status{};
  Lines lines;
  CARINA_RT_TRY(lines.open(*self, *output, dim));
  for (; !lines.positions.done(); lines.positions.next()) {
    const float* in = self->as<const float>() + lines.positions.first();
    float* out = output->as<float>() + lines.positions.second();
    float largest = in[0];
    for (size_t i = 1; i < lines.fromLength; ++i) {
      const float value = in[i * lines.fromStep];
      if (value > largest || value != value) largest = value;
    }
    RealSum sum;
    for (size_t i = 0; i < lines.fromLength; ++i) {
      const float shifted = in[i * lines.fromStep] - largest, power = mathematics::exp(shifted);
      sum.add(power);
      out[i * lines.toStep] = logarithm ? shifted : power;
    }
    const float logSum = logarithm ? mathematics::log(sum.sum) : 0.0f;
    for (size_t i = 0; i < lines.fromLength; ++i) {
      float& value = out[i * lines.toStep];
      value = logarithm ? value - logSum : value / sum.sum;
    }
  }
  return Status{};
}

}  // namespace

Status softmax(KernelContext& context) {
  return softmaxOf(context, false);
}
Status logSoftmax(KernelContext& context) {
  return softmaxOf(context, true);
}

Status cumsum(KernelContext& context) {
  Call call(context, 4);
  const Tensor* self = call.tensor(0);
  const uint32_t dim = call.dimension(1, self);
  Tensor* output = call.output(3);
  if (!call.ok()) return call.status();
  if (!sameShape(*self, *output)) return shapesDiffer();
  if (isReal(self->type) && !isReal(output->type)) return typesDiffer();
  if (output->elements() == 0) return Status{};
  Lines lines;
  CARINA_RT_TRY(lines.open(*self, *output, dim));
  for (; !lines.positions.done(); lines.positions.next()) {
    RealSum real;
    int64_t integer = 0;
    for (size_t i = 0; i < lines.fromLength; ++i) {
      const size_t at = lines.positions.first() + i * lines.fromStep,
                   to = lines.positions.second() + i * lines.toStep;
      if (isReal(output->type)) {
        float value = 0;
        loadReals(*self, at, 1, 1, &value);
        real.add(value);
        storeReals(*output, to, 1, 1, &real.sum);
      } else {
        int64_t value = 0;
        loadIntegers(*self, at, 1, 1, &value);
        integer = wrapAdd(integer, value);
        storeIntegers(*output, to, 1, 1, &integer);
      }
    }
  }
  return Status{};
}

namespace {

/// Order of the elements of a tensor; NaN is largest.
struct Ranked {
  const Tensor& tensor;
  bool largest;

  /// Whether element `a` comes before element `b`; false both ways if they are equal.
  bool before(size_t a, size_t b) const {
    if (isReal(tensor.type)) {
      const float x = tensor.as<const float>()[a], y = tensor.as<const float>()[b];
      return largest ? x > y || (x != x && y == y) : x < y || (x == x && y != y);
    }
    int64_t x = 0, y = 0;
    loadIntegers(tensor, a, 1, 1, &x);
    loadIntegers(tensor, b, 1, 1, &y);
    return largest ? x > y : x < y;
  }
};

/// Positions in a line, at `list[0]`, `list[step]`, ..., as a heap whose root comes last in order. Equal
/// elements keep the order of the line.
struct Heap {
  const Ranked& order;
  size_t base, lineStep;  // of the line's elements
  int64_t* list;
  size_t step;

  int64_t& at(size_t n) const { return list[n * step]; }
  bool before(int64_t a, int64_t b) const {
    const size_t x = base + static_cast<size_t>(a) * lineStep, y = base + static_cast<size_t>(b) * lineStep;
    return order.before(x, y) || (a < b && !order.before(y, x));
  }
  /// Places `position` at n or below, in a heap of `size` that is valid except at n.
  void sink(int64_t position, size_t n, size_t size) const {
    for (size_t child; (child = 2 * n + 1) < size; n = child) {
      if (child + 1 < size && before(at(child), at(child + 1))) ++child;
      if (!before(position, at(child))) break;
      at(n) = at(child);
    }
    at(n) = position;
  }
  /// Selects the first `size` of `length` positions in order: n log(size) comparisons, no extra memory.
  void select(size_t size, size_t length) const {
    for (size_t n = 0; n < size; ++n) at(n) = static_cast<int64_t>(n);
    for (size_t n = size / 2; n-- > 0;) sink(at(n), n, size);
    for (size_t n = size; n < length; ++n) {
      if (before(static_cast<int64_t>(n), at(0))) sink(static_cast<int64_t>(n), 0, size);
    }
    while (size > 1) {
      const int64_t last = at(--size);
      at(size) = at(0);
      sink(last, 0, size);
    }
  }
};

}  // namespace

/// The first k in order; positions are selected and sorted in the index output.
Status topk(KernelContext& context) {
  Call call(context, 7);
  const Tensor* self = call.tensor(0);
  const int64_t k = call.integer(1);
  const uint32_t dim = call.dimension(2, self);
  const bool largest = call.boolean(3);
  Tensor* values = call.output(5);
  Tensor* indices = call.output(6);
  if (!call.ok()) return call.status();
  if (values->type != self->type || indices->type != ScalarType::Int64) return typesDiffer();
  if (!sameShape(*values, *indices)) return shapesDiffer();
  Lines lines, places;
  CARINA_RT_TRY(lines.open(*self, *values, dim));
  CARINA_RT_TRY(places.open(*self, *indices, dim));
  if (k < 0 || static_cast<uint64_t>(k) != lines.toLength || lines.toLength > lines.fromLength)
    return outOfRange(1);
  if (k == 0) return Status{};
  const Ranked order{*self, largest};
  for (; !lines.positions.done(); lines.positions.next(), places.positions.next()) {
    const size_t base = lines.positions.first();
    const Heap heap{order, base, lines.fromStep, indices->as<int64_t>() + places.positions.second(),
                    places.toStep};
    heap.select(lines.toLength, lines.fromLength);
    for (size_t n = 0; n < lines.toLength; ++n) {
      const auto found = static_cast<uint64_t>(heap.at(n));
      // Only outputs that overlap each other change what was found.
      if (found >= lines.fromLength) return failure(Code::InvalidArgument, "the outputs of topk overlap");
      const size_t element = elementSize(self->type);
      const uint8_t* source =
          self->as<const uint8_t>() + (base + static_cast<size_t>(found) * lines.fromStep) * element;
      uint8_t* target = values->as<uint8_t>() + (lines.positions.second() + n * lines.toStep) * element;
      for (size_t b = 0; b < element; ++b) target[b] = source[b];
    }
  }
  return Status{};
}

}  // namespace carina::rt::kernels
