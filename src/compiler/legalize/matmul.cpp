// SPDX-License-Identifier: Apache-2.0
// MATMUL. A constant matrix is the kernel of a convolution, and Ethos-U85 reads a computed one in its place.
// Ethos-U55 and U65 write it as the weights of a convolution (coded_product.cpp), or multiply by one row of
// it at a time and add up. If 16-bit operands need 48-bit sums, these are computed in halves that are
// combined after the multiplier of the following RESCALE.
#include <algorithm>

#include "compiler/legalize/legalizer.hpp"
#include "compiler/storage/storage.hpp"

namespace carina::compiler {

using npu_ir::ElementwiseMode;
using npu_ir::OutputStage;
using npu_ir::Piece;
using npu_ir::PoolMode;

namespace {

/// Limit on the pairs of operations of one product.
constexpr int64_t kMaxRows = 4096;

/// The depth up to which sums of 15 by 8 bits fit 31 bits, and up to which the uppermost word of a sum of 15
/// by 15 bits fits 16.
constexpr int64_t kChunk = 256, kExactDepth = 512;

/// The largest magnitude of the operand's values.
int64_t largest(DType type, int64_t zeroPoint) {
  return std::max(zeroPoint - integerMin(type), integerMax(type) - zeroPoint);
}

/// A value as elements of another one: RESHAPE and TRANSPOSE between them become strides.
struct Origin {
  const ir::Value* value = nullptr;
  Access access;  // in elements
};

/// The farthest value whose elements `value` has at strides that `readable` accepts.
Origin originOf(const ir::Value* value, const std::function<bool(const ir::Ints& strides)>& readable) {
  Origin farthest{value, {0, 0, value->shape(), rowMajorStrides(value->shape())}};
  Origin at = farthest;
  while (true) {
    if (const auto reshape = ir::producerAs<tosa::Reshape>(at.value)) {
      at.value = reshape.input1();
    } else if (const auto transpose = ir::producerAs<tosa::Transpose>(at.value)) {
      const Shape strides = rowMajorStrides(transpose.input1()->shape());
      Access moved{0, 0, at.value->shape(), {}};
      for (const int64_t axis : transpose.perms())
        moved.strides.push_back(strides[static_cast<size_t>(axis)]);
      const auto access = composeView(moved, 1, at.access.offset, at.access.strides, value->shape());
      if (!access) return farthest;
      at = {transpose.input1(), *access};
    } else {
      return farthest;
    }
    if (readable(at.access.strides)) farthest = at;
  }
}

}  // namespace

Status Legalizer::lowerMatmul(ir::Node* node) {
  const ir::Value *first = node->operand(0), *second = node->operand(1);
  const int64_t batch = first->dim(0), rows = first->dim(1), depth = first->dim(2), columns = second->dim(2);
  const int64_t zeroA = constantValue(node->operand(2)), zeroB = constantValue(node->operand(3));
  const DType type = node->result()->dtype();
  const bool weights = second->isConstant() && second->dtype() == DType::Int8;
  if (!weights && !npu().computedWeights && first->dtype() == DType::Int8 &&
      prefersCodes(batch, rows, depth, columns))
    return codedProducts(node);
  CARINA_TRY(ir::Value * a, get(first));
  ir::Value* b = nullptr;
  if (!weights) {
    // Rows of the right matrix's columns: often those that a TRANSPOSE before it has read.
    const Origin origin = originOf(second, [](const ir::Ints& strides) { return strides[1] == 1; });
    if (const ir::Ints& strides = origin.access.strides; strides[1] == 1) {
      CARINA_TRY(ir::Value * rowsOfColumns, get(origin.value));
      b = npu_ir::createView(builder_, rowsOfColumns, second->dtype(), {batch, columns, depth},
                             origin.access.offset, {strides[0], strides[2], 1});
    } else {
      CARINA_TRY(ir::Value * raw, get(second));
      b = transposed(raw, {0, 2, 1});
    }
    // 48-bit sums of parts cannot be added up.
    const bool deep = depth > kMaxAxis && first->dtype() == DType::Int16;
    if (!npu().computedWeights || deep) {
      if (first->dtype() == DType::Int16) return wideProducts(node, a, b);
      CARINA_TRY(ir::Value * sums, rowProducts({a, zeroA}, {b, zeroB}, DType::Int32));
      define(node->result(), sums);
      return {};
    }
  }
  std::vector<Piece> pieces;
  std::vector<ir::Node*> operations;
  for (int64_t n = 0; n < batch; ++n) {
    ir::Value* left = npu_ir::createView(builder_, a, a->dtype(), {1, rows, depth}, n * rows * depth,
                                         {rows * depth, depth, 1});
    const int64_t at = n * rows * columns;
    if (weights) {
      Convolution conv;
      conv.ifm = left;
      conv.window.ifmZeroPoint = zeroA;
      conv.weightZeroPoint = zeroB;
      conv.type = type;
      conv.weight = Tensor::zeros(DType::Int8, {columns, 1, 1, depth});
      for (int64_t k = 0; k < depth; ++k) {
        for (int64_t j = 0; j < columns; ++j) {
          conv.weight.setIntegerAt(j * depth + k,
                                   second->constant().integerAt((n * depth + k) * columns + j));
        }
      }
      conv.bias = Tensor::zeros(DType::Int32, {columns});
      CARINA_TRY(ir::Value * result, convolve(std::move(conv), operations));
      pieces.push_back({result, at, {rows * columns, columns, 1}});
      continue;
    }
    ir::Value* right = npu_ir::createView(builder_, b, b->dtype(), {1, columns, depth}, n * columns * depth,
                                          {columns * depth, depth, 1});
    if (std::max({rows, depth, columns}) > kMaxAxis) {
      CARINA_TRY(ir::Value * result, productInParts({left, zeroA}, {right, zeroB}, type));
      pieces.push_back({result, at, {rows * columns, columns, 1}});
      continue;
    }
    ir::Value* result = npu_ir::createMatMul(builder_, left, right, zeroA, zeroB, {}, type);
    operations.push_back(result->producer());
    pieces.push_back({result, at, {rows * columns, columns, 1}});
  }
  if (operations.size() != pieces.size()) operations.clear();
  define(node->result(),
         pieces.size() == 1 ? pieces[0].value
                            : npu_ir::createJoin(builder_, pieces, {type, node->result()->shape()}),
         std::move(operations));
  return {};
}

Status Legalizer::codedProducts(ir::Node* node) {
  const ir::Value *first = node->operand(0), *second = node->operand(1);
  const int64_t batch = first->dim(0), rows = first->dim(1), depth = first->dim(2), columns = second->dim(2);
  const Origin a = originOf(first, [](const ir::Ints& strides) { return strides[2] == 1; });
  const Origin b =
      originOf(second, [](const ir::Ints& strides) { return strides[1] == 1 || strides[2] == 1; });
  CARINA_TRY(ir::Value * left, get(a.value));
  RightMatrix right;
  CARINA_TRY(right.value, get(b.value));
  right.depthStride = b.access.strides[1];
  right.columnStride = b.access.strides[2];
  right.zeroPoint = constantValue(node->operand(3));
  std::vector<Piece> pieces;
  std::vector<ir::Node*> operations;
  for (int64_t n = 0; n < batch; ++n) {
    ir::Value* map = npu_ir::createView(builder_, left, left->dtype(), {1, rows, depth},
                                        a.access.offset + n * a.access.strides[0],
                                        {rows * a.access.strides[1], a.access.strides[1], 1});
    right.offset = b.access.offset + n * b.access.strides[0];
    CARINA_TRY(ir::Value * result, codedProduct({map, constantValue(node->operand(2))}, right, columns,
                                                DType::Int32, operations));
    pieces.push_back({result, n * rows * columns, {rows * columns, columns, 1}});
  }
  define(node->result(),
         pieces.size() == 1 ? pieces[0].value
                            : npu_ir::createJoin(builder_, pieces, {DType::Int32, node->result()->shape()}),
         std::move(operations));
  return {};
}

Result<ir::Value*> Legalizer::productInParts(const Operand& x, const Operand& y, DType type) {
  const int64_t rows = x.value->dim(1), columns = y.value->dim(1), depth = x.value->dim(2);
  const auto part = [&](Operand operand, int64_t first, int64_t count, int64_t from, int64_t size) {
    operand.value = npu_ir::createSlice(builder_, operand.value, {0, first, from}, {1, count, size});
    return operand;
  };
  std::vector<Piece> pieces;
  for (int64_t row = 0; row < rows; row += kMaxAxis) {
    const int64_t height = std::min(kMaxAxis, rows - row);
    for (int64_t column = 0; column < columns; column += kMaxAxis) {
      const int64_t width = std::min(kMaxAxis, columns - column);
      ir::Value* sum = nullptr;
      for (int64_t from = 0; from < depth; from += kMaxAxis) {
        const int64_t size = std::min(kMaxAxis, depth - from);
        const Operand a = part(x, row, height, from, size), b = part(y, column, width, from, size);
        ir::Value* product =
            npu_ir::createMatMul(builder_, a.value, b.value, a.zeroPoint, b.zeroPoint, {}, type);
        if (sum) {
          CARINA_TRY(sum, elementwise(ElementwiseMode::ADD, sum, product, type));
        } else {
          sum = product;
        }
      }
      pieces.push_back({sum, row * columns + column, {rows * columns, columns, 1}});
    }
  }
  return pieces.size() == 1 ? pieces[0].value
                            : npu_ir::createJoin(builder_, pieces, {type, {1, rows, columns}});
}

Result<ir::Value*> Legalizer::rowProducts(const Operand& x, const Operand& y, DType type) {
  const int64_t batch = x.value->dim(0), depth = x.value->dim(2);
  const Shape shape{batch, x.value->dim(1), y.value->dim(1)};
  const Shape strides = rowMajorStrides(shape);
  // One pair of operations for each row of the operand with fewer rows.
  const bool bySecond = shape[2] <= shape[1];
  const int64_t count = bySecond ? shape[2] : shape[1];
  if (count > kMaxRows) {
    return fail(Code::HardwareLimit,
                "the product of {} by {} computed rows takes {} operations, more than {}, on {}", shape[1],
                shape[2], 2 * count, 2 * kMaxRows, npu::familyName(target_.family))
        .withRemedy("split it, or keep it on the CPU");
  }
  // 16-bit products halve the traffic.
  const bool small = largest(x.value->dtype(), x.zeroPoint) * largest(y.value->dtype(), y.zeroPoint) <=
                     integerMax(DType::Int16);
  const DType product = small ? DType::Int16 : type;
  std::vector<Piece> pieces;
  for (int64_t i = 0; i < count; ++i) {
    Operand row = bySecond ? y : x;
    row.value = npu_ir::createSlice(builder_, row.value, {0, i, 0}, {batch, 1, depth});
    CARINA_TRY(ir::Value * products, elementwise(ElementwiseMode::MUL, bySecond ? x : y, row, {}, product));
    const int64_t lines = products->dim(0) * products->dim(1);
    const auto add = [&](ir::Value* a, ir::Value* b) {
      return elementwise(ElementwiseMode::ADD, a, b, type);
    };
    std::vector<ir::Node*> operations;
    CARINA_TRY(ir::Value * sums,
               reducedInParts(
                   npu_ir::createReshape(builder_, products, {lines, depth, 1}),
                   [&](ir::Value* map) { return columnSums({map}, type, operations); }, add));
    sums = npu_ir::createReshape(builder_, sums, {products->dim(0), products->dim(1), 1});
    pieces.push_back({sums, i * strides[bySecond ? 2 : 1], {strides[0], strides[bySecond ? 1 : 2], 1}});
  }
  return npu_ir::createJoin(builder_, pieces, {type, shape});
}

Result<ir::Value*> Legalizer::productOfBytes(ir::Value* x, const Operand& y, int64_t start, int64_t count) {
  const int64_t batch = x->dim(0), rows = x->dim(1), columns = y.value->dim(1), depth = x->dim(2);
  const auto part = [&](ir::Value* value, int64_t first, int64_t size) {
    return npu_ir::createSlice(builder_, value, {first, 0, start}, {size, value->dim(1), count});
  };
  if (y.value->dtype() != DType::Int8)
    return rowProducts({part(x, 0, batch)}, {part(y.value, 0, batch), y.zeroPoint}, DType::Int32);
  std::vector<ir::Node*> operations;
  std::vector<Piece> pieces;
  for (int64_t n = 0; n < batch; ++n) {
    const RightMatrix right{y.value, n * columns * depth + start, 1, depth, y.zeroPoint};
    CARINA_TRY(ir::Value * result, codedProduct({part(x, n, 1)}, right, columns, DType::Int32, operations));
    pieces.push_back({result, n * rows * columns, {rows * columns, columns, 1}});
  }
  return npu_ir::createJoin(builder_, pieces, {DType::Int32, {batch, rows, columns}});
}

Result<ir::Value*> Legalizer::upperBits(ir::Value* value, int64_t from, DType type) {
  OutputStage stage;
  stage.shifts = {from};
  return elementwise(ElementwiseMode::SUB, value, scalarConstant(value->dtype(), int64_t{1} << (from - 1)),
                     type, stage);
}

Status Legalizer::wideProducts(ir::Node* node, ir::Value* a, ir::Value* b) {
  const auto rescale = consumingRescale(node->result());
  if (!rescale || rescale->perChannel() || rescale->inputZeroPoint != 0 ||
      rescale->rounding != npu_ir::Rounding::NATURAL || dtypeSize(rescale->outputType) > 2) {
    return fail(Code::NoIntegerForm,
                "the product of 16-bit matrices is not rescaled immediately to 8 or 16 bits, as {} needs",
                npu::familyName(target_.family))
        .withRemedy("make a single RESCALE the only use of its result");
  }
  if (constantValue(node->operand(2)) != 0 || constantValue(node->operand(3)) != 0)
    return fail(Code::NoIntegerForm, "the product of 16-bit matrices has zero points")
        .withRemedy("quantize 16 bits symmetrically");
  const int64_t depth = a->dim(2), columns = b->dim(1);
  const int64_t multiplier = rescale->multipliers[0], shift = rescale->shifts[0];
  if (shift < 9 || multiplier > 0x7fff ||
      (depth > kExactDepth &&
       (shift > 53 || (0xffff * multiplier) >> std::max<int64_t>(shift - 23, 0) < 0x8000))) {
    return fail(Code::NoIntegerForm,
                "the product of 16-bit matrices over {} elements cannot be rescaled by {} >> {} on {}", depth,
                multiplier, shift, npu::familyName(target_.family))
        .withRemedy("use int8, or keep it on the CPU");
  }
  // b = 256 * high + low, both within 16 bits, low from 0 to 255; as bytes, low is stored minus 128.
  const bool coded = prefersCodes(a->dim(0), a->dim(1), std::min(depth, kChunk), columns);
  WideProduct product{a, nullptr, {nullptr, coded ? -128 : 0}, multiplier, shift, {}, rescale->outputType};
  product.stage.zeroPoint = rescale->outputZeroPoint;
  CARINA_TRY(product.high, upperBits(b, 8, DType::Int16));
  OutputStage lowStage;
  lowStage.zeroPoint = product.low.zeroPoint;
  CARINA_TRY(product.low.value,
             elementwise(ElementwiseMode::SUB, Operand{b}, Operand{product.high, 0, 256, 0}, lowStage,
                         coded ? DType::Int8 : DType::Int16));
  if (coded) {
    CARINA_TRY(product.high, upperBits(b, 8, DType::Int8));
  }
  WideProduct reduced = product;
  reduceScale(reduced.multiplier, reduced.shift, rescale->rounding);
  const bool onlyShifts = reduced.multiplier == 1 && reduced.shift > 8 && depth <= kChunk;
  std::vector<ir::Node*> operations;
  CARINA_TRY(ir::Value * result,
             onlyShifts ? shiftedProduct(reduced, operations) : scaledProduct(product, operations));
  CARINA_CHECK(result->dim(2) == columns, "a product has the columns of its second operand");
  // Zero point and shift are in use: only a clamp or a table may still be fused.
  define(node->result()->uses().front().node->result(), result, std::move(operations));
  return {};
}

Result<ir::Value*> Legalizer::shiftedProduct(WideProduct product, std::vector<ir::Node*>& operations) {
  const int64_t depth = product.a->dim(2);
  CARINA_TRY(ir::Value * upper, productOfBytes(product.a, {product.high}, 0, depth));
  CARINA_TRY(ir::Value * lower, productOfBytes(product.a, product.low, 0, depth));
  // The lowest 8 bits of the sum do not affect the rounding.
  CARINA_TRY(ir::Value * carry, upperBits(lower, 8, DType::Int32));
  product.stage.shifts = {product.shift - 8};
  return elementwise(ElementwiseMode::ADD, Operand{upper}, Operand{carry}, product.stage, product.type,
                     &operations);
}

Result<ir::Value*> Legalizer::scaledProduct(WideProduct product, std::vector<ir::Node*>& operations) {
  const int64_t depth = product.a->dim(2), multiplier = product.multiplier, shift = product.shift;
  const auto number = [&](int64_t n) { return scalarConstant(DType::Int32, n); };
  const auto wide = [&](ElementwiseMode mode, ir::Value* x, ir::Value* y) {
    return elementwise(mode, x, y, DType::Int32);
  };
  const auto above = [&](ir::Value* x, int64_t bits) { return upperBits(x, bits, DType::Int32); };
  const auto below = [&](ir::Value* x, ir::Value* upper, int64_t bits) -> Result<ir::Value*> {
    CARINA_TRY(ir::Value * part, wide(ElementwiseMode::MUL, upper, number(int64_t{1} << bits)));
    return wide(ElementwiseMode::SUB, x, part);
  };
  const auto plus = [&](ir::Value*& sum, ir::Value* x) -> Status {
    if (!sum) {
      sum = x;
      return {};
    }
    CARINA_TRY(sum, wide(ElementwiseMode::ADD, sum, x));
    return {};
  };
  // The sum is 2^23 * top + 2^8 * middle + bottom, middle and bottom non-negative.
  ir::Value *top = nullptr, *middle = nullptr, *bottom = nullptr;
  for (int64_t start = 0; start < depth; start += kChunk) {
    const int64_t count = std::min(kChunk, depth - start);
    CARINA_TRY(ir::Value * upper, productOfBytes(product.a, {product.high}, start, count));
    CARINA_TRY(ir::Value * lower, productOfBytes(product.a, product.low, start, count));
    CARINA_TRY(ir::Value * carry, above(lower, 8));
    CARINA_TRY(ir::Value * rest, below(lower, carry, 8));
    CARINA_TRY(upper, wide(ElementwiseMode::ADD, upper, carry));
    CARINA_TRY(carry, above(upper, 15));
    CARINA_TRY(upper, below(upper, carry, 15));
    CARINA_RETURN_IF_ERROR(plus(top, carry));
    CARINA_RETURN_IF_ERROR(plus(middle, upper));
    CARINA_RETURN_IF_ERROR(plus(bottom, rest));
  }
  if (depth > kChunk) {
    CARINA_TRY(ir::Value * carry, above(bottom, 8));
    CARINA_TRY(bottom, below(bottom, carry, 8));
    CARINA_TRY(middle, wide(ElementwiseMode::ADD, middle, carry));
    CARINA_TRY(carry, above(middle, 15));
    CARINA_TRY(middle, below(middle, carry, 15));
    CARINA_TRY(top, wide(ElementwiseMode::ADD, top, carry));
  }
  if (depth > kExactDepth) {
    // Anything beyond saturates the result.
    CARINA_TRY(top, wide(ElementwiseMode::MIN, top, number(0xffff)));
    CARINA_TRY(top, wide(ElementwiseMode::MAX, top, number(-0x10000)));
  }
  // The product of sum and multiplier divided by 2^8, without its fraction: 2^15 * upper + lower.
  CARINA_TRY(bottom, wide(ElementwiseMode::MUL, bottom, number(multiplier)));
  CARINA_TRY(bottom, above(bottom, 8));
  CARINA_TRY(middle, wide(ElementwiseMode::MUL, middle, number(multiplier)));
  CARINA_TRY(ir::Value * lower, wide(ElementwiseMode::ADD, middle, bottom));
  CARINA_TRY(ir::Value * carry, above(lower, 15));
  CARINA_TRY(ir::Value * upper, wide(ElementwiseMode::MUL, top, number(multiplier)));
  if (shift >= 24) {
    // `lower` does not affect the rounding.
    product.stage.shifts = {shift - 23};
  } else {
    CARINA_TRY(ir::Value * rest, below(lower, carry, 15));
    CARINA_TRY(upper, wide(ElementwiseMode::ADD, upper, carry));
    CARINA_TRY(upper, wide(ElementwiseMode::MIN, upper, number(0xffff)));
    CARINA_TRY(upper, wide(ElementwiseMode::MAX, upper, number(-0x10000)));
    CARINA_TRY(upper, wide(ElementwiseMode::MUL, upper, number(int64_t{1} << (23 - shift))));
    OutputStage rounded;
    rounded.shifts = {shift - 8};
    CARINA_TRY(carry, elementwise(ElementwiseMode::ADD, rest, number(0), DType::Int32, rounded));
  }
  return elementwise(ElementwiseMode::ADD, Operand{upper}, Operand{carry}, product.stage, product.type,
                     &operations);
}

}  // namespace carina::compiler
