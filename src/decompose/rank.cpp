// SPDX-License-Identifier: Apache-2.0
// Tensors of more dimensions than TOSA has: neighbouring dimensions that an operator treats alike become one
// for it. What remains between such operators are reshapes, which join.
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

ir::Value* viewed(ir::Builder& b, ir::Value* value, const Shape& shape) {
  return value->shape() == shape ? value : aten::View::create(b, value, shape).output();
}

/// Operands with dimensions merged that all of them have or lack together.
Result<bool> mergeElementwise(ir::Node* node) {
  if (aten::factsOf(*node).tosa != aten::TosaForm::Elementwise || node->results().size() != 1) return false;
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
    // A dimension of size 1 says nothing about its neighbours: it starts a group of its own.
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
  if (static_cast<int64_t>(squeezed(whole).size()) > tosa::kLevel8K.maxRank) return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  ir::NodeSpec spec;
  spec.def = &node->def();
  spec.location = node->location();
  for (size_t i = 0; i < node->def().operands.size(); ++i) {
    auto& operands = spec.operands.emplace_back();
    for (ir::Value* value : node->operandGroup(i))
      operands.push_back(value ? viewed(b, value, squeezed(merged(value))) : nullptr);
  }
  for (size_t i = 0; i < node->def().attributes.size(); ++i) spec.attributes.push_back(node->attribute(i));
  spec.types.push_back({node->result()->dtype(), squeezed(whole)});
  CARINA_TRY(ir::Node* const small, node->graph().create(std::move(spec), node));
  replaceNode(node, viewed(b, small->result(), shape));
  return true;
}

/// Readings of all elements in another order of the dimensions.
Result<bool> mergePermutation(ir::Node* node) {
  CARINA_TRY(const auto moves, aten::movements(*node));
  if (!moves || moves->size() != 1) return false;
  const aten::Movement& move = (*moves)[0];
  ir::Value* source = node->operand(move.operand);
  if (move.offset != 0 || numElements(move.shape) != source->numElements()) return false;
  Shape shape;  // of the reading, with dimensions merged that stay neighbours
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
  if (static_cast<int64_t>(shape.size()) > tosa::kLevel8K.maxRank) return false;
  std::vector<size_t> order(shape.size());  // dimensions of the reading as they lie in the source
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
    if (strides[order[i]] != dense) return false;
  }
  ir::Builder b = ir::Builder::beforeNode(node);
  ir::Value* value = viewed(b, source, from);
  if (!std::is_sorted(order.begin(), order.end()))
    value = aten::Permute::create(b, value, permutation).output();
  const Shape result = node->result()->shape();
  replaceNode(node, viewed(b, value, result));
  return true;
}

