// SPDX-License-Identifier: Apache-2.0
// Tensors with more dimensions than TOSA supports: adjacent dimensions that an operator treats alike are
// merged for it. Only reshapes remain between such operators, and these are joined.
#include <algorithm>
#include <numeric>

#include "aten/movement.hpp"
#include "aten/operator_facts.hpp"
#include "decompose/dims.hpp"
#include "decompose/rewrites.hpp"
#include "tosa/tosa.hpp"

namespace carina::decompose {
namespace {

bool tooManyDimensions(const ir::Node& node) {
  const auto tooMany = [](const ir::Value* value) { return value && value->rank() > tosa::kLevel8K.maxRank; };
  return std::any_of(node.operands().begin(), node.operands().end(), tooMany) ||
         std::any_of(node.results().begin(), node.results().end(), tooMany);
}

/// Merges adjacent dimensions of which every operand has either both or neither.
Result<ir::Value*> mergeElementwise(ir::Builder& b, ir::Node* node) {
  if (aten::factsOf(*node).tosa != aten::TosaForm::Elementwise || node->results().size() != 1) return nullptr;
  const Shape shape = node->result()->shape();
  const auto sizeAt = [&](const ir::Value* value, size_t d) {
    const auto missing = static_cast<int64_t>(shape.size()) - value->rank();
    return static_cast<int64_t>(d) < missing ? 1 : value->dim(static_cast<int64_t>(d) - missing);
  };
  std::vector<size_t> group(shape.size());  // of each dimension
  for (size_t d = 1; d < shape.size(); ++d) {
    const bool alike =
        std::all_of(node->operands().begin(), node->operands().end(), [&](const ir::Value* value) {
          if (!value) return true;
          return (sizeAt(value, d - 1) == shape[d - 1]) == (sizeAt(value, d) == shape[d]);
        });
    // A dimension of size 1 fits any neighbour: it gets its own group.
    group[d] = group[d - 1] + (alike && shape[d - 1] != 1 && shape[d] != 1 ? 0 : 1);
  }
  const auto merged = [&](const ir::Value* value) {
    Shape result(group.back() + 1, 1);
    for (size_t d = 0; d < shape.size(); ++d) result[group[d]] *= sizeAt(value, d);
    return result;
  };
  const Shape whole = merged(node->result());
  std::vector<bool> kept(whole.size());
  for (size_t g = 0; g < whole.size(); ++g) kept[g] = whole[g] != 1;
  const auto squeezed = [&](const Shape& all) {
    Shape result;
    for (size_t g = 0; g < all.size(); ++g) {
      if (kept[g]) result.push_back(all[g]);
    }
    return result;
  };
  if (static_cast<int64_t>(squeezed(whole).size()) > tosa::kLevel8K.maxRank) return nullptr;
  ir::NodeSpec spec;
  spec.def = &node->def();
  for (size_t i = 0; i < node->def().operands.size(); ++i) {
    auto& operands = spec.operands.emplace_back();
    for (ir::Value* value : node->operandGroup(i))
      operands.push_back(value ? viewed(b, value, squeezed(merged(value))) : nullptr);
  }
  for (size_t i = 0; i < node->def().attributes.size(); ++i) spec.attributes.push_back(node->attribute(i));
  spec.types.push_back({node->result()->dtype(), squeezed(whole)});
  CARINA_TRY(ir::Node* const small, b.tryCreate(std::move(spec)));
  return viewed(b, small->result(), shape);
}

/// Movements that read all elements with the dimensions in another order.
Result<ir::Value*> mergePermutation(ir::Builder& b, ir::Node* node) {
  CARINA_TRY(const auto moves, aten::movements(*node));
  if (!moves || moves->size() != 1) return nullptr;
  const aten::Movement& move = (*moves)[0];
  ir::Value* source = node->operand(move.operand);
  if (move.offset != 0 || numElements(move.shape) != source->numElements()) return nullptr;
  Shape shape;  // of the movement, with dimensions merged that stay adjacent
  ir::Ints strides;
  for (size_t d = 0; d < move.shape.size(); ++d) {
    if (move.shape[d] == 1) continue;
    if (!shape.empty() && strides.back() == move.shape[d] * move.strides[d]) {
      shape.back() *= move.shape[d];
      strides.back() = move.strides[d];
    } else {
      shape.push_back(move.shape[d]);
      strides.push_back(move.strides[d]);
    }
  }
  if (static_cast<int64_t>(shape.size()) > tosa::kLevel8K.maxRank) return nullptr;
  std::vector<size_t> order(shape.size());  // dimensions of the movement in source order
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t c) { return strides[a] > strides[c]; });
  Shape from;
  ir::Ints permutation(shape.size());
  for (size_t i = 0; i < order.size(); ++i) {
    from.push_back(shape[order[i]]);
    permutation[order[i]] = static_cast<int64_t>(i);
  }
  int64_t dense = 1;
  for (size_t i = order.size(); i-- > 0; dense *= from[i]) {
    if (strides[order[i]] != dense) return nullptr;
  }
  ir::Value* value = viewed(b, source, from);
  if (!std::is_sorted(order.begin(), order.end())) value = aten::Permute::create(b, value, permutation);
  return viewed(b, value, node->result()->shape());
}

