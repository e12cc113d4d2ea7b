// SPDX-License-Identifier: Apache-2.0
#include "quantize/rms_norms.hpp"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <vector>

#include "aten/conv_op.hpp"
#include "aten/ops.hpp"
#include "quantize/annotate.hpp"
#include "quantize/whole_dim.hpp"

namespace carina::quantize {
namespace {

/// A constant operand whose mean along a dimension has to be removed.
struct CentredConstant {
  ir::Node* node = nullptr;
  size_t operand = 0;  // flat index
  int64_t dim = 0;     // of the constant
};

bool isRowNorm(const ir::Node& node) {
  const auto norm = ir::dynCast<aten::LayerNorm>(&node);
  return norm && !norm.weight() && !norm.bias() && norm.normalizedShape().size() == 1;
}

bool isSum(const ir::Node& node) {
  return ir::isa<aten::AddTensor>(&node) || ir::isa<aten::SubTensor>(&node);
}

bool isScaled(const ir::Node& node) {
  return ir::isa<aten::MulScalar>(&node) || ir::isa<aten::DivScalar>(&node);
}

/// The dimension along which a value must have zero mean, and the component that requires it.
struct Required {
  int64_t dim = 0;
  const void* by = nullptr;
};
using AllRequired = std::unordered_map<const ir::Value*, Required>;

/// All values that must have zero mean together: those connected to the rows of a norm by sums and views.
class Component {
 public:
  explicit Component(AllRequired& required) : required_(required) {}

  /// Whether this is possible for all of them. Values of another component that failed are not tried again.
  bool explore(ir::Value* rows) {
    require(rows, rows->rank() - 1);
    while (possible_ && !open_.empty()) {
      ir::Value* value = open_.back();
      open_.pop_back();
      const int64_t dim = required_.at(value).dim;
      possible_ = value->producer() && takesFrom(value->producer(), dim) && readAs(value, dim);
    }
    return possible_;
  }
  void clear() { constants_.clear(), norms_.clear(); }
  const std::vector<CentredConstant>& constants() const { return constants_; }
  const std::vector<ir::Node*>& norms() const { return norms_; }

 private:
  void require(ir::Value* value, int64_t dim) {
    const auto [known, isNew] = required_.emplace(value, Required{dim, this});
    if (isNew) open_.push_back(value);
    possible_ =
        possible_ && known->second.dim == dim && known->second.by == this && value->dtype() == DType::Float32;
  }

  bool takeConstant(ir::Node* node, size_t operand, int64_t dim, int64_t size) {
    const ir::Value* constant = node->operands()[operand];
    if (!constant->isConstant() || constant->dtype() != DType::Float32 || constant->dim(dim) != size)
      return false;
    constants_.push_back({node, operand, dim});
    return true;
  }

  /// Requires that the operand have zero mean along dimension `fromEnd` from the end, so that the node's
  /// result does.
  bool takeOperand(ir::Node* node, size_t operand, int64_t fromEnd, int64_t size) {
    ir::Value* value = node->operands()[operand];
    const int64_t dim = value->rank() - fromEnd;
    if (dim < 0 || value->dim(dim) != size) return false;
    if (value->isConstant()) return takeConstant(node, operand, dim, size);
    require(value, dim);
    return true;
  }

  bool takeLayer(ir::Node* node, const WeightedOp& layer, int64_t dim) {
    const auto conv = aten::asConvolution(node);
    const int64_t size = node->result()->dim(dim);
    return layer.channelDim() == dim && (!conv || conv->groups == 1) &&
           takeConstant(node, WeightedOp::kWeightOperand, layer.weightAxis, size) &&
           (!layer.bias || takeConstant(node, WeightedOp::kBiasOperand, 0, size));
  }

  /// What the producer must satisfy for its result to have zero mean along `dim`.
  bool takesFrom(ir::Node* node, int64_t dim) {
    const ir::Value* result = node->result(0);
    const int64_t size = result->dim(dim), fromEnd = result->rank() - dim;
    if (const auto layer = asWeighted(*node)) return takeLayer(node, *layer, dim);
    if (ir::isa<aten::Embedding>(node)) return fromEnd == 1 && takeConstant(node, 0, 1, size);
    if (isSum(*node)) return takeOperand(node, 0, fromEnd, size) && takeOperand(node, 1, fromEnd, size);
    if (isScaled(*node)) return takeOperand(node, 0, fromEnd, size);
    if (const auto cat = ir::dynCast<aten::Cat>(node)) {
      if (along(cat, result) == dim) return false;
      for (size_t i = 0; i < node->operands().size(); ++i) {
        if (!takeOperand(node, i, fromEnd, size)) return false;
      }
      return true;
    }
    const auto before = wholeDimBefore(*node, dim);
    return before &&
           takeOperand(node, before->operand, node->operands()[before->operand]->rank() - before->dim, size);
  }

