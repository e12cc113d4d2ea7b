// SPDX-License-Identifier: Apache-2.0
// Reductions and ARGMAX along one axis.
#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "compiler/legalize/legalizer.hpp"
#include "npu/isa/blockconfig.hpp"
#include "npu/timing/output_rate.hpp"

namespace carina::compiler {

using npu_ir::ElementwiseMode;
using npu_ir::OutputStage;
using npu_ir::PoolMode;
using npu_ir::Window;

namespace {

/// Limit on the positions that ARGMAX counts: in 16-bit values, or in the upper half of an accumulator.
constexpr int64_t kMaxArgmax = 32768;

/// A shape split at one axis: the product of the dimensions outside it, its size, the product of those
/// inside.
struct AxisSplit {
  int64_t outer = 1, size = 1, inner = 1;
  AxisSplit(const Shape& shape, int64_t axis) {
    for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d) {
      const int64_t n = shape[static_cast<size_t>(d)];
      (d < axis ? outer : d == axis ? size : inner) *= n;
    }
  }
  Shape shape() const { return {outer, size, inner}; }
};

/// How many of the inner elements become channels if the others may be columns: each channel has weights to
/// read. All of them if no number from kBlock to kMost divides them.
int64_t columnChannels(int64_t inner) {
  constexpr int64_t kBlock = 16, kMost = 64;
  int64_t best = inner;
  for (int64_t channels = kBlock; channels <= std::min(kMost, inner - 1); ++channels) {
    if (inner % channels != 0) continue;
    const auto lanes = [](int64_t c) { return roundUp(c, kBlock); };
    // The fewest idle lanes, then the most channels.
    if (best == inner || lanes(channels) * best <= lanes(best) * channels) best = channels;
  }
  return best;
}

/// Whether comparing halves of columns [outer, size, inner] until one row is left takes fewer cycles than
/// pooling them. Most lanes of the pooling unit are idle if there are few inner elements; an elementwise
/// operation takes some sixty cycles to start.
bool halvesAreFaster(const Shape& columns, DType type, const npu::Target& target) {
  constexpr double kStart = 64;
  const int64_t outer = columns[0], size = columns[1], inner = columns[2];
  npu::KernelOperation compare;
  compare.kind = npu::OperationKind::Elementwise;
  compare.elementwise.mode = npu::ElementwiseMode::Max;
  compare.ifm.type = compare.ofm.type =
      dtypeSize(type) == 1 ? npu::ElementType::Int8 : npu::ElementType::Int16;
  auto taps = std::numeric_limits<int64_t>::max();
  for (const npu::BlockShape& block : npu::microblocks(target))
    taps = std::min(taps, ceilDiv(outer, block.h) * ceilDiv(inner, block.c) * std::max<int64_t>(size, 4));
  const double pooled =
      static_cast<double>(taps) * npu::timing::poolCyclesPerTap(target, compare.ifm.type) / target.cores;
  const auto elements = static_cast<double>(outer * (size - 1) * inner);
  const int steps = std::bit_width(static_cast<uint64_t>(size - 1));
  return elements * npu::timing::outputCyclesPerElement(target, compare) + kStart * steps < pooled;
}

int64_t axisOf(const ir::Node* node) {
  return node->attributeAs<int64_t>(0);
}

}  // namespace

Status Legalizer::lowerReduceSum(ir::Node* node) {
  const AxisSplit split(node->operand(0)->shape(), axisOf(node));
  const auto operand = rescaledOperand(node->operand(0));
  if (!operand.ok()) return operand.error();
  std::vector<ir::Node*> operations;
  const auto& source = operand.value();
  const bool narrow =
      source && source->unit() && split.size <= kMaxKernelArea && (split.inner == 1 || source->bits() == 8);
  Operand summed{};
  if (narrow) {
    summed = *source;
  } else {
    CARINA_TRY(summed.value, get(node->operand(0)));
  }
  const auto add = [&](ir::Value* a, ir::Value* b) {
    return elementwise(ElementwiseMode::ADD, a, b, DType::Int32);
  };
  CARINA_TRY(ir::Value * sum, reducedInParts(
                                  npu_ir::createReshape(builder_, summed.value, split.shape()),
                                  [&](ir::Value* map) {
                                    return columnSums({map, summed.zeroPoint}, DType::Int32, operations);
                                  },
                                  add));
  // Only a single operation may still absorb a RESCALE.
  if (operations.size() != 1 || sum->numElements() != operations[0]->result()->numElements())
    operations.clear();
  define(node->result(), sum, std::move(operations));
  return {};
}

