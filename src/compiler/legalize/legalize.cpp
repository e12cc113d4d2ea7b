// SPDX-License-Identifier: Apache-2.0
// The driver of legalization (legalize.hpp): walks the TOSA graph, keeps the values, and selects the function
// for each operator.
#include "compiler/legalize/legalize.hpp"

#include <algorithm>

#include "compiler/legalize/fold_zeros.hpp"
#include "compiler/legalize/legalizer.hpp"
#include "ir/invalid_node.hpp"
#include "ir/verifier.hpp"

namespace carina::compiler {

using npu_ir::ElementwiseMode;
using tosa::OpId;

int64_t constantValue(const ir::Value* value) {
  CARINA_CHECK(value->isConstant() && value->numElements() >= 1, "operand is not constant");
  return value->constant().integerAt(0);
}

ir::Ints constantValues(const ir::Value* value) {
  CARINA_CHECK(value->isConstant(), "operand is not constant");
  ir::Ints values;
  for (int64_t i = 0; i < value->numElements(); ++i) values.push_back(value->constant().integerAt(i));
  return values;
}

Result<ir::Graph> Legalizer::run() {
  result_.name = tosa_.name;
  for (const ir::Value* input : tosa_.inputs()) {
    ir::Value* value = result_.addInput(input->type, input->name);
    value->quantization = input->quantization;
    values_[input] = value;
  }
  for (ir::Node* node : tosa_.nodes()) {
    // Deferred, or absorbed by a preceding operator.
    if (isPutOff(node) || bytes_.isInside(node) || functions_.isInside(node) || tables_.isInside(node) ||
        (!node->results().empty() && values_.contains(node->result())))
      continue;
    CARINA_RETURN_IF_ERROR(lower(node));
  }
  std::vector<ir::Value*> outputs;
  for (const ir::Value* output : tosa_.outputs()) {
    CARINA_TRY(ir::Value * value, get(output));
    outputs.push_back(value);
  }
  result_.setOutputs(std::move(outputs));
  foldZeros(result_);
  if (!npu().wideResults) {
    for (const ir::Node* node : result_.nodes()) {
      if (dtypeSize(node->result()->dtype()) <= 4) continue;
      return fail(Code::NoIntegerForm,
                  "the 48-bit result of {} is not rescaled immediately, and {} cannot store it",
                  node->where(), npu::familyName(target_.family))
          .at(node->where())
          .withRemedy("make a single RESCALE the only use of its result");
    }
  }
  CARINA_RETURN_IF_ERROR(ir::verify(result_));
  return std::move(result_);
}

Status Legalizer::lower(ir::Node* node) {
  builder_ = ir::Builder(result_, nullptr, node->location());
  for (const ir::Value* operand : node->operands()) {
    if (operand && isFloat(operand->dtype())) {
      return fail(Code::WrongElementType, "{} has an operand of type {}, but the NPU computes with integers",
                  node->opName(), dtypeName(operand->dtype()))
          .at(node->where())
          .withRemedy("quantize the network");
    }
  }
  Status status = ir::rejectInvalidNodes(node->where(), [&] { return dispatch(node); });
  if (!status.ok()) return std::move(status).error().at(node->where());
  return {};
}

Result<ir::Value*> Legalizer::get(const ir::Value* value) {
  if (auto found = values_.find(value); found != values_.end()) return found->second;
  if (value->isConstant()) {
    ir::Value* copy = result_.addConstant(value->constant());
    values_[value] = copy;
    return copy;
  }
  const ir::Builder saved = builder_;
  CARINA_RETURN_IF_ERROR(lower(value->producer()));
  builder_ = saved;
  return values_.at(value);
}

void Legalizer::define(const ir::Value* value, ir::Value* npu, std::vector<ir::Node*> operations) {
  // The operation carries the name of the last TOSA value that its result represents.
  if (operations.size() == 1) {
    operations.front()->result()->name = value->name;
  } else if (npu->name.empty() && npu->producer()) {
    npu->name = value->name;
  }
  ir::Value* shaped = npu_ir::createReshape(builder_, npu, value->shape());
  if (shaped->dtype() != value->dtype()) {
    // Unsigned values and masks: TOSA's values are signless.
    shaped = npu_ir::createView(builder_, shaped, value->dtype(), value->shape(), 0,
                                rowMajorStrides(value->shape()));
  }
  if (!shaped->quantization) shaped->quantization = value->quantization;
  CARINA_CHECK(shaped->numElements() == value->numElements(), "a value has changed its size");
  values_[value] = shaped;
  operations_[value] = std::move(operations);
}

std::vector<ir::Node*>* Legalizer::fusable(const ir::Value* value) {
  if (!hasOneReader(value)) return nullptr;
  const auto found = operations_.find(value);
  if (found == operations_.end() || found->second.empty()) return nullptr;
  return &found->second;
}

void Legalizer::retype(ir::Value* value, DType type) {
  value->type.dtype = type;
  const ir::Node* producer = value->producer();
  if (!producer || npu_ir::hasOutputStage(producer)) return;
  for (ir::Value* operand : producer->operands()) retype(operand, type);
}

ir::Value* Legalizer::scalarConstant(DType type, int64_t value) {
  Tensor tensor = Tensor::zeros(type, {1, 1, 1});
  tensor.setIntegerAt(0, value);
  return constant(std::move(tensor));
}

bool Legalizer::isPutOff(const ir::Node* node) const {
  // Lowered when the values are needed: what elementwise operations may read through, and what only
  // convolutions read, which accept bytes.
  const auto rescale = ir::dynCast<tosa::Rescale>(node);
  if (!rescale) return false;
  if (rescale.output()->dtype() == DType::Int32) return dtypeSize(rescale.input()->dtype()) <= 2;
  const auto& uses = rescale.output()->uses();
  return makesSigned(rescale) && !uses.empty() &&
         std::all_of(uses.begin(), uses.end(), [](const ir::Use& use) {
           return ir::isa<tosa::Conv2d>(use.node) || ir::isa<tosa::DepthwiseConv2d>(use.node);
         });
}

ir::Value* Legalizer::image(ir::Value* value, int64_t n) {
  CARINA_CHECK(value->rank() == 4, "images have four dimensions");
  const Shape size{value->dim(1), value->dim(2), value->dim(3)};
  if (value->dim(0) == 1) return npu_ir::createReshape(builder_, value, size);
  const Shape strides = rowMajorStrides(value->shape());
  return npu_ir::createView(builder_, value, value->dtype(), size, n * strides[0],
                            {strides[1], strides[2], strides[3]});
}

ir::Value* Legalizer::images(const std::vector<ir::Value*>& parts) {
  const Shape& one = parts.front()->shape();
  Shape shape{static_cast<int64_t>(parts.size()), one[0], one[1], one[2]};
  if (parts.size() == 1) return parts.front();
  const Shape strides = rowMajorStrides(shape);
  std::vector<npu_ir::Piece> pieces;
  for (size_t n = 0; n < parts.size(); ++n) {
    pieces.push_back({parts[n], static_cast<int64_t>(n) * strides[0], {strides[1], strides[2], strides[3]}});
  }
  return npu_ir::createJoin(builder_, pieces, {parts.front()->dtype(), std::move(shape)});
}

Result<ir::Value*> Legalizer::asMap(ir::Value* value) {
  Shape shape = value->shape();
  while (shape.size() > 3 && shape.front() == 1) shape.erase(shape.begin());
  while (shape.size() < 3) shape.insert(shape.begin(), 1);
  while (shape.size() > 3) {
    shape[1] *= shape[0];
    shape.erase(shape.begin());
  }
  if (std::any_of(shape.begin(), shape.end(), [](int64_t size) { return size > kMaxAxis; })) {
    // Any split will do: only the order of elements matters.
    const int64_t count = value->numElements();
    shape.clear();
    for (int64_t depth = std::min<int64_t>(count, kMaxAxis); depth > 0 && shape.empty(); --depth) {
      if (count % depth != 0) continue;
      for (int64_t width = std::min(count / depth, kMaxAxis); width > 0; --width) {
        if (count / depth % width == 0 && count / depth / width <= kMaxAxis) {
          shape = {count / depth / width, width, depth};
          break;
        }
      }
    }
    if (shape.empty())
      return fail(Code::HardwareLimit, "{} elements cannot be split into axes of at most 65536", count);
  }
  return npu_ir::createReshape(builder_, value, std::move(shape));
}

Status Legalizer::dispatch(ir::Node* node) {
  if (!tosa::isOperator(node))
    return fail(Code::UnknownOperator, "{} is not a TOSA operator", node->opName());
  if (const auto* match = bytes_.at(node)) return lowerByteFunction(*node, *match);
  if (const auto* match = functions_.at(node)) return lowerWideFunction(*node, *match);
  if (const auto* match = tables_.at(node)) return lowerWideTable(*node, *match);
  switch (tosa::opId(node)) {
    case OpId::Conv2d:
      return lowerConv2d(tosa::Conv2d(node));
    case OpId::DepthwiseConv2d:
      return lowerDepthwise(tosa::DepthwiseConv2d(node));
    case OpId::Conv3d:
      return lowerConv3d(tosa::Conv3d(node));
    case OpId::TransposeConv2d:
      return lowerTransposeConv2d(tosa::TransposeConv2d(node));
    case OpId::AvgPool2d:
      return lowerAvgPool(tosa::AvgPool2d(node));
    case OpId::MaxPool2d:
      return lowerMaxPool(tosa::MaxPool2d(node));
    case OpId::Matmul:
      return lowerMatmul(node);
    case OpId::Argmax:
      return lowerArgmax(node);
    case OpId::Rescale:
      return lowerRescale(tosa::Rescale(node));
    case OpId::Clamp:
      return lowerClamp(tosa::Clamp(node));
    case OpId::Table:
      return lowerTable(tosa::Table(node));
    case OpId::Cast:
      return lowerCast(node);
    case OpId::Add:
      return lowerBinary(node, ElementwiseMode::ADD);
    case OpId::Sub:
      return lowerBinary(node, ElementwiseMode::SUB);
    case OpId::Maximum:
      return lowerBinary(node, ElementwiseMode::MAX);
    case OpId::Minimum:
      return lowerBinary(node, ElementwiseMode::MIN);
    case OpId::Mul:
      return lowerMul(node);
    case OpId::Abs:
      return lowerUnary(node, ElementwiseMode::ABS);
    case OpId::Clz:
      return lowerUnary(node, ElementwiseMode::CLZ);
    case OpId::BitwiseNot:
      return lowerBitwiseNot(node);
    case OpId::Negate:
      return lowerNegate(node);
    case OpId::Intdiv:
      return lowerBinary(node, ElementwiseMode::DIV);
    case OpId::BitwiseAnd:
      return lowerBitwise(node, ElementwiseMode::AND);
    case OpId::BitwiseOr:
      return lowerBitwise(node, ElementwiseMode::OR);
    case OpId::BitwiseXor:
      return lowerBitwise(node, ElementwiseMode::XOR);
    case OpId::LogicalAnd:
      return lowerLogical(node, ElementwiseMode::AND);
    case OpId::LogicalOr:
      return lowerLogical(node, ElementwiseMode::OR);
    case OpId::LogicalXor:
      return lowerLogical(node, ElementwiseMode::XOR);
    case OpId::LogicalNot:
      return lowerLogicalNot(node);
    case OpId::Equal:
      return lowerComparison(node, ElementwiseMode::CMP_EQ);
    case OpId::Greater:
      return lowerComparison(node, ElementwiseMode::CMP_GT);
    case OpId::GreaterEqual:
      return lowerComparison(node, ElementwiseMode::CMP_GE);
    case OpId::Select:
      return lowerSelect(node);
    case OpId::ArithmeticRightShift:
    case OpId::LogicalLeftShift:
    case OpId::LogicalRightShift:
      return lowerShift(node);
    case OpId::ReduceSum:
      return lowerReduceSum(node);
    case OpId::ReduceMax:
      return lowerReduceExtremum(node, true);
    case OpId::ReduceMin:
      return lowerReduceExtremum(node, false);
    case OpId::ReduceAll:
      return lowerReduceBool(node, true);
    case OpId::ReduceAny:
      return lowerReduceBool(node, false);
    case OpId::Reshape:
    case OpId::Identity:
      return lowerReshape(node);
    case OpId::Transpose:
      return lowerTranspose(node);
    case OpId::Concat:
      return lowerConcat(node);
    case OpId::Slice:
      return lowerSlice(node);
    case OpId::Pad:
      return lowerPad(node);
    case OpId::Tile:
      return lowerTile(node);
    case OpId::Reverse:
      return lowerReverse(node);
    case OpId::Gather:
      return lowerGather(node);
    case OpId::Scatter:
      return lowerScatter(node);
    case OpId::Resize:
      return lowerResize(node);
    default:
      break;
  }
  return fail(Code::NoIntegerForm, "{} has no integer form that an NPU can run", node->opName())
      .withRemedy("keep it on the CPU");
}

Result<ir::Graph> legalize(const ir::Graph& tosa, const npu::Target& target) {
  return Legalizer(tosa, target).run();
}

}  // namespace carina::compiler
