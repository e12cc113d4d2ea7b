// SPDX-License-Identifier: Apache-2.0
#include "lower_tfl/to_aten.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "aten/ops.hpp"
#include "ir/invalid_node.hpp"
#include "lower_tfl/lower.hpp"
#include "tfl/geometry.hpp"

namespace carina::lower_tfl {
namespace {

using ToAten = Result<ir::Value*> (*)(ir::Builder&, const ir::Node&);

Result<ir::Value*> activated(ir::Builder& builder, ir::Value* value, tfl::Activation activation) {
  switch (activation) {
    case tfl::Activation::NONE:
      return value;
    case tfl::Activation::RELU:
      return aten::Relu::create(builder, value);
    case tfl::Activation::RELU6:
      return aten::Clamp::create(builder, value, 0.0, 6.0);
    case tfl::Activation::RELU_N1_TO_1:
      return aten::Clamp::create(builder, value, -1.0, 1.0);
    case tfl::Activation::TANH:
      return aten::Tanh::create(builder, value);
    case tfl::Activation::SIGN_BIT:
      break;
  }
  return fail(Code::NoIntegerForm, "its fused activation is not supported on the CPU");
}

template <typename Op>
Result<ir::Value*> unary(ir::Builder& builder, const ir::Node& node) {
  return Op::create(builder, node.operand(0));
}
template <typename Op>
Result<ir::Value*> binary(ir::Builder& builder, const ir::Node& node) {
  return Op::create(builder, node.operand(0), node.operand(1));
}
/// With a fused activation, which is the first attribute.
template <typename Op>
Result<ir::Value*> arithmetic(ir::Builder& builder, const ir::Node& node) {
  ir::Value* result = Op::create(builder, node.operand(0), node.operand(1));
  return activated(builder, result, static_cast<tfl::Activation>(node.attributeAs<int64_t>(0)));
}
template <int64_t kLow, int64_t kHigh>
Result<ir::Value*> clamp(ir::Builder& builder, const ir::Node& node) {
  return aten::Clamp::create(builder, node.operand(0), static_cast<double>(kLow), static_cast<double>(kHigh));
}

Result<ir::Value*> view(ir::Builder& builder, const ir::Node& node) {
  return aten::View::create(builder, node.operand(0), node.result()->shape());
}

Result<ir::Value*> softmax(ir::Builder& builder, const ir::Node& node) {
  ir::Value* input = node.operand(0);
  const auto beta = ir::cast<tfl::Softmax>(&node).beta();
  if (beta != 1)
    input = aten::MulTensor::create(
        builder, input,
        builder.graph().addConstant(Tensor::from({1}, std::vector<float>{static_cast<float>(beta)})));
  return aten::PrivateSoftmax::create(builder, input, -1, false);
}

Result<ir::Value*> logSoftmax(ir::Builder& builder, const ir::Node& node) {
  return aten::PrivateLogSoftmax::create(builder, node.operand(0), -1, false);
}

Result<ir::Value*> fullyConnected(ir::Builder& builder, const ir::Node& node) {
  const auto op = ir::cast<tfl::FullyConnected>(&node);
  if (op.weightsFormat() != 0) return fail(Code::UnsupportedForm, "its weights are shuffled");
  const int64_t depth = op.filter()->dim(1);
  ir::Value* rows = aten::View::create(builder, op.input(), {op.input()->numElements() / depth, depth});
  ir::Value* sums = aten::Linear::create(builder, rows, op.filter(), op.bias());
  CARINA_TRY(ir::Value * result, activated(builder, sums, op.fusedActivationFunction()));
  return aten::View::create(builder, result, node.result()->shape());
}

/// A convolution over a feature map [n, h, w, c] with a filter [outputs, h, w, depth].
template <typename Op>
Result<ir::Value*> convolved(ir::Builder& builder, const Op& op, ir::Value* filter, int64_t groups) {
  const ir::Value* input = op.input();
  CARINA_TRY(const tfl::WindowAxis rows, tfl::windowAxis(op.padding(), input->dim(1), filter->dim(2),
                                                         op.strideH(), op.dilationHFactor()));
  CARINA_TRY(const tfl::WindowAxis columns, tfl::windowAxis(op.padding(), input->dim(2), filter->dim(3),
                                                            op.strideW(), op.dilationWFactor()));
  ir::Value* map = aten::Permute::create(builder, op.input(), {0, 3, 1, 2});
  map = aten::ConstantPadNd::create(
      builder, map,
      {columns.before, std::max<int64_t>(columns.after, 0), rows.before, std::max<int64_t>(rows.after, 0)},
      0.0);
  ir::Value* sums =
      aten::Convolution::create(builder, map, filter, op.bias(), {op.strideH(), op.strideW()}, {0, 0},
                                {op.dilationHFactor(), op.dilationWFactor()}, false, {0, 0}, groups);
  ir::Value* result = aten::Permute::create(builder, sums, {0, 2, 3, 1});
  return activated(builder, result, op.fusedActivationFunction());
}

Result<ir::Value*> conv2d(ir::Builder& builder, const ir::Node& node) {
  const auto op = ir::cast<tfl::Conv2d>(&node);
  ir::Value* filter = aten::Permute::create(builder, op.filter(), {0, 3, 1, 2});
  return convolved(builder, op, filter, op.input()->dim(3) / op.filter()->dim(3));
}

Result<ir::Value*> depthwiseConv2d(ir::Builder& builder, const ir::Node& node) {
  const auto op = ir::cast<tfl::DepthwiseConv2d>(&node);
  ir::Value* filter = aten::Permute::create(builder, op.filter(), {3, 0, 1, 2});
  return convolved(builder, op, filter, op.input()->dim(3));
}

Result<ir::Value*> quantize(ir::Builder& builder, const ir::Node& node) {
  const bool to = isFloat(node.operand(0)->dtype());
  ir::Value* codes = to ? node.result() : node.operand(0);
  if (isFloat(codes->dtype()) || !isFloat((to ? node.operand(0) : node.result())->dtype()))
    return fail(Code::NoIntegerForm, "it converts {} to {}", ir::typeText(node.operand(0)->type),
                ir::typeText(node.result()->type));
  if (!codes->quantization || codes->quantization->perChannel())
    return fail(Code::UnusableQuantization, "'{}' has no per-tensor scale", codes->name);
  const double scale = codes->quantization->scales[0];
  const int64_t zero = codes->quantization->zeroPoints[0];
  const DType dtype = codes->dtype();
  if (to) {
    return aten::QuantizePerTensor::create(builder, node.operand(0), scale, zero, integerMin(dtype),
                                           integerMax(dtype), dtype);
  }
  return aten::DequantizePerTensor::create(builder, node.operand(0), scale, zero, integerMin(dtype),
                                           integerMax(dtype), dtype);
}

Result<ir::Value*> cast(ir::Builder& builder, const ir::Node& node) {
  return aten::ToDtype::create(builder, node.operand(0), node.result()->dtype());
}

const std::unordered_map<const ir::OpDef*, ToAten>& floatForms() {
  static const std::unordered_map<const ir::OpDef*, ToAten> kForms = {
      {&tfl::Add::def(), arithmetic<aten::AddTensor>},
      {&tfl::Sub::def(), arithmetic<aten::SubTensor>},
      {&tfl::Mul::def(), arithmetic<aten::MulTensor>},
      {&tfl::Div::def(), arithmetic<aten::DivTensor>},
      {&tfl::Maximum::def(), binary<aten::Maximum>},
      {&tfl::Minimum::def(), binary<aten::Minimum>},
      {&tfl::Relu::def(), unary<aten::Relu>},
      {&tfl::Relu6::def(), clamp<0, 6>},
      {&tfl::ReluN1To1::def(), clamp<-1, 1>},
      {&tfl::Relu0To1::def(), clamp<0, 1>},
      {&tfl::Logistic::def(), unary<aten::Sigmoid>},
      {&tfl::Tanh::def(), unary<aten::Tanh>},
      {&tfl::Exp::def(), unary<aten::Exp>},
      {&tfl::Log::def(), unary<aten::Log>},
      {&tfl::Sqrt::def(), unary<aten::Sqrt>},
      {&tfl::Rsqrt::def(), unary<aten::Rsqrt>},
      {&tfl::Neg::def(), unary<aten::Neg>},
      {&tfl::Abs::def(), unary<aten::Abs>},
      {&tfl::HardSwish::def(), unary<aten::Hardswish>},
      {&tfl::Softmax::def(), softmax},
      {&tfl::LogSoftmax::def(), logSoftmax},
      {&tfl::FullyConnected::def(), fullyConnected},
      {&tfl::Conv2d::def(), conv2d},
      {&tfl::DepthwiseConv2d::def(), depthwiseConv2d},
      {&tfl::Quantize::def(), quantize},
      {&tfl::Dequantize::def(), quantize},
      {&tfl::Cast::def(), cast},
  };
  return kForms;
}

/// Whether the operator has one result and is float32 throughout; absent operands do not count.
bool isFloatOnly(const ir::Node& node) {
  const auto is = [](const ir::Value* value) { return !value || value->dtype() == DType::Float32; };
  const auto& operands = node.operands();
  return node.results().size() == 1 && is(node.result()) && std::all_of(operands.begin(), operands.end(), is);
}

bool isQuantized(const ir::Value& value) {
  return value.quantization.has_value() && !isFloat(value.dtype());
}

/// Whether the operator computes with quantized 8-bit codes: per tensor for operands, possibly per channel
/// for constants. With 16 bits, kernels of TensorFlow Lite are many codes off from real arithmetic.
bool computesWithCodes(const ir::Node& node) {
  const auto isByte = [](const ir::Value& value) {
    return isQuantized(value) && dtypeSize(value.dtype()) == 1;
  };
  // Operators that the file describes incompletely have no results.
  if (node.results().size() != 1 || !isByte(*node.result()) || node.result()->quantization->perChannel())
    return false;
  return std::all_of(node.operands().begin(), node.operands().end(), [&](const ir::Value* operand) {
    return !operand || operand->dtype() == DType::Float32 ||
           (operand->isConstant() && isQuantized(*operand)) ||
           (isByte(*operand) && !operand->quantization->perChannel());
  });
}

/// The real values of a quantized constant.
ir::Value* realConstant(ir::Graph& graph, const ir::Value& codes) {
  const ir::Quantization& quantization = *codes.quantization;
  std::vector<float> reals;
  int64_t inner = 1;  // consecutive elements with one scale
  if (quantization.perChannel()) {
    for (int64_t dim = quantization.axis + 1; dim < codes.rank(); ++dim) inner *= codes.dim(dim);
  }
  const auto count = static_cast<int64_t>(quantization.scales.size());
  for (int64_t i = 0; i < codes.numElements(); ++i) {
    const auto channel = static_cast<size_t>(i / inner % count);
    const int64_t zero = quantization.zeroPoints[quantization.zeroPoints.size() == 1 ? 0 : channel];
    reals.push_back(static_cast<float>(codes.constant().integerAt(i) - zero) *
                    static_cast<float>(quantization.scales[channel]));
  }
  return graph.addConstant(Tensor::from(codes.shape(), reals));
}

/// Converts the operands and the result of an operator on codes to real numbers.
void toReals(ir::Graph& graph, ir::Builder& builder, ir::Node& node) {
  for (size_t i = 0; i < node.operands().size(); ++i) {
    ir::Value* operand = node.operand(i);
    if (!operand || !isQuantized(*operand)) continue;
    const ir::Quantization& q = *operand->quantization;
    const DType dtype = operand->dtype();
    node.setOperand(i, operand->isConstant()
                           ? realConstant(graph, *operand)
                           : aten::DequantizePerTensor::create(builder, operand, q.scales[0], q.zeroPoints[0],
                                                               integerMin(dtype), integerMax(dtype), dtype));
  }
  node.result()->type.dtype = DType::Float32;
}

ir::Value* toCodes(ir::Builder& builder, ir::Value* reals, const ir::Quantization& q, DType dtype) {
  return aten::QuantizePerTensor::create(builder, reals, q.scales[0], q.zeroPoints[0], integerMin(dtype),
                                         integerMax(dtype), dtype);
}

Status replace(ir::Graph& graph, ir::Node& node) {
  const bool converts =
      ir::isa<tfl::Quantize>(&node) || ir::isa<tfl::Dequantize>(&node) || ir::isa<tfl::Cast>(&node);
  const bool views =
      ir::isa<tfl::Reshape>(&node) || ir::isa<tfl::Squeeze>(&node) || ir::isa<tfl::ExpandDims>(&node);
  const auto known = floatForms().find(&node.def());
  const bool codes = !views && !converts && computesWithCodes(node);
  if (!views && (known == floatForms().end() || (!converts && !codes && !isFloatOnly(node)))) {
    return fail(Code::NoIntegerForm, "{} is not supported on the CPU", node.opName().substr(4));
  }
  ir::Builder builder(graph, &node, node.location());
  const DType dtype = node.result()->dtype();
  if (codes) toReals(graph, builder, node);
  CARINA_TRY(ir::Value * value, views ? view(builder, node) : known->second(builder, node));
  if (value->type != node.result()->type)
    return fail(Code::InvalidOperator, "the file declares its result as {}, but the operator produces {}",
                ir::typeText(node.result()->type), ir::typeText(value->type));
  if (codes) value = toCodes(builder, value, *node.result()->quantization, dtype);
  const std::string name = std::exchange(node.result()->name, "");
  value->quantization = node.result()->quantization;
  graph.replaceAllUses(node.result(), value);
  value->name = name;
  graph.erase(&node);
  return {};
}

}  // namespace

Status toAten(ir::Graph& graph) {
  std::vector<Diagnostic> problems;
  for (ir::Node* node : graph.nodes()) {
    if (!node->opName().starts_with("tfl.")) continue;
    const std::string place = placeOf(*node);
    const Status status = ir::rejectInvalidNodes(place, [&] { return replace(graph, *node); });
    if (status.ok()) continue;
    const Error error = Error(status.error()).at(place);
    problems.insert(problems.end(), error.diagnostics().begin(), error.diagnostics().end());
  }
  if (!problems.empty()) return Error(std::move(problems));
  return {};
}

}  // namespace carina::lower_tfl