/// A reduction over dimensions, neighbours that are all reduced or all kept as one.
template <typename Op>
Result<bool> mergeReduction(ir::Node* node) {
  const auto op = ir::dynCast<Op>(node);
  if (!op) return false;
  ir::Value* source = op.self();
  const Shape& shape = source->shape();
  const std::vector<int> reduced = wrappedDims(op.dim(), source->rank());
  const auto isReduced = [&](size_t d) {
    return std::find(reduced.begin(), reduced.end(), static_cast<int>(d)) != reduced.end();
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
  if (static_cast<int64_t>(merged.size()) > tosa::kLevel8K.maxRank) return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  ir::Value* value = viewed(b, source, merged);
  if constexpr (std::is_same_v<Op, aten::Amax> || std::is_same_v<Op, aten::Amin>)
    value = Op::create(b, value, dims, true).output();
  else
    value = Op::create(b, value, dims, true, op.dtype()).output();
  const Shape result = node->result()->shape();
  replaceNode(node, viewed(b, value, result));
  return true;
}

/// [..., features] as rows of features.
Result<bool> mergeLinear(ir::Node* node) {
  const auto op = ir::dynCast<aten::Linear>(node);
  if (!op) return false;
  const int64_t features = op.input()->shape().back();
  if (features == 0) return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  ir::Value* rows = viewed(b, op.input(), {op.input()->numElements() / features, features});
  const Shape result = node->result()->shape();
  replaceNode(node, viewed(b, aten::Linear::create(b, rows, op.weight(), op.bias()).output(), result));
  return true;
}

/// Outer dimensions, the one that the operator is about, inner dimensions.
Shape around(const Shape& shape, int64_t dim) {
  Shape result{1, shape[static_cast<size_t>(dim)], 1};
  for (size_t d = 0; d < shape.size(); ++d) {
    if (static_cast<int64_t>(d) != dim) result[static_cast<int64_t>(d) < dim ? 0 : 2] *= shape[d];
  }
  return result;
}

Result<bool> mergeConcatenation(ir::Node* node) {
  const auto op = ir::dynCast<aten::Cat>(node);
  if (!op) return false;
  const Shape result = node->result()->shape();
  const int64_t dim = wrapped(op.dim(), node->result()->rank());
  ir::Builder b = ir::Builder::beforeNode(node);
  std::vector<ir::Value*> parts;
  for (ir::Value* part : op.tensors()) {
    if (part->rank() != node->result()->rank()) return false;
    parts.push_back(viewed(b, part, around(part->shape(), dim)));
  }
  replaceNode(node, viewed(b, aten::Cat::create(b, parts, int64_t{1}).output(), result));
  return true;
}

Result<bool> mergeSlice(ir::Node* node) {
  const auto op = ir::dynCast<aten::SliceTensor>(node);
  if (!op) return false;
  const Shape result = node->result()->shape();
  const int64_t dim = wrapped(op.dim(), node->result()->rank());
  ir::Builder b = ir::Builder::beforeNode(node);
  ir::Value* part = viewed(b, op.self(), around(op.self()->shape(), dim));
  replaceNode(
      node,
      viewed(b, aten::SliceTensor::create(b, part, int64_t{1}, op.start(), op.end(), op.step()).output(),
             result));
  return true;
}

/// Products of matrices with the same dimensions in front of them.
Result<bool> mergeProduct(ir::Node* node) {
  const auto op = ir::dynCast<aten::Matmul>(node);
  if (!op || op.self()->rank() != op.other()->rank()) return false;
  const Shape &left = op.self()->shape(), &right = op.other()->shape();
  if (!std::equal(left.begin(), left.end() - 2, right.begin())) return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  const auto flat = [&](ir::Value* value) {
    const Shape& s = value->shape();
    return viewed(b, value, {numElements(Shape(s.begin(), s.end() - 2)), s[s.size() - 2], s.back()});
  };
  const Shape result = node->result()->shape();
  ir::Value* product = aten::Matmul::create(b, flat(op.self()), flat(op.other())).output();
  replaceNode(node, viewed(b, product, result));
  return true;
}

/// A reshape of a reshape is one.
Result<bool> joinViews(ir::Node* node) {
  const auto isReshape = [](const ir::Node* n) {
    return n && (ir::isa<aten::View>(n) || ir::isa<aten::Reshape>(n));
  };
  ir::Node* inner = node->operands().empty() || !node->operand(0) ? nullptr : node->operand(0)->producer();
  if (!isReshape(node) || !isReshape(inner) || inner->result()->rank() <= tosa::kLevel8K.maxRank)
    return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  const Shape shape = node->result()->shape();
  replaceNode(node, viewed(b, inner->operand(0), shape));
  return true;
}

}  // namespace

void addRankRewrites(std::vector<ir::Rewrite>& rewrites) {
  rewrites.push_back(joinViews);
  for (const ir::Rewrite& rewrite : std::vector<ir::Rewrite>{
           mergeElementwise, mergeReduction<aten::MeanDim>, mergeReduction<aten::SumDimIntList>,
           mergeReduction<aten::Amax>, mergeReduction<aten::Amin>, mergeLinear, mergeConcatenation,
           mergeSlice, mergeProduct, mergePermutation}) {
    rewrites.emplace_back([rewrite](ir::Node* node) -> Result<bool> {
      if (!aten::isOperator(node) || !tooManyDimensions(*node)) return false;
      const bool reshape = ir::isa<aten::View>(node) || ir::isa<aten::Reshape>(node);
      return reshape ? Result<bool>(false) : rewrite(node);
    });
  }
}

}  // namespace carina::decompose
