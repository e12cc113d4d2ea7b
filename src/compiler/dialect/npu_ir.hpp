// SPDX-License-Identifier: Apache-2.0
// The npu dialect: one node per NPU operation, plus VIEW (reads a value through offset and strides) and JOIN
// (a value composed of pieces that others computed), which cost nothing if addressing can express them.
// Feature maps are values of rank 3 (height, width, depth). Every operation ends in the same output stage:
//   v = scale(acc, multiplier, shift, rounding) + ofm_zp; clamp; table; saturate to the result's type
// Rules of the arithmetic: ethosu-numerics 1 to 6.
#pragma once

#include <optional>
#include <utility>

#include "npu_ir/ops.hpp"

namespace carina::npu_ir {

/// The output stage of an operation. Multipliers and shifts: one, or one per output channel.
struct OutputStage {
  ir::Ints multipliers{1};
  ir::Ints shifts{0};
  Rounding rounding = Rounding::NATURAL;
  int64_t zeroPoint = 0;
  std::optional<std::pair<int64_t, int64_t>> clamp;  // in output units, zero point included
  TableKind tableKind = TableKind::NONE;
  ir::Value* table = nullptr;  // TANH and SIGMOID: only on Ethos-U85

  /// TANH and SIGMOID see the value before it is saturated (wide_function.hpp).
  bool wideFunction() const { return tableKind == TableKind::TANH || tableKind == TableKind::SIGMOID; }

  bool perChannel() const { return multipliers.size() > 1; }
  /// v passes through the scale unchanged.
  bool unitScale() const;
  /// v passes through everything but saturation unchanged.
  bool identity() const { return unitScale() && zeroPoint == 0 && !clamp && tableKind == TableKind::NONE; }
};

/// Whether the node has an output stage (everything but VIEW, JOIN, GATHER, SCATTER).
bool hasOutputStage(const ir::Node* node);
OutputStage outputStage(const ir::Node* node);
void setOutputStage(ir::Node* node, const OutputStage& stage);

/// Spatial window of CONV, DEPTHWISE and POOL, in upscaled input coordinates. pad: top, left, bottom, right.
struct Window {
  ir::Ints kernel{1, 1}, stride{1, 1}, dilation{1, 1}, pad{0, 0, 0, 0};
  Upscale upscale = Upscale::NONE;
  int64_t ifmZeroPoint = 0;
};
Window window(const ir::Node* node);

ir::Value* createConv(ir::Builder& builder, ir::Value* ifm, ir::Value* weight, ir::Value* bias,
                      const Window& window, ir::Ints weightZeroPoints, const OutputStage& stage, DType type);
ir::Value* createDepthwise(ir::Builder& builder, ir::Value* ifm, ir::Value* weight, ir::Value* bias,
                           const Window& window, ir::Ints weightZeroPoints, const OutputStage& stage,
                           DType type);
/// REDUCE_SUM sums over depth; the result has depth 1. `transpose`: U85 output permutation, result dim i =
/// computed dim transpose[i].
ir::Value* createPool(ir::Builder& builder, ir::Value* ifm, PoolMode mode, const Window& window,
                      const OutputStage& stage, DType type, ir::Ints transpose = {0, 1, 2});
/// Number of bits below the point at which DOUBLE_SYMMETRIC first rounds operands of sums, as the hardware
/// does for TFLite: 20 for 8-bit operands, 15 for 16-bit ones.
constexpr int64_t operandPreShift(DType type) {
  return type == DType::Int8 || type == DType::UInt8 ? 20 : 15;
}
/// An operand of an elementwise operation: value, zero point and scale (multiplier, shift).
struct ElementwiseOperand {
  ir::Value* value = nullptr;
  int64_t zeroPoint = 0;
  ir::Ints scale{1, 0};
};
/// ifm2.value null for unary modes. Operands broadcast: each dimension equal or 1.
ir::Value* createElementwise(ir::Builder& builder, ElementwiseMode mode, const ElementwiseOperand& ifm,
                             const ElementwiseOperand& ifm2, Rounding operandRounding,
                             const OutputStage& stage, DType type);
/// result[m,n] of [1,M,N]: sum over k of ifm[0,m,k] * ifm2[0,n,k].
ir::Value* createMatMul(ir::Builder& builder, ir::Value* ifm, ir::Value* ifm2, int64_t ifmZeroPoint,
                        int64_t ifm2ZeroPoint, const OutputStage& stage, DType type);
/// 1x1 pooling that moves data through the output stage: the universal copy. AVERAGE and SUM are the same for
/// one element.
ir::Value* createCopy(ir::Builder& builder, ir::Value* ifm, int64_t ifmZeroPoint, const OutputStage& stage,
                      DType type);

/// element i of the result is element offset + sum(i[d] * strides[d]) of the row-major input, both counted in
/// elements of the result's type (whose size may differ from the input's).
ir::Value* createView(ir::Builder& builder, ir::Value* input, DType type, Shape shape, int64_t offset,
                      ir::Ints strides);
/// The same elements in row-major order under another shape.
ir::Value* createReshape(ir::Builder& builder, ir::Value* input, Shape shape);
/// One box of the input: start and size per dimension.
ir::Value* createSlice(ir::Builder& builder, ir::Value* input, const Shape& start, const Shape& size);

/// Pieces of a JOIN: value, offset in the result and strides of the value's dimensions, in elements of the
/// value's type.
struct Piece {
  ir::Value* value = nullptr;
  int64_t offset = 0;
  ir::Ints strides;
};
ir::Value* createJoin(ir::Builder& builder, const std::vector<Piece>& pieces, ir::Type type);
std::vector<Piece> pieces(const ir::Node* join);

}  // namespace carina::npu_ir
