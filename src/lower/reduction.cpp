// SPDX-License-Identifier: Apache-2.0
#include "lower/reduction.hpp"

#include <algorithm>
#include <cmath>

namespace carina::lower {
namespace {

// Codes minus their zero points whose sum always fits 32 bits.
constexpr int64_t kMaxSummed16 = 65536, kMaxSummed8 = int64_t{1} << 23;

}  // namespace

Reduction reductionOf(Lowering& lowering, const StoredTensor& data, const std::vector<int>& dims) {
  const std::vector<int> order = lowering.commonOrder({data});
  const auto isReduced = [&](int d) { return std::find(dims.begin(), dims.end(), d) != dims.end(); };
  // Kept dimensions before the first reduced one of size > 1 stay in front, the others follow.
  const Shape shape = data.shape();
  size_t first = 0;
  while (first < order.size() && (!isReduced(order[first]) || shape[static_cast<size_t>(order[first])] == 1))
    ++first;
  std::vector<int> outer, reduced, inner;
  for (size_t i = 0; i < order.size(); ++i) {
    if (isReduced(order[i]))
      reduced.push_back(order[i]);
    else
      (i < first ? outer : inner).push_back(order[i]);
  }
  Reduction result;
  std::vector<int> sequence = outer;
  sequence.insert(sequence.end(), reduced.begin(), reduced.end());
  sequence.insert(sequence.end(), inner.begin(), inner.end());
  result.value = lowering.ordered(data, sequence);
  for (int d : outer) result.outer *= shape[static_cast<size_t>(d)];
  for (int d : inner) result.inner *= shape[static_cast<size_t>(d)];
  for (int d : reduced) result.reduced.push_back(shape[static_cast<size_t>(d)]);
  result.kept = outer;
  result.kept.insert(result.kept.end(), inner.begin(), inner.end());
  result.order = std::move(sequence);
  return result;
}

Layout resultLayout(const Reduction& reduction, const Shape& input, const Shape& result) {
  Shape keptShape = input;
  std::vector<int> order = reduction.kept;
  for (size_t d = 0; d < input.size(); ++d) {
    if (std::find(order.begin(), order.end(), static_cast<int>(d)) == order.end()) {
      keptShape[d] = 1;
      order.push_back(static_cast<int>(d));
    }
  }
  return *Layout::ordered(keptShape, order).viewed(result);
}

Result<Sum> summed(Lowering& lowering, const Reduction& r, int64_t zero) {
  Emitter& emit = lowering.emit();
  const int64_t count = r.count();
  const auto ones = [&](const Shape& shape) {
    Tensor tensor = Tensor::uninitialized(DType::Int8, shape);
    const auto values = tensor.mutableAs<int8_t>();
    std::fill(values.begin(), values.end(), int8_t{1});
    return emit.constant(std::move(tensor));
  };
  const auto zeros = [&](int64_t channels) { return emit.constant(Tensor::zeros(DType::Int32, {channels})); };
  if (r.value->dtype() == DType::Int8) {
    const int64_t parts = partsOf(count, kMaxSumChannels), length = count / parts;
    if (r.inner == 1 && parts * length == count && count <= kMaxSummed8) {
      ir::Value* rows = emit.reshape(r.value, {1, 1, r.outer * parts, length});
      ir::Value* sums =
          emit.conv2d(rows, ones({1, 1, 1, length}), zeros(1), zero, 0, {{1, 1}, {1, 1}, {0, 0, 0, 0}});
      if (parts > 1) sums = emit.reduce(Reduce::Sum, emit.reshape(sums, {r.outer, parts}), 1);
      return Sum{sums};
    }
    // Height and width of the window: the first reduced size > 1, and the rest.
    int64_t height = 1;
    for (int64_t size : r.reduced) {
      if (size > 1) {
        height = size;
        break;
      }
    }
    const int64_t width = count / height;
    if (r.outer == 1 && height <= kMaxSumHeight && count <= kMaxSumArea) {
      ir::Value* image = emit.reshape(r.value, {1, height, width, r.inner});
      return Sum{emit.depthwiseConv2d(image, ones({height, width, r.inner, 1}), zeros(r.inner), zero, 0,
                                      {{1, 1}, {1, 1}, {0, 0, 0, 0}})};
    }
  }
  ir::Value* value = emit.reshape(r.value, {r.outer, count, r.inner});
  if (value->dtype() == DType::Int32) return Sum{emit.reduce(Reduce::Sum, value, 1)};
  const int64_t most = value->dtype() == DType::Int16 ? kMaxSummed16 : kMaxSummed8;
  CARINA_TRY(value, emit.rescale(value, DType::Int32, zero, 0, std::array{1.0}));
  if (count <= most) return Sum{emit.reduce(Reduce::Sum, value, 1)};
  // RESCALE to fewer bits accepts partial sums of up to 30 bits.
  const int64_t parts = (2 * count + most - 1) / most, length = (count + parts - 1) / parts;
  value = emit.pad(value, {0, 0, 0, parts * length - count, 0, 0}, 0);
  value = emit.reduce(Reduce::Sum, emit.reshape(value, {r.outer * parts, length, r.inner}), 1);
  int shift = 0;
  while (int64_t{1} << shift < parts) ++shift;
  CARINA_TRY(value, emit.rescale(value, DType::Int32, 0, 0, std::array{std::ldexp(1.0, -shift)}));
  return Sum{emit.reduce(Reduce::Sum, emit.reshape(value, {r.outer, parts, r.inner}), 1), shift};
}

int64_t partsOf(int64_t count, int64_t part) {
  const int64_t least = ceilDiv(count, part);
  // Parts of equal length need no padding.
  for (int64_t parts = least; parts <= 4 * least; ++parts) {
    if (count % parts == 0) return parts;
  }
  return least;
}

ir::Value* sumOfSquares(Emitter& emit, ir::Value* x, int q, int64_t part) {
  const int64_t count = x->dim(1), parts = partsOf(count, part), length = ceilDiv(count, parts);
  if (parts == 1) return emit.reduce(Reduce::Sum, emit.product(x, x, q), 1);
  const int early = std::max(q - std::ilogb(static_cast<double>(parts)), 0);
  Shape padding(2 * x->shape().size(), 0), sums = x->shape();
  padding[3] = parts * length - count;
  sums[1] = parts;
  x = emit.pad(emit.product(x, x, early), padding, 0);
  // Without inner elements, each part has every parts-th element: U85 adds up the innermost dimension slowly.
  const int64_t outer = sums[0], inner = numElements(sums) / (outer * parts);
  x = emit.reshape(x, inner == 1 ? Shape{outer, length, parts} : Shape{outer * parts, length, inner});
  x = emit.reshape(emit.reduce(Reduce::Sum, x, 1), sums);
  if (q > early) x = emit.product(x, emit.number(1, x), q - early);
  return emit.reduce(Reduce::Sum, x, 1);
}

}  // namespace carina::lower
