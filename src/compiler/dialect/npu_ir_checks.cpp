// SPDX-License-Identifier: Apache-2.0
// Requirements on each npu node beyond operand counts and attribute kinds (npu_ir_checks.hpp).
#include "compiler/dialect/npu_ir_checks.hpp"

#include <algorithm>

#include "compiler/dialect/coded_weights.hpp"
#include "compiler/dialect/npu_ir.hpp"

namespace carina::npu_ir::check {
namespace {

Status featureMap(const ir::Value* value, std::string_view what) {
  if (value->rank() != 3)
    return fail(Code::InvalidGraph, "{} has rank {}, a feature map has 3", what, value->rank());
  for (const int64_t size : value->shape()) {
    if (size < 1 || size > 65536)
      return fail(Code::InvalidGraph, "{} has shape {}: sizes must be 1 to 65536", what,
                  shapeText(value->shape()));
  }
  if (isFloat(value->dtype()) || value->dtype() == DType::Shape) {
    return fail(Code::InvalidGraph, "{} has type {}", what, dtypeName(value->dtype()));
  }
  return {};
}

int64_t tableElements(TableKind kind) {
  switch (kind) {
    case TableKind::LUT16:
    case TableKind::LUT16_TO_32:
    case TableKind::TANH:
    case TableKind::SIGMOID:
      return 512;
    default:
      return 256;
  }
}

Status outputStageOf(const ir::Node& node) {
  const OutputStage stage = outputStage(&node);
  const ir::Value* ofm = node.result();
  CARINA_RETURN_IF_ERROR(featureMap(ofm, "the result"));
  if (stage.multipliers.size() != stage.shifts.size() || stage.multipliers.empty()) {
    return fail(Code::InvalidGraph, "{} multipliers do not match {} shifts", stage.multipliers.size(),
                stage.shifts.size());
  }
  if (stage.perChannel() && static_cast<int64_t>(stage.multipliers.size()) != ofm->dim(2)) {
    return fail(Code::InvalidGraph, "expected one scale per channel, got {} for {} channels",
                stage.multipliers.size(), ofm->dim(2));
  }
  for (size_t i = 0; i < stage.multipliers.size(); ++i) {
    if (stage.multipliers[i] < 0 || stage.multipliers[i] > int64_t{UINT32_MAX} || stage.shifts[i] < 0 ||
        stage.shifts[i] > 63) {
      return fail(Code::InvalidGraph, "scale {} >> {} is out of range", stage.multipliers[i],
                  stage.shifts[i]);
    }
  }
  if (stage.clamp && stage.clamp->first > stage.clamp->second) {
    return fail(Code::InvalidGraph, "clamp {}..{} is empty", stage.clamp->first, stage.clamp->second);
  }
  if ((stage.tableKind == TableKind::NONE) != (stage.table == nullptr) && !stage.wideFunction())
    return fail(Code::InvalidGraph, "the table is missing");
  if (stage.wideFunction() && (ofm->dtype() != DType::Int16 || stage.clamp || stage.zeroPoint != 0))
    return fail(Code::InvalidGraph, "TANH and SIGMOID must produce int16, without clamp and zero point");
  if (stage.table) {
    if (!stage.table->isConstant()) return fail(Code::InvalidGraph, "the table is not constant");
    const int64_t expected = tableElements(stage.tableKind);
    if (stage.table->numElements() != expected) {
      return fail(Code::InvalidGraph, "the table has {} entries, expected {}", stage.table->numElements(),
                  expected);
    }
  }
  return {};
}

Status windowOf(const ir::Node& node) {
  const Window w = window(&node);
  if (w.kernel.size() != 2 || w.stride.size() != 2 || w.dilation.size() != 2 || w.pad.size() != 4) {
    return fail(Code::InvalidGraph, "the window's attributes have the wrong length");
  }
  const ir::Value* ifm = node.operand(0);
  CARINA_RETURN_IF_ERROR(featureMap(ifm, "the input"));
  for (size_t i = 0; i < 2; ++i) {
    if (w.kernel[i] < 1 || w.stride[i] < 1 || w.dilation[i] < 1 || w.pad[i] < 0 || w.pad[i + 2] < 0) {
      return fail(Code::InvalidGraph,
                  "kernel, stride and dilation must be positive, padding must not be negative");
    }
    const int64_t input = ifm->dim(static_cast<int64_t>(i)) * (w.upscale == Upscale::NONE ? 1 : 2);
    const int64_t padded = input + w.pad[i] + w.pad[i + 2];
    const int64_t dilated = (w.kernel[i] - 1) * w.dilation[i] + 1;
    if (padded < dilated)
      return fail(Code::InvalidGraph, "kernel {} is larger than the padded input {}", dilated, padded);
  }
  return {};
}

/// Height and width of the window's result.
Shape windowShape(const ir::Node& node) {
  const Window w = window(&node);
  Shape shape;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t input =
        node.operand(0)->dim(static_cast<int64_t>(i)) * (w.upscale == Upscale::NONE ? 1 : 2);
    shape.push_back((input + w.pad[i] + w.pad[i + 2] - (w.kernel[i] - 1) * w.dilation[i] - 1) / w.stride[i] +
                    1);
  }
  return shape;
}

Status resultShape(const ir::Node& node, const Shape& expected) {
  if (node.result()->shape() != expected) {
    return fail(Code::InvalidGraph, "the result has shape {}, the operands give {}",
                shapeText(node.result()->shape()), shapeText(expected));
  }
  return {};
}

Status weightsOf(const ir::Node& node, int64_t channels) {
  const ir::Value* weight = node.operand(1);
  const ir::Value* bias = node.operand(2);
  if (!weight->isConstant() || !bias->isConstant())
    return fail(Code::InvalidGraph, "weights and bias must be constants");
  if (weight->dtype() != DType::Int8 && weight->dtype() != DType::UInt8 && weight->dtype() != DType::Int4) {
    return fail(Code::InvalidGraph, "weights cannot have type {}", dtypeName(weight->dtype()));
  }
  if (bias->numElements() != channels)
    return fail(Code::InvalidGraph, "expected one bias per channel, got {} for {} channels",
                bias->numElements(), channels);
  const auto& zeroPoints = node.attributeAs<ir::Ints>(node.def().attributes.size() - 1);
  if (zeroPoints.size() != 1 && static_cast<int64_t>(zeroPoints.size()) != channels) {
    return fail(Code::InvalidGraph, "expected one weight zero point per channel, got {} for {} channels",
                zeroPoints.size(), channels);
  }
  return {};
}

/// First and last element that an affine map reaches.
std::pair<int64_t, int64_t> reach(int64_t offset, const ir::Ints& strides, const Shape& shape) {
  std::pair<int64_t, int64_t> range{offset, offset};
  for (size_t i = 0; i < shape.size(); ++i) {
    const int64_t step = strides[i] * (shape[i] - 1);
    (step < 0 ? range.first : range.second) += step;
  }
  return range;
}

}  // namespace

