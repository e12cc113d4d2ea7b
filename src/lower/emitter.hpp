// SPDX-License-Identifier: Apache-2.0
// Creates TOSA nodes in the graph being built, with constants for zero points and shapes, and inferred result
// types.
#pragma once

#include <array>
#include <map>
#include <span>
#include <vector>

#include "ir/op_view.hpp"
#include "lower/rescale_factor.hpp"

namespace carina::lower {

enum class Binary : uint8_t {
  Add,
  Sub,
  Mul,
  Maximum,
  Minimum,
  Equal,
  Greater,
  GreaterEqual,
  LogicalAnd,
  LogicalOr,
  LogicalXor,
  BitwiseAnd,
  BitwiseOr,
  BitwiseXor,
  LeftShift,
  ArithmeticRightShift,
  LogicalRightShift,
  IntDiv,
};
enum class Unary : uint8_t { Abs, LogicalNot, BitwiseNot, Clz, Identity };
enum class Reduce : uint8_t { Sum, Max, Min, All, Any };

/// All functions take and return values of the graph being built; shapes are TOSA's (channel-last for feature
/// maps). Data-movement operators fold constant operands.
class Emitter {
 public:
  explicit Emitter(ir::Graph& graph) : graph_(&graph) {}
  void setLocation(ir::LocationRef location) { location_ = std::move(location); }

  ir::Value* constant(Tensor tensor) { return graph_->addConstant(std::move(tensor)); }
  /// One element of an integer type; shape [1]. Equal scalars share one constant.
  ir::Value* scalar(DType dtype, int64_t value);

  /// One factor, or one per index of the last dimension. int48 inputs take 16-bit multipliers, all others
  /// 32-bit ones. `most`: the largest magnitude of the input's elements, if the nodes that produce it do not
  /// determine it.
  Result<ir::Value*> rescale(ir::Value* input, DType to, int64_t inputZero, int64_t outputZero,
                             std::span<const double> factors, std::optional<double> most = {});
  /// The same with given multipliers and shifts; `doubleRound`: with TFLite's rounding. Constants are not
  /// folded.
  ir::Value* rescale(ir::Value* input, DType to, int64_t inputZero, int64_t outputZero,
                     std::span<const RescaleFactor> factors, bool scale32, bool doubleRound);

  /// Subtracts 128 from uint8 values, whose bytes TOSA holds in int8 tensors; the result is int8.
  ir::Value* lessHalf(ir::Value* bytes);
  /// Adds 128 to int8 values; the result holds the bytes of uint8.
  ir::Value* plusHalf(ir::Value* codes);

  struct Window {
    std::vector<int64_t> stride, dilation;
    std::vector<int64_t> pad;  // before and after per dimension, outermost first
  };
  /// weight [OC, KH, KW, IC], bias [OC]; result int32, for int16 inputs int48.
  ir::Value* conv2d(ir::Value* input, ir::Value* weight, ir::Value* bias, int64_t inputZero,
                    int64_t weightZero, const Window& window);
  /// weight [KH, KW, C, M], bias [C * M].
  ir::Value* depthwiseConv2d(ir::Value* input, ir::Value* weight, ir::Value* bias, int64_t inputZero,
                             int64_t weightZero, const Window& window);
  /// weight [OC, KD, KH, KW, IC].
  ir::Value* conv3d(ir::Value* input, ir::Value* weight, ir::Value* bias, int64_t inputZero,
                    int64_t weightZero, const Window& window);
  /// weight [OC, KH, KW, IC]; window.pad is TOSA's out_pad (may be negative), no dilation.
  ir::Value* transposeConv2d(ir::Value* input, ir::Value* weight, ir::Value* bias, int64_t inputZero,
                             int64_t weightZero, const Window& window);
  ir::Value* averagePool2d(ir::Value* input, std::vector<int64_t> kernel, const Window& window, int64_t zero);
  ir::Value* maxPool2d(ir::Value* input, std::vector<int64_t> kernel, const Window& window);
  /// [N, H, C] x [N, C, W]; result int32, for int16 inputs int48.
  ir::Value* matmul(ir::Value* a, ir::Value* b, int64_t aZero, int64_t bZero);

