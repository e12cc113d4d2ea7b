// SPDX-License-Identifier: Apache-2.0
// Sampling of volumes, for which ExecuTorch has no kernel: positions are computed by arithmetic, elements
// gathered.
#include "aten/ops.hpp"
#include "aten/sampling.hpp"
#include "decompose/cpu_rewrites.hpp"
#include "decompose/rewrites.hpp"
#include "decompose/volumes.hpp"

namespace carina::decompose::cpu {
namespace {

/// Arithmetic on tensors of one shape and numbers.
struct Arithmetic {
  ir::Builder& b;

  ir::Value* add(ir::Value* x, ir::Value* y) const { return aten::AddTensor::create(b, x, y); }
  ir::Value* add(ir::Value* x, double number) const {
    return number == 0 ? x : aten::AddScalar::create(b, x, number);
  }
  ir::Value* mul(ir::Value* x, ir::Value* y) const { return aten::MulTensor::create(b, x, y); }
  ir::Value* mul(ir::Value* x, double number) const {
    return number == 1 ? x : aten::MulScalar::create(b, x, number);
  }
  ir::Value* less(ir::Value* x, ir::Value* y) const { return aten::SubTensor::create(b, x, y); }
  ir::Value* floor(ir::Value* x) const { return aten::Floor::create(b, x); }
  /// Clamps to a dimension of `size` elements.
  ir::Value* within(ir::Value* x, int64_t size) const {
    return aten::Clamp::create(b, x, 0.0, static_cast<double>(size - 1));
  }
  ir::Value* cast(ir::Value* x, DType dtype) const { return aten::PrivateToCopy::create(b, x, dtype); }
};

/// Coordinates in [-1, 1] as positions along a dimension of `size` elements.
ir::Value* positions(const Arithmetic& a, ir::Value* g, int64_t size, const aten::GridSampling& sampling) {
  const auto extent = static_cast<double>(size), last = extent - 1;
  const bool align = sampling.alignCorners;
  ir::Value* at =
      align ? a.mul(a.add(g, 1.0), last / 2) : a.mul(a.add(a.mul(a.add(g, 1.0), extent), -1.0), 0.5);
  if (sampling.padding == 2) {
    // Every second period is mirrored.
    const double low = align ? 0.0 : -0.5, span = align ? last : extent;
    if (span > 0) {
      at = aten::Abs::create(a.b, a.add(at, -low));
      ir::Value* turns = a.floor(a.mul(at, 1 / span));
      ir::Value* extra = a.less(at, a.mul(turns, span));
      ir::Value* odd = a.less(turns, a.mul(a.floor(a.mul(turns, 0.5)), 2.0));
      ir::Value* back = a.add(a.mul(extra, -2.0), span);  // added to extra: span - extra
      at = a.add(a.add(extra, a.mul(odd, back)), low);
    }
  }
  return sampling.padding == 0 ? at : a.within(at, size);
}

/// A neighbour along one dimension: its index as a float, and its share, 0 outside.
struct Neighbour {
  ir::Value *index, *share;
};

std::vector<Neighbour> neighbours(const Arithmetic& a, ir::Value* at, int64_t size, bool nearest) {
  const auto inside = [&](ir::Value* index, ir::Value* share) {
    ir::Value* clamped = a.within(index, size);
    ir::Value* seen = a.cast(aten::EqTensor::create(a.b, clamped, index), DType::Float32);
    return Neighbour{clamped, share ? a.mul(share, seen) : seen};
  };
  if (nearest) return {inside(aten::Round::create(a.b, at), nullptr)};
  ir::Value* low = a.floor(at);
  ir::Value* fraction = a.less(at, low);
  return {inside(low, a.add(a.mul(fraction, -1.0), 1.0)), inside(a.add(low, 1.0), fraction)};
}

Result<ir::Value*> rewriteGridSampler3d(ir::Builder& b, ir::Node* node) {
  if (!ir::isa<aten::GridSampler>(node)) return nullptr;
  ir::Value *input = node->operands()[0], *grid = node->operands()[1];
  // Element indices are computed in float32.
  if (input->rank() != 5 || input->dtype() != DType::Float32 || grid->dtype() != DType::Float32 ||
      input->numElements() == 0 || input->dim(2) * input->dim(3) * input->dim(4) > int64_t{1} << 24)
    return nullptr;
  CARINA_TRY(const aten::GridSampling sampling, aten::gridSampling(*node));
  const Arithmetic a{b};
  const Shape s = input->shape();
  const int64_t count = grid->numElements() / (3 * s[0]);
  ir::Value* flatGrid = reshaped(b, grid, {s[0], count, 3});
  // The indices of the elements that a position reads and their shares, one dimension at a time.
  std::vector<Neighbour> read;
  for (int64_t d = 0; d < 3; ++d) {
    ir::Value* g = aten::SelectInt::create(b, flatGrid, int64_t{2}, 2 - d);
    const int64_t size = s[static_cast<size_t>(d) + 2];
    const auto along = neighbours(a, positions(a, g, size, sampling), size, sampling.interpolation == 1);
    if (d == 0) {
      read = along;
      continue;
    }
    std::vector<Neighbour> finer;
    for (const Neighbour& outer : read) {
      for (const Neighbour& inner : along) {
        finer.push_back({a.add(a.mul(outer.index, static_cast<double>(size)), inner.index),
                         a.mul(outer.share, inner.share)});
      }
    }
    read = std::move(finer);
  }
  ir::Value* elements = reshaped(b, input, {s[0], s[1], s[2] * s[3] * s[4]});
  ir::Value* sum = nullptr;
  for (const Neighbour& neighbour : read) {
    ir::Value* index = reshaped(b, a.cast(neighbour.index, DType::Int64), {s[0], 1, count});
    index = aten::Expand::create(b, index, ir::Ints{s[0], s[1], count});
    ir::Value* picked = aten::Gather::create(b, elements, index, int64_t{2});
    ir::Value* part = a.mul(picked, reshaped(b, neighbour.share, {s[0], 1, count}));
    sum = sum ? a.add(sum, part) : part;
  }
  return reshaped(b, sum, node->result()->shape());
}

}  // namespace

void addGridRewrites(std::vector<ir::Rewrite>& rewrites) {
  addRewrites(rewrites, rewriteGridSampler3d);
}

}  // namespace carina::decompose::cpu
