// SPDX-License-Identifier: Apache-2.0
// Annotation rules: the tables of what is fused, shared and observed.
#include "quantize/annotate.hpp"

#include <algorithm>
#include <numeric>
#include <span>

#include "aten/conv_op.hpp"
#include "aten/ops.hpp"

namespace carina::quantize {
namespace {

using aten::OpId;

/// Disjoint sets of value indices.
class Sets {
 public:
  size_t add() {
    parent_.push_back(parent_.size());
    return parent_.size() - 1;
  }
  size_t find(size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(size_t a, size_t b) { parent_[std::max(find(a), find(b))] = std::min(find(a), find(b)); }

 private:
  std::vector<size_t> parent_;
};

bool isWeightOperand(const ir::Node& node, size_t operand) {
  return (operand == WeightedOp::kWeightOperand || operand == WeightedOp::kBiasOperand) &&
         asWeighted(node).has_value();
}

/// A result that only a clamp reads, made by an operator that computes: the clamp limits its codes.
bool fusedIntoClamp(const ir::Value& value) {
  if (!value.hasOneUse() || !value.producer() || !isClamp(*value.uses()[0].node)) return false;
  const ir::Node& producer = *value.producer();
  return roleOf(producer) == Role::Own || (isClamp(producer) && fusedIntoClamp(*producer.operands()[0]));
}

class Annotator {
 public:
  explicit Annotator(const ir::Graph& graph) {
    for (ir::Node* node : graph.nodes()) visit(*node);
  }

  Annotation finish() {
    Annotation annotation;
    std::unordered_map<size_t, size_t> groupOfSet;
    for (size_t i = 0; i < values_.size(); ++i) {
      const auto [it, isNew] = groupOfSet.emplace(sets_.find(i), annotation.groups.size());
      if (isNew) annotation.groups.emplace_back();
      annotation.groups[it->second].push_back(values_[i]);
      annotation.groupOf[values_[i]] = it->second;
    }
    return annotation;
  }

 private:
  size_t indexOf(ir::Value* value) {
    const auto [it, isNew] = index_.emplace(value, values_.size());
    if (isNew) {
      values_.push_back(value);
      sets_.add();
    }
    return it->second;
  }

  void visit(const ir::Node& node) {
    const Role role = roleOf(node);
    if (role == Role::Float) return;
    std::vector<size_t> touched;
    for (size_t i = 0; i < node.operands().size(); ++i) {
      ir::Value* value = node.operands()[i];
      if (!value || value->dtype() != DType::Float32 || isWeightOperand(node, i) || fusedIntoClamp(*value))
        continue;
      touched.push_back(indexOf(value));
    }
    for (ir::Value* value : node.results()) {
      if (value->dtype() != DType::Float32 || fusedIntoClamp(*value)) continue;
      const size_t result = indexOf(value);
      if (role == Role::Shared) touched.push_back(result);
    }
    if (role == Role::Own) return;
    for (size_t i = 1; i < touched.size(); ++i) sets_.join(touched[0], touched[i]);
  }

