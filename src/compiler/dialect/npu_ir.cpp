// SPDX-License-Identifier: Apache-2.0
// Builders and accessors of the npu dialect (npu_ir.hpp).
#include "compiler/dialect/npu_ir.hpp"

#include <algorithm>

#include "compiler/dialect/coded_weights.hpp"

namespace carina::npu_ir {
namespace {

// The output stage's attributes lead every operator's list; its table is the last operand group
// (npu_ops.json).
enum StageAttribute : size_t {
  kMultipliers,
  kShifts,
  kRounding,
  kOfmZeroPoint,
  kClamp,
  kTableKind,
  kStageEnd
};
// The window's attributes follow in CONV, DEPTHWISE and POOL.
enum WindowAttribute : size_t {
  kKernel = kStageEnd,
  kStride,
  kDilation,
  kPad,
  kUpscale,
  kIfmZeroPoint,
  kWindowEnd
};

template <typename... Values>
void append(std::vector<ir::Attribute>& attributes, Values&&... values) {
  (attributes.emplace_back(std::forward<Values>(values)), ...);
}
template <typename... Values>
std::vector<ir::Attribute> attributeList(Values&&... values) {
  std::vector<ir::Attribute> attributes;
  attributes.reserve(sizeof...(values) + 8);
  append(attributes, std::forward<Values>(values)...);
  return attributes;
}

std::vector<ir::Attribute> stageAttributes(const OutputStage& stage) {
  ir::Ints clamp;
  if (stage.clamp) clamp = {stage.clamp->first, stage.clamp->second};
  return attributeList(stage.multipliers, stage.shifts, static_cast<int64_t>(stage.rounding), stage.zeroPoint,
                       std::move(clamp), static_cast<int64_t>(stage.tableKind));
}

void appendWindow(std::vector<ir::Attribute>& attributes, const Window& window) {
  append(attributes, window.kernel, window.stride, window.dilation, window.pad,
         static_cast<int64_t>(window.upscale), window.ifmZeroPoint);
}

std::vector<ir::Value*> optional(ir::Value* value) {
  return value ? std::vector<ir::Value*>{value} : std::vector<ir::Value*>{};
}

/// Height or width of the result of a window.
int64_t windowOutput(int64_t input, const Window& window, size_t axis) {
  if (window.upscale != Upscale::NONE) input *= 2;
  const int64_t padding = window.pad[axis] + window.pad[axis + 2];
  const int64_t kernel = (window.kernel[axis] - 1) * window.dilation[axis] + 1;
  CARINA_CHECK(input + padding >= kernel, "window larger than its padded input");
  return (input + padding - kernel) / window.stride[axis] + 1;
}

ir::Value* create(ir::Builder& builder, const ir::OpDef& def, std::vector<std::vector<ir::Value*>> operands,
                  std::vector<ir::Attribute> attributes, ir::Type type) {
  ir::NodeSpec spec;
  spec.def = &def;
  spec.operands = std::move(operands);
  spec.attributes = std::move(attributes);
  spec.types = {std::move(type)};
  return builder.create(std::move(spec))->result();
}

}  // namespace

bool OutputStage::unitScale() const {
  for (size_t i = 0; i < multipliers.size(); ++i) {
    if (shifts[i] > 62 || multipliers[i] != int64_t{1} << shifts[i]) return false;
  }
  return true;
}

bool hasOutputStage(const ir::Node* node) {
  if (!node || !isOperator(node)) return false;
  switch (opId(node)) {
    case OpId::View:
    case OpId::Join:
    case OpId::Gather:
    case OpId::Scatter:
      return false;
    default:
      return true;
  }
}

OutputStage outputStage(const ir::Node* node) {
  CARINA_CHECK(hasOutputStage(node), "operation without output stage");
  OutputStage stage;
  stage.multipliers = node->attributeAs<ir::Ints>(kMultipliers);
  stage.shifts = node->attributeAs<ir::Ints>(kShifts);
  stage.rounding = static_cast<Rounding>(node->attributeAs<int64_t>(kRounding));
  stage.zeroPoint = node->attributeAs<int64_t>(kOfmZeroPoint);
  const auto& clamp = node->attributeAs<ir::Ints>(kClamp);
  if (clamp.size() == 2) stage.clamp = {clamp[0], clamp[1]};
  stage.tableKind = static_cast<TableKind>(node->attributeAs<int64_t>(kTableKind));
  stage.table = node->operand(node->def().operands.size() - 1);
  return stage;
}

void setOutputStage(ir::Node* node, const OutputStage& stage) {
  auto attributes = stageAttributes(stage);
  for (size_t i = 0; i < attributes.size(); ++i) node->setAttribute(i, std::move(attributes[i]));
  node->setOperandGroup(node->def().operands.size() - 1, optional(stage.table));
}

Window window(const ir::Node* node) {
  Window window;
  window.kernel = node->attributeAs<ir::Ints>(kKernel);
  window.stride = node->attributeAs<ir::Ints>(kStride);
  window.dilation = node->attributeAs<ir::Ints>(kDilation);
  window.pad = node->attributeAs<ir::Ints>(kPad);
  window.upscale = static_cast<Upscale>(node->attributeAs<int64_t>(kUpscale));
  window.ifmZeroPoint = node->attributeAs<int64_t>(kIfmZeroPoint);
  return window;
}

ir::Value* createConv(ir::Builder& builder, ir::Value* ifm, ir::Value* weight, ir::Value* bias,
                      const Window& window, ir::Ints weightZeroPoints, const OutputStage& stage, DType type) {
  auto attributes = stageAttributes(stage);
  appendWindow(attributes, window);
  attributes.emplace_back(std::move(weightZeroPoints));
  return create(
      builder, Conv::def(), {{ifm}, {weight}, {bias}, optional(stage.table)}, std::move(attributes),
      {type, {windowOutput(ifm->dim(0), window, 0), windowOutput(ifm->dim(1), window, 1), weight->dim(0)}});
}

ir::Value* createDepthwise(ir::Builder& builder, ir::Value* ifm, ir::Value* weight, ir::Value* bias,
                           const Window& window, ir::Ints weightZeroPoints, const OutputStage& stage,
                           DType type) {
  auto attributes = stageAttributes(stage);
  appendWindow(attributes, window);
  attributes.emplace_back(std::move(weightZeroPoints));
  return create(
      builder, Depthwise::def(), {{ifm}, {weight}, {bias}, optional(stage.table)}, std::move(attributes),
      {type, {windowOutput(ifm->dim(0), window, 0), windowOutput(ifm->dim(1), window, 1), ifm->dim(2)}});
}

ir::Value* createPool(ir::Builder& builder, ir::Value* ifm, PoolMode mode, const Window& window,
                      const OutputStage& stage, DType type, ir::Ints transpose) {
  auto attributes = stageAttributes(stage);
  appendWindow(attributes, window);
  attributes.emplace_back(static_cast<int64_t>(mode));
  attributes.emplace_back(transpose);
  const Shape computed{windowOutput(ifm->dim(0), window, 0), windowOutput(ifm->dim(1), window, 1),
                       mode == PoolMode::REDUCE_SUM ? 1 : ifm->dim(2)};
  Shape shape(3);
  for (size_t i = 0; i < 3; ++i) shape[i] = computed[static_cast<size_t>(transpose[i])];
  return create(builder, Pool::def(), {{ifm}, optional(stage.table)}, std::move(attributes), {type, shape});
}

ir::Value* createElementwise(ir::Builder& builder, ElementwiseMode mode, const ElementwiseOperand& ifm,
                             const ElementwiseOperand& ifm2, Rounding operandRounding,
                             const OutputStage& stage, DType type) {
  auto attributes = stageAttributes(stage);
  append(attributes, static_cast<int64_t>(mode), ifm.zeroPoint, ifm2.zeroPoint, ifm.scale, ifm2.scale,
         static_cast<int64_t>(operandRounding));
  Shape shape = ifm.value->shape();
  if (ifm2.value) {
    for (size_t i = 0; i < shape.size(); ++i) shape[i] = std::max(shape[i], ifm2.value->shape()[i]);
  }
  return create(builder, Elementwise::def(), {{ifm.value}, optional(ifm2.value), optional(stage.table)},
                std::move(attributes), {type, std::move(shape)});
}

ir::Value* createMatMul(ir::Builder& builder, ir::Value* ifm, ir::Value* ifm2, int64_t ifmZeroPoint,
                        int64_t ifm2ZeroPoint, const OutputStage& stage, DType type) {
  auto attributes = stageAttributes(stage);
  append(attributes, ifmZeroPoint, ifm2ZeroPoint);
  return create(builder, MatMul::def(), {{ifm}, {ifm2}, optional(stage.table)}, std::move(attributes),
                {type, {ifm->dim(0), ifm->dim(1), ifm2->dim(1)}});
}

ir::Value* createCodedConv(ir::Builder& builder, ir::Value* ifm, ir::Value* codes, int64_t channels,
                           int64_t ifmZeroPoint, const CodedOrder& order, const OutputStage& stage,
                           DType type) {
  auto attributes = stageAttributes(stage);
  append(attributes, ifmZeroPoint, order.streams, order.blockDepth, order.ublockDepth, order.ifmBlock);
  return create(builder, CodedConv::def(), {{ifm}, {codes}, optional(stage.table)}, std::move(attributes),
                {type, {ifm->dim(0), ifm->dim(1), channels}});
}

ir::Value* createCopy(ir::Builder& builder, ir::Value* ifm, int64_t ifmZeroPoint, const OutputStage& stage,
                      DType type) {
  Window window;
  window.ifmZeroPoint = ifmZeroPoint;
  return createPool(builder, ifm, PoolMode::SUM, window, stage, type);
}

ir::Value* createView(ir::Builder& builder, ir::Value* input, DType type, Shape shape, int64_t offset,
                      ir::Ints strides) {
  return create(builder, View::def(), {{input}}, attributeList(offset, std::move(strides)),
                {type, std::move(shape)});
}

ir::Value* createReshape(ir::Builder& builder, ir::Value* input, Shape shape) {
  if (input->shape() == shape) return input;
  ir::Ints strides = rowMajorStrides(shape);
  return createView(builder, input, input->dtype(), std::move(shape), 0, std::move(strides));
}

ir::Value* createSlice(ir::Builder& builder, ir::Value* input, const Shape& start, const Shape& size) {
  if (input->shape() == size) return input;
  const Shape strides = rowMajorStrides(input->shape());
  int64_t offset = 0;
  for (size_t i = 0; i < start.size(); ++i) offset += start[i] * strides[i];
  return createView(builder, input, input->dtype(), size, offset, strides);
}

ir::Value* createJoin(ir::Builder& builder, const std::vector<Piece>& pieces, ir::Type type) {
  std::vector<ir::Value*> values;
  ir::Ints offsets, strides;
  for (const Piece& piece : pieces) {
    values.push_back(piece.value);
    offsets.push_back(piece.offset);
    strides.insert(strides.end(), piece.strides.begin(), piece.strides.end());
  }
  return create(builder, Join::def(), {std::move(values)},
                attributeList(std::move(offsets), std::move(strides)), std::move(type));
}

std::vector<Piece> pieces(const ir::Node* join) {
  const auto& offsets = join->attributeAs<ir::Ints>(0);
  const auto& strides = join->attributeAs<ir::Ints>(1);
  std::vector<Piece> result;
  size_t next = 0;
  for (size_t i = 0; i < join->operands().size(); ++i) {
    ir::Value* value = join->operands()[i];
    const auto first = strides.begin() + static_cast<std::ptrdiff_t>(next);
    result.push_back({value, offsets[i], ir::Ints(first, first + value->rank())});
    next += static_cast<size_t>(value->rank());
  }
  return result;
}

}  // namespace carina::npu_ir
