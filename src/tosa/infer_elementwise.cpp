// SPDX-License-Identifier: Apache-2.0
// Inference of elementwise operators and of matrix products, transforms and argmax.
#include <cmath>

#include "tosa/infer.hpp"
#include "tosa/node_checker.hpp"
#include "tosa/tosa.hpp"

namespace carina::tosa::infer {
namespace {

/// Broadcast of equally ranked operands: sizes are equal or 1.
Result<Shape> broadcastOf(std::span<ir::Value* const> values) {
  Shape shape = values[0]->shape();
  for (const ir::Value* value : values.subspan(1)) {
    if (value->shape().size() != shape.size()) {
      return broken("RankMismatch", "ranks of {} and {} differ", shapeText(shape), shapeText(value->shape()));
    }
    for (size_t i = 0; i < shape.size(); ++i) {
      const int64_t size = value->shape()[i];
      if (shape[i] == 1) {
        shape[i] = size;
      } else if (size != 1 && size != shape[i]) {
        return broken("BroadcastShapesMismatch", "{} and {} do not broadcast", shapeText(values[0]->shape()),
                      shapeText(value->shape()));
      }
    }
  }
  return shape;
}

bool isPowerOfTwo(int64_t value) {
  return value > 0 && (value & (value - 1)) == 0;
}

Status fftShape(const Shape& shape) {
  if (isPowerOfTwo(shape[1]) && isPowerOfTwo(shape[2])) return {};
  return broken("KernelNotPowerOfTwo", "height {} and width {} must be powers of two", shape[1], shape[2]);
}

/// A zero point as the operator reads it; unsigned types are stored in signed ones.
int64_t zeroPointValue(const ir::Value* value, bool isUnsignedData) {
  const int64_t zero = value->constant().integerAt(0);
  if (!isUnsignedData) return zero;
  return value->dtype() == DType::Int8 ? zero & 0xff : zero & 0xffff;
}

Status rescaleZeroPoint(const ir::Value* value, bool isUnsignedData, bool isInput) {
  const int64_t zero = zeroPointValue(value, isUnsignedData);
  const char* name = isInput ? "input_zp" : "output_zp";
  if (value->dtype() == DType::Int8 || zero == 0) return {};
  if (value->dtype() == DType::Int16 && isUnsignedData) {
    if (zero == 32768) return {};
    return broken(isInput ? "U16InputZeroPointNotValid" : "U16OutputZeroPointNotValid",
                  "{} {} of unsigned 16-bit data must be 0 or 32768", name, zero);
  }
  return broken(isInput ? "InputZeroPointNotZero" : "OutputZeroPointNotZero",
                "{} is {}, but must be 0 for {} data", name, zero, dtypeName(value->dtype()));
}

Status rescaleUnsigned(const Rescale& op, DType in, DType out) {
  if (op.inputUnsigned() && op.outputUnsigned()) {
    return broken("InputUnsignedOutputUnsigned", "input and output cannot both be unsigned");
  }
  if (op.inputUnsigned()) {
    if (out == DType::Int32) return broken("I32OutputInputUnsigned", "an unsigned input cannot become int32");
    if (in == DType::Int32) return broken("I32InputUnsigned", "an int32 input cannot be unsigned");
    if (in == DType::Int48) return broken("I48InputUnsigned", "an int48 input cannot be unsigned");
  }
  if (op.outputUnsigned()) {
    if (in == DType::Int32) return broken("I32InputOutputUnsigned", "an int32 input cannot become unsigned");
    if (in == DType::Int48) return broken("I48InputOutputUnsigned", "an int48 input cannot become unsigned");
    if (out == DType::Int32) return broken("I32OutputUnsigned", "an int32 output cannot be unsigned");
  }
  return {};
}

}  // namespace

Types unary(const ir::Node& node) {
  NodeChecker checker(node);
  CARINA_RETURN_IF_ERROR(checker.operands());
  return checker.results({node.operand(0)->shape()});
}

Types broadcast(const ir::Node& node) {
  NodeChecker checker(node);
  CARINA_RETURN_IF_ERROR(checker.operands());
  CARINA_TRY(Shape shape, broadcastOf(node.operands()));
  return checker.results({std::move(shape)});
}

Types mul(const ir::Node& node) {
  const auto op = ir::cast<Mul>(&node);
  NodeChecker checker(node);
  CARINA_RETURN_IF_ERROR(checker.operands());
  if (op.shift()->shape() != Shape{1}) {
    return broken("ShiftNotSingleElement", "shift has shape {}, expected [1]",
                  shapeText(op.shift()->shape()));
  }
  const int64_t shift = op.shift()->constant().integerAt(0);
  if (shift < 0 || shift > 63) return broken("ShiftOutOfRange", "shift {} is outside 0..63", shift);
  if (shift != 0 && op.input1()->dtype() != DType::Int32) {
    return broken("ShiftNotZero", "shift {} is only valid for int32 operands", shift);
  }
  CARINA_TRY(Shape shape, broadcastOf(std::span<ir::Value* const>(node.operands()).first(2)));
  return checker.results({std::move(shape)});
}

Types clamp(const ir::Node& node) {
  const auto op = ir::cast<Clamp>(&node);
  NodeChecker checker(node);
  CARINA_RETURN_IF_ERROR(checker.operands());
  const DType dtype = op.input()->dtype();
  const double low = ir::scalarReal(op.minVal()), high = ir::scalarReal(op.maxVal());
  if (isFloat(dtype)) {
    if (std::isnan(low) || std::isnan(high)) return broken("ClampBoundNaN", "a bound is not a number");
  } else {
    for (const ir::Attribute& bound : {op.minVal(), op.maxVal()}) {
      const auto* value = std::get_if<int64_t>(&bound);
      if (!value || *value < integerMin(dtype) || *value > integerMax(dtype)) {
        return broken("ClampBoundMissing", "min_val and max_val must be values of {}", dtypeName(dtype));
      }
    }
  }
  if (low > high) return broken("MaxSmallerMin", "min_val {} is larger than max_val {}", low, high);
  return checker.results({op.input()->shape()});
}

Types table(const ir::Node& node) {
  const auto op = ir::cast<Table>(&node);
  NodeChecker checker(node);
  CARINA_RETURN_IF_ERROR(checker.operands());
  const int64_t entries = op.input1()->dtype() == DType::Int8 ? 256 : 513;
  if (op.table()->dim(0) != entries) {
    return broken("TableLengthMismatch", "the table has {} entries, but {} input needs {}",
                  op.table()->dim(0), dtypeName(op.input1()->dtype()), entries);
  }
  return checker.results({op.input1()->shape()});
}

Types negate(const ir::Node& node) {
  return unary(node);
}

Types rescale(const ir::Node& node) {
  const auto op = ir::cast<Rescale>(&node);
  NodeChecker checker(node);
  CARINA_RETURN_IF_ERROR(checker.operands());
  const DType in = op.input()->dtype(), out = op.outputZp()->dtype();
  if (op.roundingMode() == RoundingMode::UNKNOWN)
    return broken("WrongRoundingMode", "the rounding mode is not given");
  if (op.scale32() && in == DType::Int48)
    return broken("ScaleTrue", "scale32 cannot be used with int48 input");
  if (!op.scale32() && op.roundingMode() == RoundingMode::DOUBLE_ROUND) {
    return broken("ScaleNotTrue", "DOUBLE_ROUND needs scale32");
  }
  CARINA_RETURN_IF_ERROR(rescaleUnsigned(op, in, out));
  CARINA_RETURN_IF_ERROR(rescaleZeroPoint(op.inputZp(), op.inputUnsigned(), true));
  CARINA_RETURN_IF_ERROR(rescaleZeroPoint(op.outputZp(), op.outputUnsigned(), false));
  const DType wanted = op.scale32() ? DType::Int32 : DType::Int16;
  if (op.multiplier()->dtype() != wanted) {
    return broken("WrongInputType", "multiplier is {}, expected {}", dtypeName(op.multiplier()->dtype()),
                  dtypeName(wanted));
  }
  if (op.perChannel() && op.input()->rank() < 1)
    return broken("PerChannelRank0", "per_channel needs a rank of at least 1");
  const int64_t channels = op.perChannel() ? op.input()->shape().back() : 1;
  for (const ir::Value* value : {op.multiplier(), op.shift()}) {
    if (value->dim(0) != channels) {
      return broken("PerChannelLengthMismatch", "multiplier and shift have {} entries, expected {}",
                    value->dim(0), channels);
    }
  }
  return checker.results({op.input()->shape()});
}

Types argmax(const ir::Node& node) {
  const auto op = ir::cast<Argmax>(&node);
  NodeChecker checker(node);
  CARINA_RETURN_IF_ERROR(checker.operands());
  if (op.axis() < 0) return broken("AxisSmallerZero", "axis {} is negative", op.axis());
  if (op.axis() >= op.input()->rank()) {
    return broken("AxisLargerRank", "axis {} is not below rank {}", op.axis(), op.input()->rank());
  }
  Shape shape = op.input()->shape();
  shape.erase(shape.begin() + op.axis());
  return checker.results({std::move(shape)}, "ArgmaxOutputShapeMismatch", "ArgmaxOutputRankMismatch");
}

Types matmul(const ir::Node& node) {
  const auto op = ir::cast<Matmul>(&node);
  NodeChecker checker(node);
  CARINA_RETURN_IF_ERROR(checker.operands());
  const Shape &a = op.a()->shape(), &b = op.b()->shape();
  if (a[0] != b[0])
    return broken("BatchMismatch", "{} and {} have different batches", shapeText(a), shapeText(b));
  if (a[2] != b[1]) return broken("ChannelMismatch", "{} and {} do not multiply", shapeText(a), shapeText(b));
  return checker.results({{a[0], a[1], b[2]}});
}

Types fft2d(const ir::Node& node) {
  const auto op = ir::cast<Fft2d>(&node);
  NodeChecker checker(node);
  CARINA_RETURN_IF_ERROR(checker.operands());
  const Shape& shape = op.inputReal()->shape();
  if (shape != op.inputImag()->shape()) {
    return broken("FFTInputShapeMismatch", "{} and {} differ", shapeText(shape),
                  shapeText(op.inputImag()->shape()));
  }
  CARINA_RETURN_IF_ERROR(fftShape(shape));
  return checker.results({shape, shape}, "FFTOutputShapeMismatch", "WrongRank");
}

Types rfft2d(const ir::Node& node) {
  NodeChecker checker(node);
  CARINA_RETURN_IF_ERROR(checker.operands());
  Shape shape = node.operand(0)->shape();
  CARINA_RETURN_IF_ERROR(fftShape(shape));
  shape[2] = shape[2] / 2 + 1;
  return checker.results({shape, shape}, "FFTOutputShapeMismatch", "WrongRank");
}

}  // namespace carina::tosa::infer