Status view(const ir::Node& node) {
  const ir::Value* input = node.operand(0);
  const ir::Value* output = node.result();
  const auto& strides = node.attributeAs<ir::Ints>(1);
  if (static_cast<int64_t>(strides.size()) != output->rank())
    return fail(Code::InvalidGraph, "{} strides do not match rank {}", strides.size(), output->rank());
  const auto [first, last] = reach(node.attributeAs<int64_t>(0), strides, output->shape());
  const int64_t elements = input->numBytes() / dtypeSize(output->dtype());
  if (first < 0 || last >= elements)
    return fail(Code::InvalidGraph, "the view reaches elements {}..{} of {}", first, last, elements);
  return {};
}

Status join(const ir::Node& node) {
  const ir::Value* output = node.result();
  size_t rank = 0;
  for (const ir::Value* piece : node.operands()) rank += static_cast<size_t>(piece->rank());
  if (node.attributeAs<ir::Ints>(0).size() != node.operands().size() ||
      node.attributeAs<ir::Ints>(1).size() != rank) {
    return fail(Code::InvalidGraph, "offsets and strides do not match the pieces");
  }
  int64_t bytes = 0;
  for (const Piece& piece : pieces(&node)) {
    const auto [first, last] = reach(piece.offset, piece.strides, piece.value->shape());
    const int64_t size = dtypeSize(piece.value->dtype());
    if (first < 0 || (last + 1) * size > output->numBytes()) {
      return fail(Code::InvalidGraph, "a piece reaches elements {}..{} of a result of {}", first, last,
                  output->numElements());
    }
    bytes += piece.value->numElements() * size;
  }
  if (bytes != output->numBytes()) {
    return fail(Code::InvalidGraph, "the pieces hold {} bytes, the result {}", bytes, output->numBytes());
  }
  return {};
}