  ir::Value* binary(Binary op, ir::Value* a, ir::Value* b);
  /// a * b of int32 values, computed in 64 bits and shifted right by `shift`, rounded half up.
  ir::Value* product(ir::Value* a, ir::Value* b, int shift);
  /// a >> b of int32 values, rounded half up.
  ir::Value* shiftedRight(ir::Value* a, ir::Value* b);
  ir::Value* unary(Unary op, ir::Value* input);
  /// An int32 constant of one element with the rank of `like`.
  ir::Value* number(int64_t value, const ir::Value* like);
  ir::Value* negate(ir::Value* input, int64_t inputZero, int64_t outputZero);
  ir::Value* clamp(ir::Value* input, int64_t low, int64_t high);
  ir::Value* select(ir::Value* condition, ir::Value* a, ir::Value* b);
  ir::Value* table(ir::Value* input, Tensor table);
  /// The entries of a table of 513 int16 values for 16-bit codes, interpolated and rounded to int16.
  Result<ir::Value*> lookUp(ir::Value* codes, Tensor table);
  ir::Value* cast(ir::Value* input, DType to);
  /// The axis is kept with size 1.
  ir::Value* reduce(Reduce op, ir::Value* input, int64_t axis);
  /// The axis is removed.
  ir::Value* argmax(ir::Value* input, int64_t axis);

  ir::Value* reshape(ir::Value* input, const Shape& shape);
  ir::Value* transpose(ir::Value* input, const std::vector<int>& permutation);
  ir::Value* slice(ir::Value* input, const Shape& start, const Shape& size);
  /// Elements [start, start + size) of one dimension.
  ir::Value* sliceAxis(ir::Value* input, int64_t axis, int64_t start, int64_t size);
  /// Elements start, start + step, ... of one dimension, `count` of them.
  ir::Value* sliceEvery(ir::Value* input, int64_t axis, int64_t start, int64_t count, int64_t step);
  ir::Value* concat(const std::vector<ir::Value*>& inputs, int64_t axis);
  /// padding: before and after per dimension.
  ir::Value* pad(ir::Value* input, const Shape& padding, int64_t value);
  ir::Value* tile(ir::Value* input, const Shape& multiples);
  ir::Value* reverse(ir::Value* input, int64_t axis);
  /// values [N, K, C], indices [N, W] int32 -> [N, W, C].
  ir::Value* gather(ir::Value* values, ir::Value* indices);
  ir::Value* scatter(ir::Value* values, ir::Value* indices, ir::Value* input);
  /// COND_IF or WHILE_LOOP with two regions: the results have the types of the second region's outputs.
  std::vector<ir::Value*> controlFlow(const ir::OpDef& op, std::vector<std::vector<ir::Value*>> operands,
                                      ir::Graph first, ir::Graph second);
  /// scale {yn, yd, xn, xd}, offset {y, x}, border {y, x}; bilinear returns int32 (int48 for int16).
  ir::Value* resize(ir::Value* input, bool bilinear, const Shape& scale, const Shape& offset,
                    const Shape& border);

 private:
  ir::Value* halfTurned(ir::Value* value, bool fromUnsigned);
  ir::Builder builder() const { return ir::Builder(*graph_, nullptr, location_); }
  ir::Value* shapeConstant(const Shape& values);
  /// Clamps values for which RESCALE with these factors is not defined (2^(shift - 1) and beyond) and which
  /// saturate: results of up to 16 bits do not change.
  ir::Value* withinShifts(ir::Value* input, std::span<const RescaleFactor> factors,
                          std::optional<double> most);
  ir::Value* zeroPoint(const ir::Value* of, int64_t zero) { return scalar(of->dtype(), zero); }

  ir::Graph* graph_;
  ir::LocationRef location_;
  std::map<std::pair<DType, int64_t>, ir::Value*> scalars_;  // shared by all operators
};

}  // namespace carina::lower