Result<ir::Value*> Legalizer::columnSums(const Operand& operand, DType type,
                                         std::vector<ir::Node*>& operations) {
  const Shape shape = operand.value->shape();
  const int64_t outer = shape[0], inner = shape[2];
  if (inner == 1) {
    ir::Value* map = npu_ir::createReshape(builder_, operand.value, {1, outer, shape[1]});
    Window w;
    w.ifmZeroPoint = operand.zeroPoint;
    ir::Value* sum = npu_ir::createPool(builder_, map, PoolMode::REDUCE_SUM, w, {}, type);
    operations.push_back(sum->producer());
    return sum;
  }
  if (operand.bits() == 8) {
    // A depthwise convolution with ones adds up 8-bit values without another pass.
    const int64_t channels = outer == 1 && shape[1] <= kMaxKernelHeight ? columnChannels(inner) : inner;
    const bool wide = channels < inner;
    Convolution conv;
    conv.ifm = wide ? npu_ir::createReshape(builder_, operand.value, {shape[1], inner / channels, channels})
                    : operand.value;
    conv.depthwise = true;
    conv.window.kernel = wide ? ir::Ints{shape[1], 1} : ir::Ints{1, shape[1]};
    conv.window.ifmZeroPoint = operand.zeroPoint;
    conv.weight = Tensor::zeros(DType::Int8, {conv.window.kernel[0], conv.window.kernel[1], channels});
    for (int64_t i = 0; i < conv.weight.numElements(); ++i) conv.weight.setIntegerAt(i, 1);
    conv.bias = Tensor::zeros(DType::Int32, {channels});
    CARINA_TRY(ir::Value * sums, convolve(std::move(conv), operations));
    return wide ? npu_ir::createReshape(builder_, sums, {1, 1, inner}) : sums;
  }
  // Add halves until one is left.
  ir::Value* rest = operand.value;
  std::vector<ir::Value*> odd;
  const auto add = [&](ir::Value* a, ir::Value* b) {
    return npu_ir::createElementwise(builder_, ElementwiseMode::ADD, {a}, {b}, npu_ir::Rounding::NATURAL, {},
                                     DType::Int32);
  };
  ir::Node* last = nullptr;
  for (int64_t size = shape[1]; size > 1;) {
    const int64_t half = size / 2;
    const auto part = [&](int64_t start, int64_t count) {
      return npu_ir::createSlice(builder_, rest, {0, start, 0}, {outer, count, inner});
    };
    if (size % 2 != 0) odd.push_back(part(size - 1, 1));
    rest = add(part(0, half), part(half, half));
    last = rest->producer();
    size = half;
  }
  for (ir::Value* value : odd) {
    rest = add(rest, value);
    last = rest->producer();
  }
  if (last) operations.push_back(last);
  return rest;
}

ir::Value* Legalizer::extremum(ir::Value* map, bool maximum) {
  Window w;
  w.kernel = {1, map->dim(1)};
  const DType type = map->dtype();
  if (maximum || npu().extendedPools)
    return npu_ir::createPool(builder_, map, maximum ? PoolMode::MAX : PoolMode::MIN, w, {}, type);
  // min(x) = -1 - max(-1 - x), which stays within 8 or 16 bits.
  const auto mirrored = [&](ir::Value* x) {
    return npu_ir::createElementwise(builder_, ElementwiseMode::SUB, {scalarConstant(type, -1)}, {x},
                                     npu_ir::Rounding::NATURAL, {}, type);
  };
  return mirrored(npu_ir::createPool(builder_, mirrored(map), PoolMode::MAX, w, {}, type));
}

Result<ir::Value*> Legalizer::columnExtremes(ir::Value* map, bool maximum) {
  const DType type = map->dtype();
  const ElementwiseMode mode = maximum ? ElementwiseMode::MAX : ElementwiseMode::MIN;
  const auto reduce = [&](ir::Value* part) -> Result<ir::Value*> {
    if (dtypeSize(type) <= 2 && !halvesAreFaster(part->shape(), type, target_))
      return extremum(part, maximum);
    // Compare halves until one is left; the two halves of an odd number overlap. Rows of single elements are
    // placed along the channels.
    const int64_t outer = part->dim(0), inner = part->dim(2);
    if (inner == 1) part = npu_ir::createReshape(builder_, part, {1, outer, part->dim(1)});
    const size_t axis = inner == 1 ? 2 : 1;
    for (int64_t size = part->shape()[axis]; size > 1;) {
      const int64_t half = (size + 1) / 2;
      Shape start{0, 0, 0}, count = part->shape();
      count[axis] = half;
      ir::Value* a = npu_ir::createSlice(builder_, part, start, count);
      start[axis] = size - half;
      ir::Value* b = npu_ir::createSlice(builder_, part, start, count);
      part = npu_ir::createElementwise(builder_, mode, {a}, {b}, npu_ir::Rounding::NATURAL, {}, type);
      size = half;
    }
    return part;
  };
  return reducedInParts(map, reduce,
                        [&](ir::Value* a, ir::Value* b) { return elementwise(mode, a, b, type); });
}

Status Legalizer::lowerReduceExtremum(ir::Node* node, bool maximum) {
  const AxisSplit split(node->operand(0)->shape(), axisOf(node));
  CARINA_TRY(ir::Value * value, get(node->operand(0)));
  CARINA_TRY(ir::Value * result,
             columnExtremes(npu_ir::createReshape(builder_, value, split.shape()), maximum));
  const ir::Node* producer = result->producer();
  const bool single = producer && ir::isa<npu_ir::Pool>(producer);
  define(node->result(), result,
         single ? std::vector<ir::Node*>{result->producer()} : std::vector<ir::Node*>{});
  return {};
}