Status conv(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(windowOf(node));
  CARINA_RETURN_IF_ERROR(outputStageOf(node));
  const ir::Value* weight = node.operand(1);
  if (weight->rank() != 4 || weight->dim(3) != node.operand(0)->dim(2)) {
    return fail(Code::InvalidGraph, "weights {} do not match an input of depth {}",
                shapeText(weight->shape()), node.operand(0)->dim(2));
  }
  CARINA_RETURN_IF_ERROR(weightsOf(node, weight->dim(0)));
  if (window(&node).kernel != ir::Ints{weight->dim(1), weight->dim(2)})
    return fail(Code::InvalidGraph, "the kernel's size differs from that of the weights");
  Shape shape = windowShape(node);
  shape.push_back(weight->dim(0));
  return resultShape(node, shape);
}

Status depthwise(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(windowOf(node));
  CARINA_RETURN_IF_ERROR(outputStageOf(node));
  const ir::Value* weight = node.operand(1);
  const int64_t depth = node.operand(0)->dim(2);
  if (weight->rank() != 3 || weight->dim(2) != depth) {
    return fail(Code::InvalidGraph, "depthwise weights {} do not match an input of depth {}",
                shapeText(weight->shape()), depth);
  }
  CARINA_RETURN_IF_ERROR(weightsOf(node, depth));
  if (window(&node).kernel != ir::Ints{weight->dim(0), weight->dim(1)})
    return fail(Code::InvalidGraph, "the kernel's size differs from that of the weights");
  Shape shape = windowShape(node);
  shape.push_back(depth);
  return resultShape(node, shape);
}

Status matmul(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(outputStageOf(node));
  const ir::Value* a = node.operand(0);
  const ir::Value* b = node.operand(1);
  CARINA_RETURN_IF_ERROR(featureMap(a, "the first input"));
  CARINA_RETURN_IF_ERROR(featureMap(b, "the second input"));
  if (b->dim(0) != 1 || a->dim(2) != b->dim(2)) {
    return fail(Code::InvalidGraph, "{} and {} cannot be multiplied", shapeText(a->shape()),
                shapeText(b->shape()));
  }
  return resultShape(node, {a->dim(0), a->dim(1), b->dim(1)});
}

Status codedConv(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(outputStageOf(node));
  const ir::Value* ifm = node.operand(0);
  const ir::Value* codes = node.operand(1);
  CARINA_RETURN_IF_ERROR(featureMap(ifm, "the input"));
  const CodedOrder order = codedOrder(&node);
  if (order.streams < 1 || order.streams > 2 || order.blockDepth < 1 || order.blockDepth > 65536 ||
      order.ublockDepth < 1 || order.ublockDepth > 65536 || (order.ifmBlock != 16 && order.ifmBlock != 32)) {
    return fail(Code::InvalidGraph, "the order of the weights is not one of Ethos-U55 or U65");
  }
  const int64_t bytes = order.bytes(node.result()->dim(2), ifm->dim(2));
  if (codes->rank() != 1 || codes->dim(0) != bytes || dtypeSize(codes->dtype()) != 1) {
    return fail(Code::InvalidGraph, "the weights have type {}, expected {} bytes", ir::typeText(codes->type),
                bytes);
  }
  return resultShape(node, {ifm->dim(0), ifm->dim(1), node.result()->dim(2)});
}

