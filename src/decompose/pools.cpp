// SPDX-License-Identifier: Apache-2.0
// Pooling of volumes as pooling along the depth and in the planes; adaptive pooling with fixed windows. Only
// pooling of images remains.
#include <algorithm>
#include <numeric>

#include "aten/geometry.hpp"
#include "aten/ops.hpp"
#include "decompose/rewrites.hpp"
#include "decompose/volumes.hpp"

namespace carina::decompose {
namespace {

// An adaptive pool that needs more pools than this is applied to rows first, then to columns.
constexpr int64_t kMostPools = 64;

bool readsIndices(const ir::Node* node) {
  return node->results().size() > 1 && !node->result(1)->unused();
}

/// Adds a batch of 1 if the input has none.
ir::Value* batched(ir::Builder& b, ir::Value* x, size_t spatial) {
  Shape shape = x->shape();
  if (shape.size() == spatial + 1) shape.insert(shape.begin(), 1);
  return reshaped(b, x, shape);
}

/// Maxima, sums and element counts of windows can be computed one dimension at a time. An average in two
/// steps is rounded twice.
Result<ir::Value*> rewritePool3d(ir::Builder& b, ir::Node* node) {
  const bool average = ir::isa<aten::AvgPool3d>(node);
  if (!average && !ir::isa<aten::MaxPool3d>(node) && !ir::isa<aten::MaxPool3dWithIndices>(node))
    return nullptr;
  if (readsIndices(node)) return nullptr;
  CARINA_TRY(const aten::PoolGeometry g, aten::poolGeometry(*node));
  const auto pooled = [&](ir::Value* image, bool depth) -> ir::Value* {
    const auto part = [depth](const ir::Ints& all, int64_t unused) {
      return depth ? ir::Ints{all[0], unused} : ir::Ints{all[1], all[2]};
    };
    const ir::Ints kernel = part(g.kernel, 1), stride = part(g.stride, 1), padding = part(g.padding, 0);
    const ir::Ints one{1, 1};
    if (kernel == one && stride == one) return image;
    if (!average) {
      return aten::MaxPool2d::create(b, image, kernel, stride, padding, part(g.dilation, 1), g.ceilMode);
    }
    std::optional<int64_t> divisor = g.divisor;
    if (divisor) *divisor = kernel[0] * kernel[1];
    return aten::AvgPool2d::create(b, image, kernel, stride, padding, g.ceilMode, g.countIncludePad, divisor);
  };
  ir::Value* x = batched(b, node->operands()[0], 3);
  x = alongDepth(b, x, [&](ir::Value* image) { return pooled(image, true); });
  x = inPlanes(b, x, [&](ir::Value* image) { return pooled(image, false); });
  if (g.divisor) {
    const auto count = static_cast<double>(g.kernel[0] * g.kernel[1] * g.kernel[2]);
    x = aten::MulScalar::create(b, x, count / static_cast<double>(*g.divisor));
  }
  return reshaped(b, x, node->result()->shape());
}

struct Adaptive {
  size_t spatial;
  bool largest;
};
std::optional<Adaptive> asAdaptive(const ir::Node* node) {
  using aten::OpId;
  if (!aten::isOperator(node)) return std::nullopt;
  switch (aten::opId(node)) {
    case OpId::AdaptiveAvgPool1d:
      return Adaptive{1, false};
    case OpId::AdaptiveAvgPool2d:
    case OpId::PrivateAdaptiveAvgPool2d:
      return Adaptive{2, false};
    case OpId::AdaptiveAvgPool3d:
    case OpId::PrivateAdaptiveAvgPool3d:
      return Adaptive{3, false};
    case OpId::AdaptiveMaxPool1d:
      return Adaptive{1, true};
    case OpId::AdaptiveMaxPool2d:
      return Adaptive{2, true};
    case OpId::AdaptiveMaxPool3d:
      return Adaptive{3, true};
    default:
      return std::nullopt;
  }
}

/// Windows [floor(o * I / O), ceil((o + 1) * I / O)) of one dimension. They repeat: with g = gcd(I, O),
/// outputs p, p + O / g, ... have windows of the same size, I / g apart.
struct Phases {
  int64_t inputs, outputs, repeats, count, stride;

