// SPDX-License-Identifier: Apache-2.0
// einsum as matrix products: the dimensions of each operand are arranged in the order batch, own, summed.
#include "aten/einsum.hpp"

#include <algorithm>

#include "aten/ops.hpp"
#include "decompose/rewrites.hpp"

namespace carina::decompose {
namespace {

using Labels = std::vector<int>;

bool contains(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

/// A value with a label per dimension.
struct Term {
  ir::Value* value = nullptr;
  Labels labels;
};

class Contraction {
 public:
  Contraction(ir::Builder& b, const Shape& sizes) : b_(b), sizes_(sizes) {}

  /// Sums over the labels that are not in `kept`.
  Term summed(Term term, const Labels& kept) {
    ir::Ints dims;
    Labels left;
    for (size_t d = 0; d < term.labels.size(); ++d) {
      if (contains(kept, term.labels[d]))
        left.push_back(term.labels[d]);
      else
        dims.push_back(static_cast<int64_t>(d));
    }
    if (!dims.empty()) term.value = aten::SumDimIntList::create(b_, term.value, dims);
    return {term.value, std::move(left)};
  }

  /// The product of two terms, with the labels of `kept` that they have.
  Term product(const Term& x, const Term& y, const Labels& kept) {
    Labels wantedOfX = kept, wantedOfY = kept;
    wantedOfX.insert(wantedOfX.end(), y.labels.begin(), y.labels.end());
    wantedOfY.insert(wantedOfY.end(), x.labels.begin(), x.labels.end());
    const Term left = summed(x, wantedOfX), right = summed(y, wantedOfY);
    Labels batch, rows, columns, inner;
    for (int label : left.labels) {
      if (!contains(right.labels, label))
        rows.push_back(label);
      else
        (contains(kept, label) ? batch : inner).push_back(label);
    }
    for (int label : right.labels) {
      if (!contains(left.labels, label)) columns.push_back(label);
    }
    Labels result = batch;
    result.insert(result.end(), rows.begin(), rows.end());
    result.insert(result.end(), columns.begin(), columns.end());
    if (inner.empty()) {
      ir::Value* a = arranged(left, {batch, rows}, shapeOf({batch, rows}, columns.size()));
      Shape shape = shapeOf({batch}, rows.size());
      for (int label : columns) shape.push_back(sizeOf(label));
      ir::Value* c = arranged(right, {batch, columns}, shape);
      return {aten::MulTensor::create(b_, a, c), result};
    }
    const bool shared = !batch.empty();  // without a batch the second operand is a plain matrix
    const auto matrix = [&](const Labels& m, const Labels& n) {
      Shape shape{elements(m), elements(n)};
      if (shared) shape.insert(shape.begin(), elements(batch));
      return shape;
    };
    ir::Value* a = arranged(left, {batch, rows, inner}, matrix(rows, inner));
    ir::Value* c = arranged(right, {batch, inner, columns}, matrix(inner, columns));
    ir::Value* multiplied = aten::Matmul::create(b_, a, c);
    return {aten::View::create(b_, multiplied, shapeOf({result}, 0)), result};
  }

  ir::Value* inOrder(const Term& term, const Labels& order) {
    return arranged(term, {order}, shapeOf({order}, 0));
  }

 private:
  int64_t sizeOf(int label) const { return sizes_[static_cast<size_t>(label)]; }
  int64_t elements(const Labels& labels) const {
    int64_t count = 1;
    for (int label : labels) count *= sizeOf(label);
    return count;
  }
  Shape shapeOf(const std::vector<Labels>& groups, size_t ones) const {
    Shape shape;
    for (const Labels& group : groups) {
      for (int label : group) shape.push_back(sizeOf(label));
    }
    shape.insert(shape.end(), ones, 1);
    return shape;
  }

  /// The term with its dimensions in the order of the groups, viewed as `shape`.
  ir::Value* arranged(const Term& term, const std::vector<Labels>& groups, const Shape& shape) {
    ir::Ints order;
    Shape full;
    for (const Labels& group : groups) {
      for (int label : group) {
        order.push_back(std::find(term.labels.begin(), term.labels.end(), label) - term.labels.begin());
        full.push_back(sizeOf(label));
      }
    }
    ir::Value* value = term.value;
    if (!std::is_sorted(order.begin(), order.end())) value = aten::Permute::create(b_, value, order);
    if (value->shape() != full) value = aten::Expand::create(b_, value, full);
    if (value->shape() != shape) value = aten::View::create(b_, value, shape);
    return value;
  }

  ir::Builder& b_;
  const Shape& sizes_;
};

Result<ir::Value*> rewriteEinsum(ir::Builder& b, aten::Einsum op) {
  if (isQuantizedAsUnit(op) || op->result()->dtype() != DType::Float32) return nullptr;
  std::vector<Shape> shapes;
  for (const ir::Value* operand : op->operands()) shapes.push_back(operand->shape());
  CARINA_TRY(const aten::EinsumPlan plan, aten::parseEinsum(op.equation(), shapes));
  for (const Labels& labels : plan.operands) {
    Labels sorted = labels;
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) return nullptr;  // a diagonal
  }
  Labels result(plan.outputLabels);
  for (size_t i = 0; i < result.size(); ++i) result[i] = static_cast<int>(i);
  Contraction contraction(b, plan.sizes);
  Term term{op->operands()[0], plan.operands[0]};
  for (size_t i = 1; i < plan.operands.size(); ++i) {
    Labels kept = result;  // labels of the result or of a later operand
    for (size_t k = i + 1; k < plan.operands.size(); ++k)
      kept.insert(kept.end(), plan.operands[k].begin(), plan.operands[k].end());
    term = contraction.product(term, {op->operands()[i], plan.operands[i]}, kept);
  }
  term = contraction.summed(term, result);
  return contraction.inOrder(term, result);
}

}  // namespace

void addEinsumRewrites(std::vector<ir::Rewrite>& rewrites) {
  addRewrites(rewrites, rewriteEinsum);
}

}  // namespace carina::decompose