Status Legalizer::lowerReduceBool(ir::Node* node, bool all) {
  const AxisSplit split(node->operand(0)->shape(), axisOf(node));
  CARINA_TRY(ir::Value * value, get(node->operand(0)));
  ir::Value* map =
      npu_ir::createView(builder_, value, DType::Int8, split.shape(), 0, rowMajorStrides(split.shape()));
  CARINA_TRY(ir::Value * result, columnExtremes(map, !all));
  define(node->result(), result);
  return {};
}

Status Legalizer::lowerArgmax(ir::Node* node) {
  const AxisSplit split(node->operand(0)->shape(), axisOf(node));
  CARINA_TRY(ir::Value * value, get(node->operand(0)));
  ir::Value* map = npu_ir::createReshape(builder_, value, split.shape());
  // The best of each part: a later one wins only if it is larger than all before.
  ir::Value *position = nullptr, *largest = nullptr;
  const auto wide = [&](ElementwiseMode mode, ir::Value* a, ir::Value* b) {
    return elementwise(mode, a, b, DType::Int32);
  };
  const auto reduce = [&](ir::Value* part) { return columnPositions(part); };
  const auto none = [](ir::Value*, ir::Value*) -> Result<ir::Value*> {
    CARINA_UNREACHABLE("parts of ARGMAX");
  };
  for (int64_t first = 0; first < split.size; first += kMaxArgmax) {
    const int64_t count = std::min(kMaxArgmax, split.size - first);
    ir::Value* part = npu_ir::createSlice(builder_, map, {0, first, 0}, {split.outer, count, split.inner});
    CARINA_TRY(ir::Value * at, reducedInParts(part, reduce, none));
    if (split.size <= kMaxArgmax) {
      position = at;
      break;
    }
    CARINA_TRY(ir::Value * best, columnExtremes(part, true));
    if (!position) {
      position = at;
      largest = best;
      continue;
    }
    OutputStage stage;
    stage.clamp = {0, 1};
    CARINA_TRY(ir::Value * larger, elementwise(ElementwiseMode::SUB, best, largest, DType::Int16, stage));
    CARINA_TRY(larger, widen(larger, 0));
    CARINA_TRY(at, wide(ElementwiseMode::ADD, at, scalarConstant(DType::Int32, first)));
    CARINA_TRY(at, wide(ElementwiseMode::SUB, at, position));
    CARINA_TRY(at, wide(ElementwiseMode::MUL, larger, at));
    CARINA_TRY(position, wide(ElementwiseMode::ADD, position, at));
    CARINA_TRY(largest, elementwise(ElementwiseMode::MAX, largest, best, largest->dtype()));
  }
  define(node->result(), position);
  return {};
}

Result<ir::Value*> Legalizer::columnPositions(ir::Value* map) {
  const int64_t size = map->dim(1);
  Window w;
  w.kernel = {1, size};
  if (npu().extendedPools) return npu_ir::createPool(builder_, map, PoolMode::ARGMAX_X, w, {}, DType::Int32);
  // Each position by its distance from the end.
  const auto distances = [&](DType type) {
    Tensor distance = Tensor::zeros(type, {1, size, 1});
    for (int64_t i = 0; i < size; ++i) distance.setIntegerAt(i, size - 1 - i);
    return constant(std::move(distance));
  };
  ir::Value* position = nullptr;
  if (map->dtype() == DType::Int8 && size <= 128) {
    // x*128 plus the distance orders by value, then by earliest position; a table extracts the position.
    ir::Value* keyed =
        npu_ir::createElementwise(builder_, ElementwiseMode::ADD, {map, 0, {128, 0}},
                                  {distances(DType::Int8)}, npu_ir::Rounding::NATURAL, {}, DType::Int16);
    Tensor words = Tensor::zeros(DType::Int32, {512});
    const uint32_t word = (static_cast<uint32_t>(-128) << 16) | static_cast<uint32_t>(size - 1);
    for (int64_t i = 0; i < 512; ++i) words.setIntegerAt(i, static_cast<int32_t>(word));
    OutputStage stage;
    stage.tableKind = npu_ir::TableKind::LUT16;
    stage.table = constant(std::move(words));
    position = npu_ir::createPool(builder_, keyed, PoolMode::MAX, w, stage, DType::Int16);
  } else {
    // 1 where an element is the maximum: then the farthest from the end among those.
    OutputStage stage;
    stage.zeroPoint = 1;
    stage.clamp = {0, 1};
    CARINA_TRY(ir::Value * largest,
               elementwise(ElementwiseMode::SUB, map, extremum(map, true), DType::Int16, stage));
    CARINA_TRY(ir::Value * distance,
               elementwise(ElementwiseMode::MUL, largest, distances(DType::Int16), DType::Int16));
    CARINA_TRY(position,
               elementwise(ElementwiseMode::SUB, scalarConstant(DType::Int16, size - 1),
                           npu_ir::createPool(builder_, distance, PoolMode::MAX, w, {}, DType::Int16),
                           DType::Int16));
  }
  return widen(position, 0);
}

}  // namespace carina::compiler
