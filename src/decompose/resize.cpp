// SPDX-License-Identifier: Apache-2.0
// Resizing of lines and volumes as resizing of images, and resizing that RESIZE cannot express: rows selected
// individually, and products with constant matrices along each dimension.
#include <algorithm>

#include "aten/geometry.hpp"
#include "aten/ops.hpp"
#include "aten/sampling.hpp"
#include "decompose/resize_axes.hpp"
#include "decompose/rewrites.hpp"
#include "decompose/volumes.hpp"

namespace carina::decompose {
namespace {

using aten::OpId;

/// Output sizes or factors, as the node specifies them.
struct Target {
  std::optional<ir::Ints> sizes;
  std::optional<ir::Reals> factors;
  bool alignCorners = false;

  Target part(size_t from, size_t count) const {
    Target result{std::nullopt, std::nullopt, alignCorners};
    const auto first = static_cast<std::ptrdiff_t>(from), last = static_cast<std::ptrdiff_t>(from + count);
    if (sizes) result.sizes = ir::Ints(sizes->begin() + first, sizes->begin() + last);
    if (factors) result.factors = ir::Reals(factors->begin() + first, factors->begin() + last);
    return result;
  }
  /// With an additional dimension, which keeps its size.
  Target with(size_t at, int64_t size) const {
    Target result = *this;
    if (sizes) result.sizes->insert(result.sizes->begin() + static_cast<std::ptrdiff_t>(at), size);
    if (factors) result.factors->insert(result.factors->begin() + static_cast<std::ptrdiff_t>(at), 1.0);
    return result;
  }
};

template <typename Op>
Target targetOf(Op op) {
  Target target{op.outputSize(), op.scaleFactors(), false};
  // An empty list means absent.
  if (target.sizes && target.sizes->empty()) target.sizes.reset();
  if (target.factors && target.factors->empty()) target.factors.reset();
  if constexpr (requires { op.alignCorners(); }) target.alignCorners = op.alignCorners();
  return target;
}

enum class Mode : uint8_t { Nearest, NearestExact, Linear };
struct Resize {
  size_t spatial;
  Mode mode;
  Target target;
};

/// Nearest and linear resizing of lines and volumes.
std::optional<Resize> asResize(const ir::Node* node) {
  if (!aten::isOperator(node)) return std::nullopt;
  switch (aten::opId(node)) {
    case OpId::UpsampleNearest1dVec:
      return Resize{1, Mode::Nearest, targetOf(ir::dynCast<aten::UpsampleNearest1dVec>(node))};
    case OpId::UpsampleNearest3dVec:
      return Resize{3, Mode::Nearest, targetOf(ir::dynCast<aten::UpsampleNearest3dVec>(node))};
    case OpId::PrivateUpsampleNearestExact1dVec:
      return Resize{1, Mode::NearestExact,
                    targetOf(ir::dynCast<aten::PrivateUpsampleNearestExact1dVec>(node))};
    case OpId::PrivateUpsampleNearestExact3dVec:
      return Resize{3, Mode::NearestExact,
                    targetOf(ir::dynCast<aten::PrivateUpsampleNearestExact3dVec>(node))};
    case OpId::UpsampleLinear1dVec:
      return Resize{1, Mode::Linear, targetOf(ir::dynCast<aten::UpsampleLinear1dVec>(node))};
    case OpId::UpsampleTrilinear3dVec:
      return Resize{3, Mode::Linear, targetOf(ir::dynCast<aten::UpsampleTrilinear3dVec>(node))};
    default:
      return std::nullopt;
  }
}

ir::Value* resizedImage(ir::Builder& b, ir::Value* image, Mode mode, const Target& t) {
  switch (mode) {
    case Mode::Nearest:
      return aten::UpsampleNearest2dVec::create(b, image, t.sizes, t.factors);
    case Mode::NearestExact:
      return aten::PrivateUpsampleNearestExact2dVec::create(b, image, t.sizes, t.factors);
    default:
      return aten::UpsampleBilinear2dVec::create(b, image, t.sizes, t.alignCorners, t.factors);
  }
}

/// Images keep or double their rows regardless of the factor that led to these sizes; lines and volumes do
/// not.
bool differsFromImages(const Resize& op, const Shape& input, const Shape& output) {
  if (op.mode != Mode::Nearest || !op.target.factors) return false;
  for (size_t d = 0; d < op.spatial; ++d) {
    const int64_t in = input[2 + d], out = output[2 + d];
    if ((out == in || out == 2 * in) &&
        (*op.target.factors)[d] * static_cast<double>(in) != static_cast<double>(out))
      return true;
  }
  return false;
}

/// Lines are images one row high. Volumes are resized along the depth, then in the planes: linear values are
/// rounded twice.
Result<ir::Value*> rewriteToImages(ir::Builder& b, ir::Node* node) {
  const auto op = asResize(node);
  if (!op) return nullptr;
  ir::Value* x = node->operands()[0];
  const Shape shape = x->shape(), result = node->result()->shape();
  if (differsFromImages(*op, shape, result)) return pickedNearestRows(b, node);
  if (op->spatial == 1) {
    x = reshaped(b, x, {shape[0], shape[1], 1, shape[2]});
    x = resizedImage(b, x, op->mode, op->target.with(0, 1));
  } else {
    x = alongDepth(b, x, [&](ir::Value* image) {
      return resizedImage(b, image, op->mode, op->target.part(0, 1).with(1, image->dim(3)));
    });
    x = inPlanes(b, x,
                 [&](ir::Value* image) { return resizedImage(b, image, op->mode, op->target.part(1, 2)); });
  }
  return reshaped(b, x, result);
}

bool keeps(const std::vector<aten::Taps>& taps, int64_t size) {
  if (static_cast<int64_t>(taps.size()) != size) return false;
  for (size_t o = 0; o < taps.size(); ++o) {
    for (const aten::Tap& tap : taps[o]) {
      if (tap.at != static_cast<int64_t>(o) && tap.weight != 0) return false;
    }
  }
  return true;
}

/// Nearest rows that no ratio describes, selected by index.
Result<ir::Value*> rewriteNearestRows(ir::Builder& b, ir::Node* node) {
  if (!ir::isa<aten::UpsampleNearest2dVec>(node) && !ir::isa<aten::PrivateUpsampleNearestExact2dVec>(node))
    return nullptr;
  if (resizeAxes(*node).ok()) return nullptr;
  return pickedNearestRows(b, node);
}

// Elements of the matrix for one dimension; with more, the operator is not decomposed.
constexpr int64_t kMaxResizingWeights = int64_t{1} << 24;

/// x times the matrix of `taps` along dimension `dim`.
ir::Value* weighted(ir::Builder& b, ir::Value* x, int64_t dim, const std::vector<aten::Taps>& taps) {
  const int64_t size = x->dim(dim), last = x->rank() - 1;
  Tensor matrix = Tensor::zeros(DType::Float32, {static_cast<int64_t>(taps.size()), size});
  const auto values = matrix.mutableAs<float>();
  for (size_t o = 0; o < taps.size(); ++o) {
    for (const aten::Tap& tap : taps[o])
      values[o * static_cast<size_t>(size) + static_cast<size_t>(tap.at)] += tap.weight;
  }
  if (dim != last) x = aten::TransposeInt::create(b, x, dim, last);
  x = aten::Linear::create(b, x, b.constant(std::move(matrix)), nullptr);
  return dim == last ? x : aten::TransposeInt::create(b, x, dim, last);
}

/// Cubic and antialiased resizing, and bilinear resizing by ratios that RESIZE does not support.
Result<ir::Value*> rewriteAsProducts(ir::Builder& b, ir::Node* node) {
  const bool bilinear = ir::isa<aten::UpsampleBilinear2dVec>(node);
  if (!bilinear && !ir::isa<aten::UpsampleBicubic2dVec>(node) &&
      !ir::isa<aten::PrivateUpsampleBilinear2dAaVec>(node) &&
      !ir::isa<aten::PrivateUpsampleBicubic2dAaVec>(node))
    return nullptr;
  if (node->result()->dtype() != DType::Float32 || isQuantizedAsUnit(*node)) return nullptr;
  if (bilinear && resizeAxes(*node).ok()) return nullptr;
  for (int64_t d = 2; d < node->result()->rank(); ++d) {
    if (node->operands()[0]->dim(d) * node->result()->dim(d) > kMaxResizingWeights) return nullptr;
  }
  CARINA_TRY(const auto taps, aten::resizeTaps(*node));
  ir::Value* x = node->operands()[0];
  // Shrinking dimensions come first: fewer products, and rounding errors are averaged afterwards.
  const auto growth = [&](size_t d) {
    return static_cast<double>(taps[d].size()) / static_cast<double>(node->operands()[0]->shape()[2 + d]);
  };
  const bool rowsFirst = growth(0) < growth(1);
  for (const size_t d : {size_t{rowsFirst ? 0u : 1u}, size_t{rowsFirst ? 1u : 0u}}) {
    const auto dim = static_cast<int64_t>(d) + 2;
    if (!keeps(taps[d], x->dim(dim))) x = weighted(b, x, dim, taps[d]);
  }
  return x;
}

}  // namespace

Result<ir::Value*> pickedNearestRows(ir::Builder& b, ir::Node* node) {
  CARINA_TRY(const auto taps, aten::resizeTaps(*node));
  ir::Value* x = node->operands()[0];
  for (size_t d = 0; d < taps.size(); ++d) {
    const auto dim = static_cast<int64_t>(d) + 2;
    if (keeps(taps[d], x->dim(dim))) continue;
    std::vector<int64_t> rows;
    for (const aten::Taps& row : taps[d]) rows.push_back(row[0].at);
    ir::Value* index = b.constant(Tensor::from({static_cast<int64_t>(rows.size())}, rows));
    x = aten::IndexSelect::create(b, x, index, dim);
  }
  return x;
}

void addResizeRewrites(std::vector<ir::Rewrite>& rewrites) {
  addRewrites(rewrites, rewriteToImages, rewriteNearestRows, rewriteAsProducts);
}

}  // namespace carina::decompose
