// SPDX-License-Identifier: Apache-2.0
// Reductions and ARGMAX along one axis.
#include <algorithm>
#include <numeric>

#include "compiler/legalizer.hpp"

namespace carina::compiler {

using npu_ir::ElementwiseMode;
using npu_ir::OutputStage;
using npu_ir::PoolMode;
using npu_ir::Window;

namespace {

constexpr int64_t kMaxAxis = 65536, kMaxKernelArea = 4096;

/// A shape around one axis: what lies outside, the axis, what lies inside.
struct AxisSplit {
  int64_t outer = 1, size = 1, inner = 1;
  AxisSplit(const Shape& shape, int64_t axis) {
    for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d) {
      const int64_t n = shape[static_cast<size_t>(d)];
      (d < axis ? outer : d == axis ? size : inner) *= n;
    }
  }
  Shape shape() const { return {outer, size, inner}; }
  bool fits() const { return outer <= kMaxAxis && size <= kMaxAxis && inner <= kMaxAxis; }
};

int64_t axisOf(const ir::Node* node) {
  return node->attributeAs<int64_t>(0);
}

}  // namespace

Status Legalizer::lowerReduceSum(ir::Node* node) {
  const AxisSplit split(node->operand(0)->shape(), axisOf(node));
  if (!split.fits())
    return fail("REDUCE_SUM over {} has an axis > 65536", shapeText(node->operand(0)->shape()))
        .withRemedy("split the tensor");
  const auto operand = rescaledOperand(node->operand(0));
  if (!operand.ok()) return operand.error();
  if (const auto& source = operand.value(); source && source->unit() && split.size <= kMaxKernelArea) {
    if (split.inner == 1) {
      ir::Value* map = npu_ir::createReshape(builder_, source->value, {1, split.outer, split.size});
      Window w;
      w.ifmZeroPoint = source->zeroPoint;
      ir::Value* sum = npu_ir::createPool(builder_, map, PoolMode::REDUCE_SUM, w, {}, DType::Int32);
      define(node->result(), sum, {sum->producer()});
      return {};
    }
    if (source->bits() == 8) {
      // A depthwise convolution by ones adds up 8-bit numbers without another pass.
      Convolution conv;
      conv.ifm = npu_ir::createReshape(builder_, source->value, split.shape());
      conv.depthwise = true;
      conv.window.kernel = {1, split.size};
      conv.window.ifmZeroPoint = source->zeroPoint;
      conv.weight = Tensor::zeros(DType::Int8, {1, split.size, split.inner});
      for (int64_t i = 0; i < conv.weight.numElements(); ++i) conv.weight.setIntegerAt(i, 1);
      conv.bias = Tensor::zeros(DType::Int32, {split.inner});
      std::vector<ir::Node*> operations;
      CARINA_TRY(ir::Value * sum, convolve(std::move(conv), operations));
      define(node->result(), sum, std::move(operations));
      return {};
    }
  }
  CARINA_TRY(ir::Value * value, get(node->operand(0)));
  if (split.inner == 1) {
    ir::Value* map = npu_ir::createReshape(builder_, value, {1, split.outer, split.size});
    ir::Value* sum = npu_ir::createPool(builder_, map, PoolMode::REDUCE_SUM, {}, {}, DType::Int32);
    define(node->result(), sum, {sum->producer()});
    return {};
  }
  // Halves are added until one is left.
  ir::Value* rest = npu_ir::createReshape(builder_, value, split.shape());
  std::vector<ir::Value*> odd;
  ir::Node* last = nullptr;
  const auto add = [&](ir::Value* a, ir::Value* b) {
    ir::Value* sum = npu_ir::createElementwise(builder_, ElementwiseMode::ADD, {a}, {b},
                                               npu_ir::Rounding::NATURAL, {}, DType::Int32);
    last = sum->producer();
    return sum;
  };
  for (int64_t size = split.size; size > 1;) {
    const int64_t half = size / 2;
    const auto part = [&](int64_t start, int64_t count) {
      return npu_ir::createSlice(builder_, rest, {0, start, 0}, {split.outer, count, split.inner});
    };
    if (size % 2 != 0) odd.push_back(part(size - 1, 1));
    rest = add(part(0, half), part(half, half));
    size = half;
  }
  for (ir::Value* value2 : odd) rest = add(rest, value2);
  define(node->result(), rest, last ? std::vector<ir::Node*>{last} : std::vector<ir::Node*>{});
  return {};
}

ir::Value* Legalizer::extremum(ir::Value* map, bool maximum) {
  Window w;
  w.kernel = {1, map->dim(1)};
  const DType type = map->dtype();
  if (maximum || u85())
    return npu_ir::createPool(builder_, map, maximum ? PoolMode::MAX : PoolMode::MIN, w, {}, type);
  // min(x) = -1 - max(-1 - x), which no 8 or 16-bit number leaves.
  const auto mirrored = [&](ir::Value* x) {
    return npu_ir::createElementwise(builder_, ElementwiseMode::SUB, {scalarConstant(type, -1)}, {x},
                                     npu_ir::Rounding::NATURAL, {}, type);
  };
  return mirrored(npu_ir::createPool(builder_, mirrored(map), PoolMode::MAX, w, {}, type));
}

