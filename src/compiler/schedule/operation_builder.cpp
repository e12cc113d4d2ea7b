// SPDX-License-Identifier: Apache-2.0
// npu nodes to hardware operations (operation_builder.hpp). Register conventions: ethosu-command-stream 6
// and 7.
#include "compiler/schedule/operation_builder.hpp"

#include <algorithm>

#include "compiler/dialect/coded_weights.hpp"
#include "npu/isa/blockconfig.hpp"
#include "npu/weights/weight_codec.hpp"

namespace carina::compiler {
namespace {

using npu_ir::ElementwiseMode;
using npu_ir::OutputStage;
using npu_ir::TableKind;

npu::Rounding hardware(npu_ir::Rounding rounding) {
  return static_cast<npu::Rounding>(rounding);
}

npu::ElementwiseMode hardware(ElementwiseMode mode) {
  using M = npu::ElementwiseMode;
  constexpr M kModes[] = {M::Mul,   M::Add,   M::Sub, M::Min, M::Max, M::LRelu, M::Abs,
                          M::Clz,   M::Shr,   M::Shl, M::Lsr, M::Div, M::CmpEq, M::CmpNe,
                          M::CmpGe, M::CmpGt, M::And, M::Or,  M::Xor, M::Not,   M::AndNot};
  return kModes[static_cast<size_t>(mode)];
}

npu::Table hardware(TableKind kind) {
  switch (kind) {
    case TableKind::NONE:
      return npu::Table::None;
    case TableKind::LUT8:
      return npu::Table::Lut8;
    case TableKind::LUT8_TO_16:
      return npu::Table::Lut8To16;
    case TableKind::LUT8_TO_32:
      return npu::Table::Lut8To32;
    case TableKind::LUT16:
      return npu::Table::Lut16;
    case TableKind::LUT16_TO_32:
      return npu::Table::Lut16To32;
    case TableKind::TANH:
      return npu::Table::Tanh;
    case TableKind::SIGMOID:
      return npu::Table::Sigmoid;
  }
  return npu::Table::None;
}

DType clampType(const OutputStage& stage, DType output) {
  switch (stage.tableKind) {
    case TableKind::NONE:
      return output == DType::Bool ? DType::Int8 : output;
    case TableKind::LUT8:
      return output == DType::UInt8 ? DType::UInt8 : DType::Int8;
    case TableKind::LUT8_TO_16:
    case TableKind::LUT8_TO_32:
      return DType::Int8;
    case TableKind::LUT16:
    case TableKind::LUT16_TO_32:
    case TableKind::TANH:
    case TableKind::SIGMOID:
      return DType::Int16;
  }
  return output;
}

void setOutputStage(npu::KernelOperation& op, const OutputStage& stage, DType output,
                    const npu::Target& target) {
  op.ofm.zeroPoint = static_cast<int32_t>(stage.zeroPoint);
  op.ofmScale.multiplier = static_cast<uint32_t>(stage.multipliers[0]);
  op.ofmScale.shift = static_cast<uint8_t>(stage.shifts[0]);
  op.ofmScale.rounding = hardware(stage.rounding);
  op.activation.table = hardware(stage.tableKind);
  const DType type = clampType(stage, output);
  const bool narrow = dtypeSize(type) <= 2;
  int64_t low = narrow ? integerMin(type) : 0, high = narrow ? integerMax(type) : 0;
  if (stage.clamp && narrow) {
    low = std::max(low, stage.clamp->first);
    high = std::max(low, std::min(high, stage.clamp->second));
  }
  op.activation.clamp = narrow;
  op.activation.min = static_cast<int32_t>(low);
  op.activation.max = static_cast<int32_t>(high);
  // On U55 and U65 the bounds follow the OFM type unless a table widens it.
  if (target.architecture().clampHasType && stage.tableKind == TableKind::LUT8_TO_32)
    op.activation.clipRange = 3;
}

void setWindow(npu::KernelOperation& op, const ir::Node* node) {
  const npu_ir::Window w = npu_ir::window(node);
  const auto at = [](const ir::Ints& v, size_t i) { return static_cast<int32_t>(v[i]); };
  op.kernel = {at(w.kernel, 0), at(w.kernel, 1),   at(w.stride, 0),
               at(w.stride, 1), at(w.dilation, 0), at(w.dilation, 1)};
  op.padding = {at(w.pad, 0), at(w.pad, 1), at(w.pad, 2), at(w.pad, 3)};
  op.upscale = static_cast<npu::Upscale>(w.upscale);
  op.ifm.zeroPoint = static_cast<int32_t>(w.ifmZeroPoint);
  // The hardware derives the input size from the output: padding that the stride does not reach is not
  // programmed.
  const int32_t factor = op.upscale == npu::Upscale::None ? 1 : 2;
  op.padding.bottom = std::max(0, (op.ofm.height - 1) * op.kernel.strideY + op.kernel.dilatedHeight() -
                                      op.padding.top - op.ifm.height * factor);
  op.padding.right = std::max(0, (op.ofm.width - 1) * op.kernel.strideX + op.kernel.dilatedWidth() -
                                     op.padding.left - op.ifm.width * factor);
}

void buildConvolution(npu::KernelOperation& op, const ir::Node* node, const npu::Target& target) {
  const bool depthwise = ir::isa<npu_ir::Depthwise>(node);
  op.kind = depthwise ? npu::OperationKind::Depthwise : npu::OperationKind::Conv;
  setWindow(op, node);
  const int32_t bits = npu::elementBytes(op.ifm.type) * 8;
  if (bits == 16)
    op.accumulator = target.architecture().wideAccumulatorBits == 48 ? npu::AccumulatorFormat::Int48
                                                                     : npu::AccumulatorFormat::Int40;
  op.weights.emplace();
  if (!depthwise) {
    const ir::Value* weight = node->operand(1);
    const npu::WeightShape shape{static_cast<int32_t>(weight->dim(0)), static_cast<int32_t>(weight->dim(1)),
                                 static_cast<int32_t>(weight->dim(2)), static_cast<int32_t>(weight->dim(3))};
    op.weights->traversal =
        npu::preferredTraversal(shape, target, bits) == npu::WeightTraversal::PartKernelFirst
            ? npu::Traversal::PartKernelFirst
            : npu::Traversal::DepthFirst;
  }
}

npu::Transpose hardwareTranspose(const ir::Ints& order) {
  constexpr std::pair<std::array<int64_t, 3>, npu::Transpose> kOrders[] = {
      {{0, 1, 2}, npu::Transpose::HWC}, {{1, 0, 2}, npu::Transpose::WHC}, {{0, 2, 1}, npu::Transpose::HCW},
      {{1, 2, 0}, npu::Transpose::WCH}, {{2, 0, 1}, npu::Transpose::CHW}, {{2, 1, 0}, npu::Transpose::CWH}};
  for (const auto& [axes, transpose] : kOrders) {
    if (std::equal(axes.begin(), axes.end(), order.begin(), order.end())) return transpose;
  }
  CARINA_UNREACHABLE("not a permutation");
}

/// Without a sum mode, a sum is an average whose division is done by the output scale.
npu::PoolMode sumPool(const npu::Target& target) {
  return target.architecture().extendedPools ? npu::PoolMode::Sum : npu::PoolMode::Average;
}

void buildPool(npu::KernelOperation& op, const ir::Node* node, const npu::Target& target) {
  const npu_ir::Pool pool(const_cast<ir::Node*>(node));
  op.kind = npu::OperationKind::Pool;
  op.transpose = hardwareTranspose(pool.transpose());
  if (op.transpose != npu::Transpose::HWC) {
    // The operation uses its own axes, memory the permuted ones.
    const std::array<int32_t, 3> stored{op.ofm.height, op.ofm.width, op.ofm.depth};
    std::array<int32_t, 3> computed{};
    for (size_t i = 0; i < 3; ++i) computed[static_cast<size_t>(pool.transpose()[i])] = stored[i];
    op.ofm.height = computed[0];
    op.ofm.width = computed[1];
    op.ofm.depth = computed[2];
  }
  setWindow(op, node);
  op.globalScale = true;
  switch (pool.mode()) {
    case npu_ir::PoolMode::MAX:
      op.pool = npu::PoolMode::Max;
      op.globalScale = target.architecture().scalesExtrema;
      break;
    case npu_ir::PoolMode::MIN:
      op.pool = npu::PoolMode::Min;
      break;
    case npu_ir::PoolMode::AVERAGE:
      op.pool = npu::PoolMode::Average;
      break;
    case npu_ir::PoolMode::SUM:
      op.pool = sumPool(target);
      break;
    case npu_ir::PoolMode::REDUCE_SUM:
      op.pool = npu::PoolMode::ReduceSum;
      break;
    case npu_ir::PoolMode::ARGMAX_X:
      op.pool = npu::PoolMode::ArgMaxX;
      break;
    case npu_ir::PoolMode::ARGMAX_Y:
      op.pool = npu::PoolMode::ArgMaxY;
      break;
  }
  if (op.pool == npu::PoolMode::ArgMaxX || op.pool == npu::PoolMode::ArgMaxY) {
    // The index is the upper half of the accumulator.
    op.ofmScale = {1, 16, 0, npu::Rounding::TruncateToLower};
  }
}

bool swapsOperands(const ir::Node* node, const npu::Target& target) {
  const npu_ir::Elementwise op(const_cast<ir::Node*>(node));
  if (target.architecture().broadcastsBothOperands || !op.ifm2()) return false;
  return isScalar(op.ifm(), target) ? !isScalar(op.ifm2(), target)
                                    : op.ifm()->numElements() < op.ifm2()->numElements();
}

/// Whether the first operand is read from the register of scalars, which holds one: the second has
/// precedence.
bool firstIsScalar(const ir::Value* first, const ir::Value* second, const npu::Target& target) {
  return target.architecture().broadcastsBothOperands && isScalar(first, target) &&
         !(second && isScalar(second, target));
}

npu::FeatureMap scalarMap(const ir::Value* value, const npu::Target& target) {
  npu::FeatureMap map;
  map.type = elementType(value->dtype());
  if (target.architecture().storageField) map.storage = npu::Storage::None;
  return map;
}

npu::Broadcast broadcastOf(const npu::FeatureMap& map, const npu::FeatureMap& ofm) {
  return {map.height == 1 && ofm.height > 1, map.width == 1 && ofm.width > 1, map.depth == 1 && ofm.depth > 1,
          false};
}

/// On U55 and U65 the position of the first of two roundings is implied.
npu::Scale operandScale(const ir::Ints& scale, const npu_ir::Elementwise& node, bool u85) {
  const bool twice = u85 && node.operandRounding() == npu_ir::Rounding::DOUBLE_SYMMETRIC;
  const int64_t preShift = twice ? npu_ir::operandPreShift(node.ifm()->dtype()) : 0;
  return {static_cast<uint32_t>(scale[0]), static_cast<uint8_t>(scale[1]), static_cast<uint8_t>(preShift),
          hardware(node.operandRounding())};
}

/// U55 and U65 scale operands of ADD and SUB in one of three ways (ethosu-numerics 5.2).
void setOperandScaling(npu::KernelOperation& op, const npu_ir::Elementwise& node) {
  auto& ew = op.elementwise;
  const auto unshifted = [](const ir::Ints& s) { return s[1] == 0 && s[0] <= 0xffff; };
  if (unshifted(node.ifmScale()) && unshifted(node.ifm2Scale())) {
    ew.operandScaling = npu::OperandScaling::Both16;
    ew.ifmScale = operandScale(node.ifmScale(), node, false);
    ew.ifm2Scale = operandScale(node.ifm2Scale(), node, false);
    return;
  }
  // One operand is shifted by a fixed amount; the scale register belongs to the other one.
  const int64_t fixed = int64_t{1} << (npu::elementBytes(op.ifm.type) == 1 ? 19 : 14);
  const auto isFixed = [fixed](const ir::Ints& s) {
    return s[1] < 40 && s[0] % (int64_t{1} << s[1]) == 0 && s[0] >> s[1] == fixed;
  };
  const bool second = isFixed(node.ifm2Scale());
  CARINA_CHECK(second || isFixed(node.ifmScale()), "operand scales that the hardware does not have");
  ew.operandScaling = second ? npu::OperandScaling::OperandA32 : npu::OperandScaling::OperandB32;
  ew.ifmScale = operandScale(second ? node.ifmScale() : node.ifm2Scale(), node, false);
  ew.ifm2Scale = {};
}

void buildElementwise(npu::KernelOperation& op, const ir::Node* node, const Storage& storage,
                      const npu::Target& target) {
  const npu_ir::Elementwise ew(const_cast<ir::Node*>(node));
  op.kind = npu::OperationKind::Elementwise;
  op.elementwise.mode = hardware(ew.mode());
  const bool swapped = swapsOperands(node, target);
  const ir::Value* first = swapped ? ew.ifm2() : ew.ifm();
  const ir::Value* second = swapped ? ew.ifm() : ew.ifm2();
  const int64_t firstZeroPoint = swapped ? ew.ifm2Zp() : ew.ifmZp();
  const int64_t secondZeroPoint = swapped ? ew.ifmZp() : ew.ifm2Zp();
  op.elementwise.reverseOperands = swapped;
  const auto load = [&](const ir::Value* value, bool scalar, int64_t zeroPoint, npu::Broadcast& broadcast) {
    npu::FeatureMap map;
    if (scalar) {
      map = scalarMap(value, target);
      broadcast.scalar = true;
      op.elementwise.scalar = static_cast<int32_t>(value->constant().integerAt(0));
    } else {
      map = featureMap(storage, value);
      broadcast = broadcastOf(map, op.ofm);
    }
    map.zeroPoint = static_cast<int32_t>(zeroPoint);
    return map;
  };
  op.ifm = load(first, firstIsScalar(first, second, target), firstZeroPoint, op.elementwise.ifmBroadcast);
  if (second) {
    op.ifm2 = load(second, isScalar(second, target), secondZeroPoint, op.elementwise.ifm2Broadcast);
  }
  CARINA_CHECK(!(op.elementwise.ifmBroadcast.scalar && op.elementwise.ifm2Broadcast.scalar),
               "two scalar operands");
  const bool extremum = ew.mode() == ElementwiseMode::MIN || ew.mode() == ElementwiseMode::MAX;
  op.globalScale = target.architecture().scalesExtrema || !extremum;
  if (target.architecture().operandScales) {
    op.elementwise.ifmScale = operandScale(ew.ifmScale(), ew, true);
    op.elementwise.ifm2Scale = operandScale(ew.ifm2Scale(), ew, true);
  } else if ((ew.mode() == ElementwiseMode::ADD || ew.mode() == ElementwiseMode::SUB) &&
             npu::elementBytes(op.ifm.type) <= 2) {
    setOperandScaling(op, ew);
  }
}

void buildMatMul(npu::KernelOperation& op, const ir::Node* node, const Storage& storage) {
  const npu_ir::MatMul matmul(const_cast<ir::Node*>(node));
  op.kind = npu::OperationKind::Conv;
  op.weightsFromIfm2 = true;
  op.ifm.zeroPoint = static_cast<int32_t>(matmul.ifmZp());
  op.ifm2 = featureMap(storage, matmul.ifm2());
  op.ifm2->zeroPoint = static_cast<int32_t>(matmul.ifm2Zp());
  op.globalScale = true;
  if (npu::elementBytes(op.ifm.type) == 2) op.accumulator = npu::AccumulatorFormat::Int48;
}

void buildCodedConv(npu::KernelOperation& op, const ir::Node* node) {
  const npu_ir::CodedConv conv(const_cast<ir::Node*>(node));
  op.kind = npu::OperationKind::Conv;
  op.ifm.zeroPoint = static_cast<int32_t>(conv.ifmZp());
  if (npu::elementBytes(op.ifm.type) == 2) op.accumulator = npu::AccumulatorFormat::Int40;
  // Block depth and streams are fixed: the weights were written for them.
  op.block.c = static_cast<int32_t>(conv.blockDepth());
  op.weights.emplace();
  const npu_ir::CodedOrder order = npu_ir::codedOrder(node);
  uint64_t start = 0;
  for (int64_t s = 0; s < order.streams; ++s) {
    const auto bytes = static_cast<uint64_t>(order.streamBytes(op.ofm.depth, op.ifm.depth, s));
    op.weights->weights[static_cast<size_t>(s)] = {start, bytes};
    start += bytes;
  }
}

void buildResize(npu::KernelOperation& op, const ir::Node* node) {
  const npu_ir::Resize resize(const_cast<ir::Node*>(node));
  op.kind = npu::OperationKind::Resize;
  op.resize =
      resize.mode() == npu_ir::ResizeMode::NEAREST ? npu::ResizeMode::Nearest : npu::ResizeMode::Bilinear;
  const auto axis = [&](size_t i) {
    return npu::ResizeAxis{static_cast<int32_t>(resize.scale()[2 * i]),
                           static_cast<int32_t>(resize.scale()[2 * i + 1]),
                           static_cast<int32_t>(resize.offset()[i])};
  };
  op.resizeY = axis(0);
  op.resizeX = axis(1);
  // KERNEL_*_M1 hold the input size.
  op.kernel.height = op.ifm.height;
  op.kernel.width = op.ifm.width;
  op.globalScale = true;
  // The interpolation result carries 16 more fractional bits.
  op.ofmScale.shift = static_cast<uint8_t>(op.ofmScale.shift + 16);
}

/// A convolution that computes each position from the same position of its input.
bool isPointwise(const npu::KernelOperation& op) {
  const npu::Kernel& k = op.kernel;
  return op.kind == npu::OperationKind::Conv && k.height == 1 && k.width == 1 && k.strideY == 1 &&
         k.strideX == 1 && !op.padding.any() && op.upscale == npu::Upscale::None &&
         op.transpose == npu::Transpose::HWC;
}

}  // namespace

bool isScalar(const ir::Value* value, const npu::Target& target) {
  if (!value->isConstant() || value->numElements() != 1) return false;
  return dtypeSize(value->dtype()) <= target.architecture().scalarBytes;
}

OperationInputs operationInputs(const ir::Node* node, const npu::Target& target) {
  if (ir::isa<npu_ir::MatMul>(node) || ir::isa<npu_ir::CodedConv>(node))
    return {node->operand(0), node->operand(1)};
  if (!ir::isa<npu_ir::Elementwise>(node)) return {node->operand(0), nullptr};
  const npu_ir::Elementwise ew(const_cast<ir::Node*>(node));
  OperationInputs inputs{ew.ifm(), ew.ifm2()};
  if (swapsOperands(node, target)) std::swap(inputs.ifm, inputs.ifm2);
  if (inputs.ifm2 && firstIsScalar(inputs.ifm, inputs.ifm2, target)) inputs.ifm = nullptr;
  if (inputs.ifm2 && isScalar(inputs.ifm2, target)) inputs.ifm2 = nullptr;
  return inputs;
}

npu::KernelOperation buildOperation(const ir::Node* node, const Storage& storage, const npu::Target& target) {
  npu::KernelOperation op;
  const ir::Value* result = node->result();
  op.ofm = featureMap(storage, result);
  if (!ir::isa<npu_ir::Elementwise>(node)) op.ifm = featureMap(storage, node->operand(0));
  const OutputStage stage = npu_ir::outputStage(node);
  setOutputStage(op, stage, result->dtype(), target);
  switch (npu_ir::opId(node)) {
    case npu_ir::OpId::Conv:
    case npu_ir::OpId::Depthwise:
      buildConvolution(op, node, target);
      break;
    case npu_ir::OpId::Pool:
      buildPool(op, node, target);
      break;
    case npu_ir::OpId::Elementwise:
      buildElementwise(op, node, storage, target);
      break;
    case npu_ir::OpId::MatMul:
      buildMatMul(op, node, storage);
      break;
    case npu_ir::OpId::CodedConv:
      buildCodedConv(op, node);
      break;
    case npu_ir::OpId::Resize:
      buildResize(op, node);
      break;
    default:
      CARINA_UNREACHABLE("not a kernel operation");
  }
  if (target.architecture().wideResults &&
      (op.ofm.type == npu::ElementType::Int64 || op.ifm.type == npu::ElementType::Int64)) {
    op.accumulator = npu::AccumulatorFormat::Int48;
  }
  return op;
}

std::optional<npu::KernelOperation> asProduct(const npu::KernelOperation& op, const npu::Target& target) {
  const npu::Kernel& k = op.kernel;
  const bool unitScale = op.ofmScale.multiplier == 1 && op.ofmScale.shift == 0;
  const bool isCopy = op.kind == npu::OperationKind::Pool && op.pool == sumPool(target) && k.height == 1 &&
                      k.width == 1 && k.strideY == 1 && k.strideX == 1 && !op.padding.any() &&
                      op.upscale == npu::Upscale::None && op.transpose == npu::Transpose::HWC;
  // 32-bit operands can only be shifted; on U55 and U65, so can 32-bit products (ethosu-numerics 5.1, 5.5).
  const bool scales = npu::elementBytes(op.ifm.type) <= 2 &&
                      (target.architecture().wideScaling || unitScale || npu::elementBytes(op.ofm.type) <= 2);
  if (!isCopy || !scales) return std::nullopt;
  npu::KernelOperation product = op;
  product.kind = npu::OperationKind::Elementwise;
  product.pool = {};
  product.elementwise.mode = npu::ElementwiseMode::Mul;
  product.elementwise.ifm2Broadcast.scalar = true;
  product.elementwise.scalar = 1;
  product.ifm2 = npu::FeatureMap{};
  product.ifm2->type = op.ifm.type;
  if (target.architecture().storageField) product.ifm2->storage = npu::Storage::None;
  return product;
}

bool allowsTwoRows(const npu::KernelOperation& op, const npu::Target& target) {
  if (target.architecture().choosesMicroblocks || npu::microblocks(target).front().h != 2) return false;
  return isPointwise(op) && op.ofm.height == 1 && op.ofm.width > 2 && op.ifm.height == 1 &&
         op.ifm.width == op.ofm.width;
}

npu::KernelOperation inTwoRows(npu::KernelOperation op) {
  const int32_t width = op.ofm.width;
  for (npu::FeatureMap* map : {&op.ifm, &op.ofm}) {
    map->strideY = width / 2 * map->strideX;
    map->height = map->height0 = map->height1 = 2;
    map->width = map->width0 = width - width / 2;
  }
  op.inTwoRows = true;
  return op;
}

npu::KernelOperation inOneRow(npu::KernelOperation op) {
  for (npu::FeatureMap* map : {&op.ifm, &op.ofm}) {
    const auto width = static_cast<int32_t>(map->strideY / map->strideX) + map->width;
    map->height = map->height0 = map->height1 = 1;
    map->width = map->width0 = width;
    map->strideY = width * map->strideX;
  }
  op.inTwoRows = false;
  return op;
}

std::string operationKindText(const npu::KernelOperation& op) {
  switch (op.kind) {
    case npu::OperationKind::Conv:
      return op.weightsFromIfm2 ? "MATMUL" : "CONV";
    case npu::OperationKind::Depthwise:
      return "DEPTHWISE";
    case npu::OperationKind::Resize:
      return "RESIZE";
    case npu::OperationKind::Pool: {
      constexpr const char* kNames[] = {"MAX",  "AVERAGE", "REDUCE_SUM", "SUM",
                                        "NONE", "MIN",     "ARGMAX",     "ARGMAX"};
      return std::string("POOL ") + kNames[static_cast<size_t>(op.pool)];
    }
    case npu::OperationKind::Elementwise:
      break;
  }
  using M = npu::ElementwiseMode;
  switch (op.elementwise.mode) {
    case M::Mul:
      return "ELEMENTWISE MUL";
    case M::Add:
      return "ELEMENTWISE ADD";
    case M::Sub:
      return "ELEMENTWISE SUB";
    case M::Min:
      return "ELEMENTWISE MIN";
    case M::Max:
      return "ELEMENTWISE MAX";
    case M::LRelu:
      return "ELEMENTWISE LRELU";
    case M::Abs:
      return "ELEMENTWISE ABS";
    case M::Clz:
      return "ELEMENTWISE CLZ";
    case M::Shr:
      return "ELEMENTWISE SHR";
    case M::Shl:
      return "ELEMENTWISE SHL";
    case M::Lsr:
      return "ELEMENTWISE LSR";
    case M::Div:
      return "ELEMENTWISE DIV";
    case M::CmpEq:
      return "ELEMENTWISE CMP_EQ";
    case M::CmpNe:
      return "ELEMENTWISE CMP_NE";
    case M::CmpGe:
      return "ELEMENTWISE CMP_GE";
    case M::CmpGt:
      return "ELEMENTWISE CMP_GT";
    case M::And:
      return "ELEMENTWISE AND";
    case M::Or:
      return "ELEMENTWISE OR";
    case M::Xor:
      return "ELEMENTWISE XOR";
    case M::Not:
      return "ELEMENTWISE NOT";
    case M::AndNot:
      return "ELEMENTWISE AND_NOT";
  }
  return "ELEMENTWISE";
}

}  // namespace carina::compiler