Status pool(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(windowOf(node));
  CARINA_RETURN_IF_ERROR(outputStageOf(node));
  const Pool op(const_cast<ir::Node*>(&node));
  const ir::Ints& order = op.transpose();
  ir::Ints sorted = order;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != ir::Ints{0, 1, 2})
    return fail(Code::InvalidGraph, "the transpose is not a permutation of three axes");
  Shape computed = windowShape(node);
  computed.push_back(op.mode() == PoolMode::REDUCE_SUM ? 1 : node.operand(0)->dim(2));
  Shape shape(3);
  for (size_t i = 0; i < 3; ++i) shape[i] = computed[static_cast<size_t>(order[i])];
  return resultShape(node, shape);
}

Status elementwise(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(outputStageOf(node));
  const Elementwise op(const_cast<ir::Node*>(&node));
  const ir::Value* a = op.ifm();
  const ir::Value* b = op.ifm2();
  CARINA_RETURN_IF_ERROR(featureMap(a, "the first input"));
  const ElementwiseMode mode = op.mode();
  const bool unary = mode == ElementwiseMode::ABS || mode == ElementwiseMode::CLZ ||
                     mode == ElementwiseMode::LRELU || mode == ElementwiseMode::NOT;
  if (unary != (b == nullptr)) return fail(Code::InvalidGraph, "the number of operands is wrong");
  if (op.ifmScale().size() != 2 || op.ifm2Scale().size() != 2)
    return fail(Code::InvalidGraph, "an operand scale must have two values");
  Shape shape = a->shape();
  if (b) {
    CARINA_RETURN_IF_ERROR(featureMap(b, "the second input"));
    auto broadcast = broadcastShapes(shape, b->shape());
    if (!broadcast)
      return fail(Code::InvalidGraph, "{} and {} do not broadcast", shapeText(shape), shapeText(b->shape()));
    shape = *broadcast;
    if (dtypeSize(a->dtype()) != dtypeSize(b->dtype())) {
      return fail(Code::InvalidGraph, "the inputs have types {} and {}, expected one type",
                  dtypeName(a->dtype()), dtypeName(b->dtype()));
    }
  }
  return resultShape(node, shape);
}

Status resize(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(outputStageOf(node));
  CARINA_RETURN_IF_ERROR(featureMap(node.operand(0), "the input"));
  const Resize op(const_cast<ir::Node*>(&node));
  if (op.scale().size() != 4 || op.offset().size() != 2)
    return fail(Code::InvalidGraph, "scale must have four values, offset two");
  for (const int64_t n : op.scale()) {
    if (n < 1 || n > 2048 * 16) return fail(Code::InvalidGraph, "scale {} is out of range", n);
  }
  if (node.result()->dim(2) != node.operand(0)->dim(2))
    return fail(Code::InvalidGraph, "RESIZE cannot change the depth");
  return {};
}

Status gather(const ir::Node& node) {
  const ir::Value* values = node.operand(0);
  const ir::Value* indices = node.operand(1);
  if (values->rank() != 2 || indices->rank() != 1 || indices->dtype() != DType::Int32) {
    return fail(Code::InvalidGraph, "GATHER takes rows of a matrix and int32 indices");
  }
  return resultShape(node, {indices->dim(0), values->dim(1)});
}

Status scatter(const ir::Node& node) {
  const ir::Value* values = node.operand(0);
  const ir::Value* indices = node.operand(1);
  const ir::Value* updates = node.operand(2);
  if (values->rank() != 3 || indices->rank() != 2 || indices->dtype() != DType::Int32 ||
      updates->shape() != Shape{indices->dim(0), indices->dim(1), values->dim(2)} ||
      indices->dim(0) != values->dim(0)) {
    return fail(Code::InvalidGraph,
                "SCATTER takes matrices, int32 indices for each matrix and one row per index");
  }
  return resultShape(node, values->shape());
}

}  // namespace carina::npu_ir::check