Status Legalizer::lowerReduceExtremum(ir::Node* node, bool maximum) {
  const AxisSplit split(node->operand(0)->shape(), axisOf(node));
  if (!split.fits())
    return fail("{} over {} has an axis > 65536", node->opName(), shapeText(node->operand(0)->shape()))
        .withRemedy("split the tensor");
  CARINA_TRY(ir::Value * value, get(node->operand(0)));
  const DType type = value->dtype();
  ir::Value* map = npu_ir::createReshape(builder_, value, split.shape());
  if (dtypeSize(type) <= 2) {
    ir::Value* result = extremum(map, maximum);
    define(node->result(), result, {result->producer()});
    return {};
  }
  // Halves are compared until one is left; the two halves of an odd number overlap.
  for (int64_t size = split.size; size > 1;) {
    const int64_t half = (size + 1) / 2;
    ir::Value* a = npu_ir::createSlice(builder_, map, {0, 0, 0}, {split.outer, half, split.inner});
    ir::Value* b = npu_ir::createSlice(builder_, map, {0, size - half, 0}, {split.outer, half, split.inner});
    map = npu_ir::createElementwise(builder_, maximum ? ElementwiseMode::MAX : ElementwiseMode::MIN, {a}, {b},
                                    npu_ir::Rounding::NATURAL, {}, type);
    size = half;
  }
  define(node->result(), map);
  return {};
}

Status Legalizer::lowerReduceBool(ir::Node* node, bool all) {
  const AxisSplit split(node->operand(0)->shape(), axisOf(node));
  if (!split.fits())
    return fail("{} over {} has an axis > 65536", node->opName(), shapeText(node->operand(0)->shape()))
        .withRemedy("split the tensor");
  CARINA_TRY(ir::Value * value, get(node->operand(0)));
  ir::Value* map =
      npu_ir::createView(builder_, value, DType::Int8, split.shape(), 0, rowMajorStrides(split.shape()));
  define(node->result(), extremum(map, !all));
  return {};
}

Status Legalizer::lowerArgmax(ir::Node* node) {
  const AxisSplit split(node->operand(0)->shape(), axisOf(node));
  if (!split.fits())
    return fail("ARGMAX over {} has an axis > 65536", shapeText(node->operand(0)->shape()))
        .withRemedy("split the tensor");
  if (split.size > 32768)
    return fail("ARGMAX over {} elements > 32768", split.size).withRemedy("split the axis");
  CARINA_TRY(ir::Value * value, get(node->operand(0)));
  ir::Value* map = npu_ir::createReshape(builder_, value, split.shape());
  Window w;
  w.kernel = {1, split.size};
  if (u85()) {
    define(node->result(), npu_ir::createPool(builder_, map, PoolMode::ARGMAX_X, w, {}, DType::Int32));
    return {};
  }
  // Each position by its distance from the end.
  const auto distances = [&](DType type) {
    Tensor distance = Tensor::zeros(type, {1, split.size, 1});
    for (int64_t i = 0; i < split.size; ++i) distance.setIntegerAt(i, split.size - 1 - i);
    return constant(std::move(distance));
  };
  ir::Value* position = nullptr;
  if (value->dtype() == DType::Int8 && split.size <= 128) {
    // x*128 plus the distance orders by value, then by earliest position; a table takes the position out.
    ir::Value* keyed =
        npu_ir::createElementwise(builder_, ElementwiseMode::ADD, {map, 0, {128, 0}},
                                  {distances(DType::Int8)}, npu_ir::Rounding::NATURAL, {}, DType::Int16);
    Tensor words = Tensor::zeros(DType::Int32, {512});
    const uint32_t word = (static_cast<uint32_t>(-128) << 16) | static_cast<uint32_t>(split.size - 1);
    for (int64_t i = 0; i < 512; ++i) words.setIntegerAt(i, static_cast<int32_t>(word));
    OutputStage stage;
    stage.tableKind = npu_ir::TableKind::LUT16;
    stage.table = constant(std::move(words));
    position = npu_ir::createPool(builder_, keyed, PoolMode::MAX, w, stage, DType::Int16);
  } else {
    // 1 where an element is the largest, which nothing exceeds: then the farthest from the end among those.
    OutputStage stage;
    stage.zeroPoint = 1;
    stage.clamp = {0, 1};
    CARINA_TRY(ir::Value * largest,
               elementwise(ElementwiseMode::SUB, map, extremum(map, true), DType::Int16, stage));
    CARINA_TRY(ir::Value * distance,
               elementwise(ElementwiseMode::MUL, largest, distances(DType::Int16), DType::Int16));
    CARINA_TRY(position,
               elementwise(ElementwiseMode::SUB, scalarConstant(DType::Int16, split.size - 1),
                           npu_ir::createPool(builder_, distance, PoolMode::MAX, w, {}, DType::Int16),
                           DType::Int16));
  }
  CARINA_TRY(ir::Value * result, widen(position, 0));
  define(node->result(), result);
  return {};
}

}  // namespace carina::compiler
