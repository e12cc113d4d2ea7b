// SPDX-License-Identifier: Apache-2.0
// Sampling at positions that are known at run time: positions are computed by arithmetic, elements gathered.
#include "aten/ops.hpp"
#include "aten/sampling.hpp"
#include "decompose/arithmetic.hpp"
#include "decompose/rewrites.hpp"
#include "decompose/volumes.hpp"

namespace carina::decompose {
namespace {

ir::Value* shifted(ir::Builder& b, ir::Value* x, double by) {
  return by == 0 ? x : add(b, x, by);
}
ir::Value* scaled(ir::Builder& b, ir::Value* x, double by) {
  return by == 1 ? x : mul(b, x, by);
}
ir::Value* clamp(ir::Builder& b, ir::Value* x, double low, double high) {
  return aten::Clamp::create(b, x, low, high);
}
ir::Value* cast(ir::Builder& b, ir::Value* x, DType dtype) {
  return aten::PrivateToCopy::create(b, x, dtype);
}

/// Coordinates in [-1, 1] as positions along a dimension of `size` elements. Beyond the positions next to the
/// ends, padding zeros are all zero.
ir::Value* positions(ir::Builder& b, ir::Value* g, int64_t size, const aten::GridSampling& sampling) {
  const auto extent = static_cast<double>(size), last = extent - 1;
  const bool align = sampling.alignCorners;
  // In one step, except where the rounding of PyTorch's steps decides which element is nearest.
  ir::Value* at = nullptr;
  if (sampling.interpolation == 0)
    at = shifted(b, scaled(b, g, (align ? last : extent) / 2), last / 2);
  else if (align)
    at = scaled(b, add(b, g, 1.0), last / 2);
  else
    at = mul(b, add(b, scaled(b, add(b, g, 1.0), extent), -1.0), 0.5);
  if (sampling.padding == 2) {
    // Every second period is mirrored.
    const double low = align ? 0.0 : -0.5, span = align ? last : extent;
    if (span > 0) {
      at = aten::Abs::create(b, shifted(b, at, -low));
      ir::Value* turns = aten::Floor::create(b, scaled(b, at, 1 / span));
      ir::Value* extra = sub(b, at, scaled(b, turns, span));
      ir::Value* odd = sub(b, turns, mul(b, aten::Floor::create(b, mul(b, turns, 0.5)), 2.0));
      ir::Value* back = add(b, mul(b, extra, -2.0), span);  // added to extra: span - extra
      at = shifted(b, add(b, extra, mul(b, odd, back)), low);
    }
  }
  return sampling.padding == 0 ? clamp(b, at, -1, extent) : clamp(b, at, 0, last);
}

/// A neighbour along one dimension: its index, and its share (null: 1), which is 0 outside.
struct Neighbour {
  ir::Value *index, *share;
};

std::vector<Neighbour> neighbours(ir::Builder& b, ir::Value* at, int64_t size,
                                  const aten::GridSampling& sampling) {
  const bool zeros = sampling.padding == 0;
  const auto neighbour = [&](ir::Value* index, ir::Value* share, bool mayLeave) {
    if (!mayLeave) return Neighbour{index, share};
    ir::Value* clamped = aten::Clamp::create(b, index, int64_t{0}, size - 1);
    if (zeros) {
      ir::Value* seen = cast(b, aten::EqTensor::create(b, clamped, index), DType::Float32);
      share = share ? mul(b, share, seen) : seen;
    }
    return Neighbour{clamped, share};
  };
  if (sampling.interpolation == 1)
    return {neighbour(cast(b, aten::Round::create(b, at), DType::Int64), nullptr, zeros)};
  ir::Value* low = aten::Floor::create(b, at);
  ir::Value* fraction = sub(b, at, low);
  ir::Value* index = cast(b, low, DType::Int64);
  ir::Value* next = aten::AddScalar::create(b, index, int64_t{1});
  return {neighbour(index, add(b, mul(b, fraction, -1.0), 1.0), zeros),
          neighbour(next, fraction, true)};  // without zeros, outside if its share is 0
}

/// 0, elements, 2 * elements, ...: where the elements of each image begin.
Tensor firstElements(int64_t images, int64_t elements) {
  std::vector<int64_t> first(static_cast<size_t>(images));
  for (size_t n = 0; n < first.size(); ++n) first[n] = static_cast<int64_t>(n) * elements;
  return Tensor::from({images, 1}, first);
}

}  // namespace

Result<ir::Value*> sampleByGathers(ir::Builder& b, ir::Node* node) {
  ir::Value *input = node->operands()[0], *grid = node->operands()[1];
  const Shape s = input->shape(), result = node->result()->shape();
  const auto dims = static_cast<int64_t>(s.size()) - 2;
  CARINA_TRY(const aten::GridSampling sampling, aten::gridSampling(*node));
  // Positions are computed in float32, and indices of all images in int32.
  if (input->dtype() != DType::Float32 || grid->dtype() != DType::Float32 || sampling.interpolation == 2 ||
      numElements(result) == 0 || input->numElements() > INT32_MAX)
    return nullptr;
  const int64_t count = grid->numElements() / (dims * s[0]);
  const int64_t elements = input->numElements() / (s[0] * s[1]);
  ir::Value* flatGrid = reshaped(b, grid, {s[0], count, dims});
  // The indices of the elements that a position reads and their shares, one dimension at a time.
  std::vector<Neighbour> read;
  for (int64_t d = 0; d < dims; ++d) {
    ir::Value* g = aten::SelectInt::create(b, flatGrid, int64_t{2}, dims - 1 - d);
    const int64_t size = s[static_cast<size_t>(d) + 2];
    const auto along = neighbours(b, positions(b, g, size, sampling), size, sampling);
    if (d == 0) {
      read = along;
      continue;
    }
    std::vector<Neighbour> finer;
    for (const Neighbour& outer : read) {
      for (const Neighbour& inner : along) {
        ir::Value* share = outer.share && inner.share ? mul(b, outer.share, inner.share) : nullptr;
        finer.push_back({add(b, aten::MulScalar::create(b, outer.index, size), inner.index), share});
      }
    }
    read = std::move(finer);
  }
  // Channels last: an index selects a row of all channels.
  ir::Ints toRows{0}, fromRows{0, dims + 1};
  for (int64_t d = 0; d < dims; ++d) {
    toRows.push_back(d + 2);
    fromRows.push_back(d + 1);
  }
  toRows.push_back(1);
  ir::Value* rows = reshaped(b, aten::Permute::create(b, input, toRows), {s[0] * elements, s[1]});
  ir::Value* sum = nullptr;
  for (const Neighbour& neighbour : read) {
    ir::Value* index = neighbour.index;
    if (s[0] > 1) index = add(b, index, b.constant(firstElements(s[0], elements)));
    ir::Value* part = aten::IndexSelect::create(b, rows, reshaped(b, index, {s[0] * count}), int64_t{0});
    if (neighbour.share) part = mul(b, part, reshaped(b, neighbour.share, {s[0] * count, 1}));
    sum = sum ? add(b, sum, part) : part;
  }
  Shape spread{s[0]};
  spread.insert(spread.end(), result.begin() + 2, result.end());
  spread.push_back(s[1]);
  return aten::Permute::create(b, reshaped(b, sum, spread), fromRows);
}

}  // namespace carina::decompose