  Sets sets_;
  std::vector<ir::Value*> values_;
  std::unordered_map<const ir::Value*, size_t> index_;
};

}  // namespace

bool isClamp(const ir::Node& node) {
  if (!aten::isOperator(&node)) return false;
  switch (aten::opId(&node)) {
    case OpId::Relu:
    case OpId::Relu6:
    case OpId::Hardtanh:
    case OpId::Clamp:
    case OpId::Clip:
    case OpId::ClampMin:
    case OpId::ClampMax:
      return true;
    default:
      return false;
  }
}

Role roleOf(const ir::Node& node) {
  if (!aten::isOperator(&node)) return Role::Float;
  switch (aten::opId(&node)) {
    case OpId::Conv1d:
    case OpId::Conv1dPadding:
    case OpId::Conv2d:
    case OpId::Conv2dPadding:
    case OpId::Conv3d:
    case OpId::Conv3dPadding:
    case OpId::ConvTranspose1d:
    case OpId::ConvTranspose2dInput:
    case OpId::ConvTranspose3dInput:
    case OpId::Convolution:
    case OpId::Linear:
      return asWeighted(node) ? Role::Own
                              : Role::Float;  // weights that are computed have no place in these operators

    case OpId::AddTensor:
    case OpId::AddScalar:
    case OpId::SubTensor:
    case OpId::SubScalar:
    case OpId::RsubTensor:
    case OpId::RsubScalar:
    case OpId::MulTensor:
    case OpId::MulScalar:
    case OpId::DivTensor:
    case OpId::DivScalar:
    case OpId::DivTensorMode:
    case OpId::DivScalarMode:
    case OpId::FloorDivide:
    case OpId::FloorDivideScalar:
    case OpId::RemainderTensor:
    case OpId::RemainderScalar:
    case OpId::FmodTensor:
    case OpId::FmodScalar:
    case OpId::Mm:
    case OpId::Bmm:
    case OpId::Matmul:
    case OpId::Addmm:
    case OpId::Baddbmm:
    case OpId::Sum:
    case OpId::SumDimIntList:
    case OpId::Mean:
    case OpId::MeanDim:
    case OpId::Cumsum:
    case OpId::Abs:
    case OpId::Neg:
    case OpId::Sign:
    case OpId::Sgn:
    case OpId::Ceil:
    case OpId::Floor:
    case OpId::Round:
    case OpId::Trunc:
    case OpId::Fix:
    case OpId::Frac:
    case OpId::Square:
    case OpId::Exp:
    case OpId::Exp2:
    case OpId::Expm1:
    case OpId::Log:
    case OpId::Log2:
    case OpId::Log10:
    case OpId::Log1p:
    case OpId::Sqrt:
    case OpId::Rsqrt:
    case OpId::Reciprocal:
    case OpId::Sin:
    case OpId::Cos:
    case OpId::Tan:
    case OpId::Asin:
    case OpId::Acos:
    case OpId::Atan:
    case OpId::Sinh:
    case OpId::Cosh:
    case OpId::Asinh:
    case OpId::Acosh:
    case OpId::Atanh:
    case OpId::Sigmoid:
    case OpId::Tanh:
    case OpId::Erf:
    case OpId::Erfc:
    case OpId::Logit:
    case OpId::Gelu:
    case OpId::Silu:
    case OpId::Mish:
    case OpId::Softplus:
    case OpId::LogSigmoid:
    case OpId::Hardsigmoid:
    case OpId::Hardswish:
    case OpId::LeakyRelu:
    case OpId::Elu:
    case OpId::Selu:
    case OpId::Celu:
    case OpId::Hardshrink:
    case OpId::Softshrink:
    case OpId::Threshold:
    case OpId::PowTensorScalar:
    case OpId::PowScalar:
    case OpId::Prelu:
    case OpId::PrivateSoftmax:
    case OpId::SoftmaxInt:
    case OpId::PrivateLogSoftmax:
    case OpId::LogSoftmaxInt:
      return Role::Own;

    case OpId::Relu:
    case OpId::Relu6:
    case OpId::Hardtanh:
    case OpId::Clamp:
    case OpId::Clip:
    case OpId::ClampMin:
    case OpId::ClampMax:
    case OpId::AdaptiveAvgPool1d:
    case OpId::AdaptiveAvgPool2d:
    case OpId::PrivateAdaptiveAvgPool2d:
    case OpId::AvgPool1d:
    case OpId::AvgPool2d:
    case OpId::MaxPool1d:
    case OpId::MaxPool2d:
    case OpId::MaxPool2dWithIndices:
    case OpId::AdaptiveMaxPool1d:
    case OpId::AdaptiveMaxPool2d:
    case OpId::UpsampleNearest1dVec:
    case OpId::UpsampleNearest2dVec:
    case OpId::PrivateUpsampleNearestExact2dVec:
    case OpId::UpsampleBilinear2dVec:
    case OpId::UpsampleLinear1dVec:
    case OpId::Cat:
    case OpId::Concat:
    case OpId::Concatenate:
    case OpId::Stack:
    case OpId::SplitTensor:
    case OpId::SplitSizes:
    case OpId::SplitWithSizes:
    case OpId::Chunk:
    case OpId::UnbindInt:
    case OpId::TensorSplitIndices:
    case OpId::TensorSplitSections:
    case OpId::SelectInt:
    case OpId::SliceTensor:
    case OpId::Narrow:
    case OpId::Flip:
    case OpId::Roll:
    case OpId::View:
    case OpId::Reshape:
    case OpId::PrivateUnsafeView:
    case OpId::ViewAs:
    case OpId::ReshapeAs:
    case OpId::FlattenUsingInts:
    case OpId::UnflattenInt:
    case OpId::Squeeze:
    case OpId::SqueezeDim:
    case OpId::SqueezeDims:
    case OpId::Unsqueeze:
    case OpId::Permute:
    case OpId::TransposeInt:
    case OpId::TransposeMatrix:
    case OpId::NumpyT:
    case OpId::MT:
    case OpId::Swapaxes:
    case OpId::MovedimInt:
    case OpId::MovedimIntlist:
    case OpId::Expand:
    case OpId::ExpandAs:
    case OpId::BroadcastTo:
    case OpId::Repeat:
    case OpId::Tile:
    case OpId::RepeatInterleaveSelfInt:
    case OpId::PixelShuffle:
    case OpId::PixelUnshuffle:
    case OpId::ChannelShuffle:
    case OpId::ConstantPadNd:
    case OpId::Pad:
    case OpId::ReflectionPad1d:
    case OpId::ReflectionPad2d:
    case OpId::ReplicationPad1d:
    case OpId::ReplicationPad2d:
    case OpId::Gather:
    case OpId::IndexSelect:
    case OpId::IndexTensor:
    case OpId::IndexPut:
    case OpId::Embedding:
    case OpId::SelectScatter:
    case OpId::SliceScatter:
    case OpId::ScatterSrc:
    case OpId::Unfold:
    case OpId::WhereSelf:
    case OpId::Tril:
    case OpId::Triu:
    case OpId::Maximum:
    case OpId::Minimum:
    case OpId::MaxOther:
    case OpId::MinOther:
    case OpId::Amax:
    case OpId::Amin:
    case OpId::MaxDim:
    case OpId::MinDim:
    case OpId::Clone:
    case OpId::Contiguous:
    case OpId::Alias:
    case OpId::Detach:
    case OpId::Dropout:
    case OpId::Copy:
      return Role::Shared;

    case OpId::EqTensor:
    case OpId::NeTensor:
    case OpId::LtTensor:
    case OpId::LeTensor:
    case OpId::GtTensor:
    case OpId::GeTensor:
    case OpId::EqScalar:
    case OpId::NeScalar:
    case OpId::LtScalar:
    case OpId::LeScalar:
    case OpId::GtScalar:
    case OpId::GeScalar:
    case OpId::Argmax:
      return Role::Compare;
    default:
      return Role::Float;
  }
}

std::optional<WeightedOp> asWeighted(const ir::Node& node) {
  WeightedOp weighted;
  if (const auto linear = ir::dynCast<aten::Linear>(&node)) {
    weighted = {linear.node(), linear.input(), linear.weight(), linear.bias(), 0};
  } else if (const auto conv = aten::asConvolution(&node)) {
    weighted = {conv->node, conv->input, conv->weight, conv->bias, conv->weightChannelAxis()};
  } else {
    return std::nullopt;
  }
  if (!weighted.weight->isConstant() || (weighted.bias && !weighted.bias->isConstant())) return std::nullopt;
  return weighted;
}

Annotation annotate(const ir::Graph& graph) {
  return Annotator(graph).finish();
}

}  // namespace carina::quantize