  Phases(int64_t in, int64_t out)
      : inputs(in), outputs(out), repeats(std::gcd(in, out)), count(out / repeats), stride(in / repeats) {}
  int64_t begin(int64_t phase) const { return phase * inputs / outputs; }
  int64_t size(int64_t phase) const { return ceilDiv((phase + 1) * inputs, outputs) - begin(phase); }
};

ir::Value* fixedPool(ir::Builder& b, ir::Value* image, const ir::Ints& kernel, const ir::Ints& stride,
                     bool largest) {
  if (kernel == ir::Ints{1, 1} && stride == kernel) return image;
  const ir::Ints none{0, 0};
  if (largest) return aten::MaxPool2d::create(b, image, kernel, stride, none);
  return aten::AvgPool2d::create(b, image, kernel, stride, none);
}

/// One pool per pair of phases; the results are interleaved.
ir::Value* pooledByPhases(ir::Builder& b, ir::Value* image, const Phases& rows, const Phases& columns,
                          bool largest) {
  const auto cut = [&](ir::Value* x, int64_t dim, const Phases& phases, int64_t phase) -> ir::Value* {
    const int64_t from = phases.begin(phase);
    const int64_t to = from + (phases.repeats - 1) * phases.stride + phases.size(phase);
    if (from == 0 && to == x->dim(dim)) return x;
    return aten::SliceTensor::create(b, x, dim, from, to);
  };
  // Stacks the pieces in a new dimension, which is then merged with `dim`.
  const auto joined = [&](const std::vector<ir::Value*>& pieces, int64_t dim) {
    if (pieces.size() == 1) return pieces[0];
    Shape shape = pieces[0]->shape();
    shape[static_cast<size_t>(dim)] *= static_cast<int64_t>(pieces.size());
    return reshaped(b, aten::Stack::create(b, pieces, dim + 1), shape);
  };
  std::vector<ir::Value*> lines;
  for (int64_t y = 0; y < rows.count; ++y) {
    ir::Value* line = cut(image, 2, rows, y);
    std::vector<ir::Value*> cells;
    for (int64_t x = 0; x < columns.count; ++x) {
      cells.push_back(fixedPool(b, cut(line, 3, columns, x), {rows.size(y), columns.size(x)},
                                {rows.stride, columns.stride}, largest));
    }
    lines.push_back(joined(cells, 3));
  }
  return joined(lines, 2);
}

ir::Value* adaptive(ir::Builder& b, ir::Value* image, int64_t height, int64_t width, bool largest) {
  const Phases rows(image->dim(2), height), columns(image->dim(3), width);
  if (rows.count == 1 || columns.count == 1 || rows.count * columns.count <= kMostPools)
    return pooledByPhases(b, image, rows, columns, largest);
  const Phases allRows(height, height), allColumns(image->dim(3), image->dim(3));
  ir::Value* lines = pooledByPhases(b, image, rows, allColumns, largest);
  return pooledByPhases(b, lines, allRows, columns, largest);
}

ir::Value* rewriteAdaptive(ir::Builder& b, ir::Node* node) {
  const auto op = asAdaptive(node);
  if (!op || readsIndices(node) || node->operands()[0]->numElements() == 0 ||
      node->result()->numElements() == 0)
    return nullptr;
  const Shape result = node->result()->shape();
  const Shape outputs(result.end() - static_cast<std::ptrdiff_t>(op->spatial), result.end());
  ir::Value* x = batched(b, node->operands()[0], op->spatial);
  if (op->spatial == 3) {
    if (!op->largest && outputs == Shape{1, 1, 1}) {
      x = aten::MeanDim::create(b, x, ir::Ints{2, 3, 4}, true);
    } else {
      const auto pooled = [&](ir::Value* image, ir::Ints size) -> ir::Value* {
        if (size[0] == image->dim(2) && size[1] == image->dim(3)) return image;
        if (!op->largest) return aten::AdaptiveAvgPool2d::create(b, image, std::move(size));
        return aten::AdaptiveMaxPool2d::create(b, image, std::move(size)).node()->result(0);
      };
      x = alongDepth(b, x, [&](ir::Value* image) { return pooled(image, {outputs[0], image->dim(3)}); });
      x = inPlanes(b, x, [&](ir::Value* image) { return pooled(image, {outputs[1], outputs[2]}); });
    }
  } else {
    const bool line = op->spatial == 1;
    if (line) x = reshaped(b, x, {x->dim(0), x->dim(1), 1, x->dim(2)});
    x = adaptive(b, x, line ? 1 : outputs[0], outputs.back(), op->largest);
  }
  return reshaped(b, x, result);
}

}  // namespace

void addPoolRewrites(std::vector<ir::Rewrite>& rewrites) {
  addRewrites(rewrites, rewritePool3d, rewriteAdaptive);
}

}  // namespace carina::decompose