/// A reduction over dimensions; adjacent ones that are all reduced or all kept are merged.
template <typename Op>
ir::Value* mergeReduction(ir::Builder& b, Op op) {
  ir::Value* source = op.self();
  const Shape& shape = source->shape();
  const std::vector<int> reduced = wrappedDims(op.dim(), source->rank());
  const auto isReduced = [&](size_t d) {
    return std::binary_search(reduced.begin(), reduced.end(), static_cast<int>(d));
  };
  Shape merged;
  ir::Ints dims;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (d > 0 && isReduced(d) == isReduced(d - 1)) {
      merged.back() *= shape[d];
      continue;
    }
    if (isReduced(d)) dims.push_back(static_cast<int64_t>(merged.size()));
    merged.push_back(shape[d]);
  }
  if (static_cast<int64_t>(merged.size()) > tosa::kLevel8K.maxRank) return nullptr;
  ir::Value* value = viewed(b, source, merged);
  if constexpr (std::is_same_v<Op, aten::Amax> || std::is_same_v<Op, aten::Amin>)
    value = Op::create(b, value, dims, true);
  else
    value = Op::create(b, value, dims, true, op.dtype());
  return viewed(b, value, op->result()->shape());
}

/// [..., features] as rows of features.
ir::Value* mergeLinear(ir::Builder& b, aten::Linear op) {
  const int64_t features = op.input()->shape().back();
  if (features == 0) return nullptr;
  ir::Value* rows = viewed(b, op.input(), {op.input()->numElements() / features, features});
  return viewed(b, aten::Linear::create(b, rows, op.weight(), op.bias()), op->result()->shape());
}

/// Outer dimensions, the operator's dimension, inner dimensions.
Shape around(const Shape& shape, int64_t dim) {
  Shape result{1, shape[static_cast<size_t>(dim)], 1};
  for (size_t d = 0; d < shape.size(); ++d) {
    if (static_cast<int64_t>(d) != dim) result[static_cast<int64_t>(d) < dim ? 0 : 2] *= shape[d];
  }
  return result;
}

ir::Value* mergeConcatenation(ir::Builder& b, aten::Cat op) {
  const Shape result = op->result()->shape();
  const int64_t dim = wrapped(op.dim(), op->result()->rank());
  std::vector<ir::Value*> parts;
  for (ir::Value* part : op.tensors()) {
    if (part->rank() != op->result()->rank()) return nullptr;
    parts.push_back(viewed(b, part, around(part->shape(), dim)));
  }
  return viewed(b, aten::Cat::create(b, parts, int64_t{1}), result);
}

ir::Value* mergeSlice(ir::Builder& b, aten::SliceTensor op) {
  const Shape result = op->result()->shape();
  const int64_t dim = wrapped(op.dim(), op->result()->rank());
  ir::Value* part = viewed(b, op.self(), around(op.self()->shape(), dim));
  return viewed(b, aten::SliceTensor::create(b, part, int64_t{1}, op.start(), op.end(), op.step()), result);
}

/// Matrix products with equal leading dimensions.
ir::Value* mergeProduct(ir::Builder& b, aten::Matmul op) {
  if (op.self()->rank() != op.other()->rank()) return nullptr;
  const Shape &left = op.self()->shape(), &right = op.other()->shape();
  if (!std::equal(left.begin(), left.end() - 2, right.begin())) return nullptr;
  const auto flat = [&](ir::Value* value) {
    const Shape& s = value->shape();
    return viewed(b, value, {numElements(Shape(s.begin(), s.end() - 2)), s[s.size() - 2], s.back()});
  };
  const Shape result = op->result()->shape();
  ir::Value* product = aten::Matmul::create(b, flat(op.self()), flat(op.other()));
  return viewed(b, product, result);
}

/// Combines a reshape of a reshape.
ir::Value* joinViews(ir::Builder& b, ir::Node* node) {
  const auto isReshape = [](const ir::Node* n) {
    return n && (ir::isa<aten::View>(n) || ir::isa<aten::Reshape>(n));
  };
  ir::Node* inner = node->operands().empty() || !node->operand(0) ? nullptr : node->operand(0)->producer();
  if (!isReshape(node) || !isReshape(inner) || inner->result()->rank() <= tosa::kLevel8K.maxRank)
    return nullptr;
  return viewed(b, inner->operand(0), node->result()->shape());
}

}  // namespace

void addRankRewrites(std::vector<ir::Rewrite>& rewrites) {
  addRewrites(rewrites, joinViews);
  std::vector<ir::Rewrite> merges;
  addRewrites(merges, mergeElementwise, mergeReduction<aten::MeanDim>, mergeReduction<aten::SumDimIntList>,
              mergeReduction<aten::Amax>, mergeReduction<aten::Amin>, mergeLinear, mergeConcatenation,
              mergeSlice, mergeProduct, mergePermutation);
  for (const ir::Rewrite& rewrite : merges) {
    rewrites.emplace_back([rewrite](ir::Node* node) -> Result<bool> {
      if (!aten::isOperator(node) || !tooManyDimensions(*node)) return false;
      const bool reshape = ir::isa<aten::View>(node) || ir::isa<aten::Reshape>(node);
      return reshape ? Result<bool>(false) : rewrite(node);
    });
  }
}

}  // namespace carina::decompose
