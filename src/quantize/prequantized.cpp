// SPDX-License-Identifier: Apache-2.0
#include "quantize/prequantized.hpp"

#include <algorithm>

#include "aten/ops.hpp"
#include "quantize/constant_cones.hpp"

namespace carina::quantize {
namespace {

constexpr int64_t kShift = 128;  // from uint8 codes to int8 codes

// Constants
// ----------------------------------------------------------------------------------------------------

bool isQuantize(const ir::Node* node) {
  return ir::isa<aten::QuantizePerTensor>(node) || ir::isa<aten::QuantizePerChannel>(node) ||
         ir::isa<aten::QuantizePerTensorByTensor>(node) || ir::isa<aten::QuantizePerTensorByTensor2>(node);
}

bool isDequantize(const ir::Node* node) {
  return ir::isa<aten::DequantizePerTensor>(node) || ir::isa<aten::DequantizePerChannel>(node) ||
         ir::isa<aten::DequantizePerTensorByTensor>(node) ||
         ir::isa<aten::DequantizePerTensorByTensor2>(node);
}

/// Quantized constants, and scales and zero points that are computed from constants, become constants.
Status foldParameters(ir::Graph& graph) {
  const ConstantCones cones(graph);
  for (ir::Node* node : graph.nodes()) {
    if (isQuantize(node) && cones.isKnown(node->result())) {
      CARINA_TRY(Tensor codes, cones.contentsOf(node->result()));
      graph.replaceAllUses(node->result(), graph.addConstant(std::move(codes), node->result()->name));
    } else if (isQuantize(node) || isDequantize(node)) {
      for (size_t i = 1; i < node->operands().size(); ++i) {
        const ir::Value* operand = node->operands()[i];
        if (!operand || operand->isConstant() || !cones.isKnown(operand)) continue;
        CARINA_TRY(Tensor contents, cones.contentsOf(operand));
        node->setOperand(i, graph.addConstant(std::move(contents)));
      }
    }
  }
  graph.eraseDeadNodes();
  return {};
}

/// The value of a single-element constant.
std::optional<double> numberIn(const ir::Value* value) {
  if (!value->isConstant() || value->numElements() != 1) return std::nullopt;
  return value->constant().realAt(0);
}

struct Parameters {
  double scale = 1;
  int64_t zeroPoint = 0, low = 0, high = 0;
};

template <typename Op>
std::optional<Parameters> parametersOf(const Op& op) {
  const auto scale = numberIn(op.scale()), zeroPoint = numberIn(op.zeroPoint());
  if (!scale || !zeroPoint) return std::nullopt;
  Parameters p{*scale, static_cast<int64_t>(*zeroPoint)};
  if constexpr (std::is_same_v<std::decay_t<decltype(op.quantMin())>, ir::Value*>) {
    const auto low = numberIn(op.quantMin()), high = numberIn(op.quantMax());
    if (!low || !high) return std::nullopt;
    p.low = static_cast<int64_t>(*low), p.high = static_cast<int64_t>(*high);
  } else {
    p.low = op.quantMin(), p.high = op.quantMax();
  }
  return p;
}

/// Replaces nodes whose scale and zero point are single-element constant tensors by nodes with numbers.
template <typename Op>
void replaceByNumbers(ir::Graph& graph, ir::Node* node) {
  const Op op = ir::dynCast<Op>(node);
  const auto p = op ? parametersOf(op) : std::nullopt;
  if (!p) return;
  ir::Builder builder = ir::Builder::beforeNode(node);
  ir::Value* result = nullptr;
  if constexpr (std::is_same_v<Op, aten::QuantizePerTensorByTensor> ||
                std::is_same_v<Op, aten::QuantizePerTensorByTensor2>) {
    result = aten::QuantizePerTensor::create(builder, op.input(), p->scale, p->zeroPoint, p->low, p->high,
                                             op.dtype());
  } else {
    result = aten::DequantizePerTensor::create(builder, op.input(), p->scale, p->zeroPoint, p->low, p->high,
                                               op.dtype(), op.outDtype());
  }
  graph.replaceAllUses(node->result(), result);
  result->name = std::move(node->result()->name);
  graph.erase(node);
}

void replaceByNumbers(ir::Graph& graph) {
  for (ir::Node* node : graph.nodes()) {
    if (ir::isa<aten::QuantizePerTensorByTensor>(node))
      replaceByNumbers<aten::QuantizePerTensorByTensor>(graph, node);
    else if (ir::isa<aten::QuantizePerTensorByTensor2>(node))
      replaceByNumbers<aten::QuantizePerTensorByTensor2>(graph, node);
    else if (ir::isa<aten::DequantizePerTensorByTensor>(node))
      replaceByNumbers<aten::DequantizePerTensorByTensor>(graph, node);
    else if (ir::isa<aten::DequantizePerTensorByTensor2>(node))
      replaceByNumbers<aten::DequantizePerTensorByTensor2>(graph, node);
  }
}

// Linear
// -------------------------------------------------------------------------------------------------------

bool isDequantizedConstant(const ir::Value* value) {
  const ir::Node* node = value ? value->producer() : nullptr;
  return (ir::isa<aten::DequantizePerTensor>(node) || ir::isa<aten::DequantizePerChannel>(node)) &&
         node->operands()[0]->isConstant();
}

/// The matrix of which `value` is the transpose.
ir::Value* transposedOf(const ir::Value* value) {
  const ir::Node* node = value->producer();
  const bool transposes = ir::isa<aten::TransposeMatrix>(node) || ir::isa<aten::NumpyT>(node) ||
                          ir::isa<aten::MT>(node) || ir::isa<aten::Permute>(node) ||
                          ir::isa<aten::TransposeInt>(node);
  if (!transposes || value->rank() != 2) return nullptr;
  if (const auto op = ir::dynCast<aten::Permute>(node)) {
    const auto first = normalizeDim(op.dims()[0], 2);
    if (!first || *first != 1) return nullptr;
  }
  if (const auto op = ir::dynCast<aten::TransposeInt>(node);
      op && normalizeDim(op.dim0(), 2) == normalizeDim(op.dim1(), 2)) {
    return nullptr;
  }
  return node->operands()[0];
}

bool isReshape(const ir::Node* node) {
  return ir::isa<aten::View>(node) || ir::isa<aten::Reshape>(node);
}

/// The original [..., k] of `rows`, [n, k], if they were made by flattening its leading dimensions; else
/// null.
ir::Value* unflattenedRows(const ir::Value* rows) {
  const ir::Node* node = rows->producer();
  if (!isReshape(node)) return nullptr;
  ir::Value* input = node->operands()[0];
  return input->rank() > 0 && input->shape().back() == rows->shape().back() ? input : nullptr;
}

/// x weight^T + bias, over all leading dimensions of x.
void rewriteProduct(ir::Graph& graph, ir::Node* node, ir::Value* rows, ir::Value* product, ir::Value* bias) {
  ir::Value* weight = transposedOf(product);
  if (!weight || !isDequantizedConstant(weight) || rows->rank() != 2) return;
  if (bias && ((!bias->isConstant() && !isDequantizedConstant(bias)) || bias->rank() != 1 ||
               bias->dim(0) != weight->dim(0)))
    return;
  ir::Builder builder = ir::Builder::beforeNode(node);
  ir::Value* result = node->result();
  ir::Value* input = unflattenedRows(rows);
  ir::Node* reshape = result->hasOneUse() ? result->uses()[0].node : nullptr;
  Shape expected = input ? input->shape() : Shape{};
  if (input) expected.back() = weight->dim(0);
  if (input && reshape && isReshape(reshape) && reshape->result()->shape() == expected) {
    ir::Value* linear = aten::Linear::create(builder, input, weight, bias);
    graph.replaceAllUses(reshape->result(), linear);
    linear->name = std::move(reshape->result()->name);
    graph.erase(reshape);
  } else {
    ir::Value* linear = aten::Linear::create(builder, rows, weight, bias);
    graph.replaceAllUses(result, linear);
    linear->name = std::move(result->name);
  }
  graph.erase(node);
}

bool isOne(const ir::Attribute& value) {
  return ir::scalarReal(value) == 1;
}

void restoreLinears(ir::Graph& graph) {
  std::vector<ir::Node*> products;
  for (ir::Node* node : graph.nodes()) {
    if (ir::isa<aten::Addmm>(node) || ir::isa<aten::Mm>(node)) products.push_back(node);
  }
  for (ir::Node* node : products) {
    if (const auto op = ir::dynCast<aten::Addmm>(node)) {
      if (isOne(op.alpha()) && isOne(op.beta())) rewriteProduct(graph, node, op.mat1(), op.mat2(), op.self());
    } else {
      rewriteProduct(graph, node, node->operands()[0], node->operands()[1], nullptr);
    }
  }
  graph.eraseDeadNodes();
}

// uint8
// --------------------------------------------------------------------------------------------------------

ir::Value* int8Quantized(ir::Builder& builder, ir::Value* real, const aten::QuantizePerTensor& q) {
  return aten::QuantizePerTensor::create(builder, real, q.scale(), q.zeroPoint() - kShift,
                                         q.quantMin() - kShift, q.quantMax() - kShift, DType::Int8);
}

ir::Value* int8Dequantized(const ir::Builder& builder, ir::Value* codes, const aten::DequantizePerTensor& d) {
  return aten::DequantizePerTensor::create(builder, codes, d.scale(), d.zeroPoint() - kShift,
                                           d.quantMin() - kShift, d.quantMax() - kShift, DType::Int8);
}

Tensor shifted(const Tensor& codes) {
  Tensor result = Tensor::uninitialized(DType::Int8, codes.shape());
  const auto from = codes.as<uint8_t>();
  const auto to = result.mutableAs<int8_t>();
  for (size_t i = 0; i < from.size(); ++i) to[i] = static_cast<int8_t>(from[i] - kShift);
  return result;
}

/// quantize -> uint8 -> dequantize nodes become their int8 forms; other readers keep uint8 codes, converted
/// from the int8 ones.
void narrowQuantize(ir::Graph& graph, const aten::QuantizePerTensor& q) {
  std::vector<aten::DequantizePerTensor> readers;
  for (const ir::Use& use : q.output()->uses()) {
    if (const auto d = ir::dynCast<aten::DequantizePerTensor>(use.node)) readers.push_back(d);
  }
  ir::Builder builder = ir::Builder::beforeNode(q.node());
  ir::Value* codes = int8Quantized(builder, q.input(), q);
  for (const auto& d : readers) {
    ir::Value* real = int8Dequantized(ir::Builder::beforeNode(d.node()), codes, d);
    graph.replaceAllUses(d.output(), real);
    graph.erase(d.node());
  }
  if (q.output()->unused()) {
    codes->name = std::move(q.output()->name);
    graph.erase(q.node());
    return;
  }
  q.node()->setOperand(
      0, aten::DequantizePerTensor::create(builder, codes, q.scale(), q.zeroPoint() - kShift,
                                           q.quantMin() - kShift, q.quantMax() - kShift, DType::Int8));
}

/// dequantize nodes of uint8 codes that are constant or come from outside.
void narrowDequantize(ir::Graph& graph, const aten::DequantizePerTensor& d) {
  ir::Value* codes = d.input();
  if (codes->isConstant()) {
    ir::Builder builder = ir::Builder::beforeNode(d.node());
    ir::Value* real = int8Dequantized(builder, builder.constant(shifted(codes->constant())), d);
    graph.replaceAllUses(d.output(), real);
    graph.erase(d.node());
    return;
  }
  ir::Builder builder = ir::Builder::afterNode(d.node());
  auto q = aten::QuantizePerTensor::create(builder, d.output(), d.scale(), d.zeroPoint() - kShift,
                                           d.quantMin() - kShift, d.quantMax() - kShift, DType::Int8);
  ir::Value* real = int8Dequantized(builder, q.output(), d);
  graph.replaceAllUses(d.output(), real);
  q.node()->setOperand(0, d.output());
}

}  // namespace

Status settleParameters(ir::Graph& graph) {
  CARINA_RETURN_IF_ERROR(foldParameters(graph));
  replaceByNumbers(graph);
  graph.eraseUnusedConstants();
  return {};
}

Status normalizePrequantized(ir::Graph& graph) {
  CARINA_RETURN_IF_ERROR(settleParameters(graph));
  restoreLinears(graph);
  std::vector<aten::QuantizePerTensor> quantizes;
  for (ir::Node* node : graph.nodes()) {
    const auto q = ir::dynCast<aten::QuantizePerTensor>(node);
    if (q && q.dtype() == DType::UInt8 && q.input()->dtype() == DType::Float32) quantizes.push_back(q);
  }
  for (const auto& q : quantizes) narrowQuantize(graph, q);
  std::vector<aten::DequantizePerTensor> dequantizes;
  for (ir::Node* node : graph.nodes()) {
    const auto d = ir::dynCast<aten::DequantizePerTensor>(node);
    if (d && d.input()->dtype() == DType::UInt8 && d.output()->dtype() == DType::Float32)
      dequantizes.push_back(d);
  }
  for (const auto& d : dequantizes) narrowDequantize(graph, d);
  graph.eraseUnusedConstants();
  return {};
}

}  // namespace carina::quantize