  /// What the readers must satisfy.
  bool readAs(const ir::Value* value, int64_t dim) {
    if (value->uses().empty() || value->isGraphOutput()) return false;
    const int64_t fromEnd = value->rank() - dim;
    for (const ir::Use& use : value->uses()) {
      ir::Node* node = use.node;
      if (isRowNorm(*node) && fromEnd == 1) {
        norms_.push_back(node);
        continue;
      }
      if (node->results().size() != 1) return false;
      ir::Value* result = node->result(0);
      const auto cat = ir::dynCast<aten::Cat>(node);
      if (isSum(*node) || isScaled(*node) || (cat && along(cat, result) != dim)) {
        require(result, result->rank() - fromEnd);
        continue;
      }
      bool found = false;
      for (int64_t d = 0; !cat && !found && d < result->rank(); ++d) {
        const auto before = wholeDimBefore(*node, d);
        found = before && before->operand == use.operand && before->dim == dim;
        if (found) require(result, d);
      }
      if (!found) return false;
    }
    return true;
  }

  static int64_t along(const aten::Cat& cat, const ir::Value* result) {
    return cat.dim() < 0 ? cat.dim() + result->rank() : cat.dim();
  }

  AllRequired& required_;
  std::vector<ir::Value*> open_;
  std::vector<CentredConstant> constants_;
  std::vector<ir::Node*> norms_;
  bool possible_ = true;
};

Tensor centred(const Tensor& constant, int64_t dim) {
  Tensor result = Tensor::uninitialized(DType::Float32, constant.shape());
  const auto from = constant.as<float>();
  const auto to = result.mutableAs<float>();
  const auto size = static_cast<size_t>(constant.dim(dim));
  size_t inner = 1;
  for (int64_t d = dim + 1; d < constant.rank(); ++d) inner *= static_cast<size_t>(constant.dim(d));
  std::vector<double> means(inner);
  for (size_t row = 0; row < from.size(); row += size * inner) {
    std::fill(means.begin(), means.end(), 0.0);
    for (size_t at = row; at < row + size * inner; at += inner) {
      for (size_t i = 0; i < inner; ++i) means[i] += static_cast<double>(from[at + i]);
    }
    for (double& mean : means) mean /= static_cast<double>(size);
    for (size_t at = row; at < row + size * inner; at += inner) {
      for (size_t i = 0; i < inner; ++i)
        to[at + i] = static_cast<float>(static_cast<double>(from[at + i]) - means[i]);
    }
  }
  return result;
}

void centre(ir::Graph& graph, const Component& component) {
  for (const CentredConstant& constant : component.constants()) {
    const Tensor& before = constant.node->operands()[constant.operand]->constant();
    constant.node->setOperand(constant.operand, graph.addConstant(centred(before, constant.dim)));
  }
  for (ir::Node* node : component.norms()) {
    const auto norm = ir::cast<aten::LayerNorm>(node);
    ir::Value* by = aten::RmsNorm::create(ir::Builder::beforeNode(node), norm.input(), nullptr,
                                          norm.normalizedShape(), norm.eps());
    std::swap(by->name, node->result(0)->name);
    graph.replaceAllUses(node->result(0), by);
    graph.erase(node);
  }
}

}  // namespace

Status useRmsNorms(ir::Graph& graph) {
  AllRequired required;
  std::vector<std::unique_ptr<Component>> components;
  for (const ir::Node* node : graph.nodes()) {
    if (!isRowNorm(*node) || required.count(node->operands()[0]) != 0) continue;
    components.push_back(std::make_unique<Component>(required));
    if (!components.back()->explore(node->operands()[0])) components.back()->clear();
  }
  for (const auto& component : components) centre(graph, *component);
  graph.eraseUnusedConstants();
  return {};
}

}  // namespace carina::quantize
