// SPDX-License-Identifier: Apache-2.0
// Creation of TOSA nodes.
#include "lower/emitter.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "lower/weights.hpp"
#include "tosa/infer.hpp"
#include "tosa/ops.hpp"

namespace carina::lower {
namespace {

/// Accumulator type of sums of products over this input.
DType accumulatorFor(DType input) {
  return input == DType::Int16 ? DType::Int48 : DType::Int32;
}

/// SINGLE_ROUND of one value.
int64_t rescaled(int64_t value, const RescaleFactor& factor, int64_t outputZero, DType to) {
  const int64_t round = int64_t{1} << (factor.shift - 1);
  const int64_t result = ((value * factor.multiplier + round) >> factor.shift) + outputZero;
  return std::clamp(result, integerMin(to), integerMax(to));
}

}  // namespace

ir::Value* Emitter::scalar(DType dtype, int64_t value) {
  ir::Value*& known = scalars_[{dtype, value}];
  if (known) return known;
  Tensor tensor = Tensor::uninitialized(dtype, {1});
  tensor.setIntegerAt(0, value);
  return known = constant(std::move(tensor));
}

ir::Value* Emitter::shapeConstant(const Shape& values) {
  return constant(tosa::shapeTensor(values));
}

namespace {

/// The smallest shift for which RESCALE accepts every value of a type: 8-bit types have a zero point, 16-bit
/// ones none; 2 for types whose values are known to be smaller than the type.
int8_t leastShift(DType dtype) {
  switch (dtype) {
    case DType::Int8:
      return 9;
    case DType::Int16:
      return 16;
    default:
      return 2;
  }
}

/// Largest magnitude of a value's elements, if the nodes that produce it (up to `depth` levels) determine it.
class Magnitudes {
 public:
  std::optional<double> of(const ir::Value* value, int depth = 8) const {
    if (value->isConstant()) return ofConstant(value->constant());
    const std::optional<double> ofType = typeBound(value->dtype());
    const ir::Node* node = value->producer();
    if (ofType || !node || depth == 0) return ofType;
    const auto operand = [&](size_t i) { return of(node->operands()[i], depth - 1); };
    if (ir::isa<tosa::Reshape>(node) || ir::isa<tosa::Transpose>(node) || ir::isa<tosa::Slice>(node) ||
        ir::isa<tosa::Abs>(node) || ir::isa<tosa::Tile>(node))
      return operand(0);
    if (ir::isa<tosa::Add>(node) || ir::isa<tosa::Sub>(node))
      return both(operand(0), operand(1), [](double a, double b) { return a + b; });
    if (ir::isa<tosa::Maximum>(node) || ir::isa<tosa::Minimum>(node))
      return both(operand(0), operand(1), [](double a, double b) { return std::max(a, b); });
    if (const auto product = ir::dynCast<tosa::Mul>(node); product && product.shift()->isConstant()) {
      const auto shift = static_cast<int>(product.shift()->constant().integerAt(0));
      return both(operand(0), operand(1), [&](double a, double b) { return std::ldexp(a * b, -shift) + 1; });
    }
    if (const auto sum = ir::dynCast<tosa::ReduceSum>(node)) {
      const auto element = operand(0);
      return element ? std::optional(*element * static_cast<double>(sum.input()->dim(sum.axis()))) : element;
    }
    if (ir::isa<tosa::Rescale>(node)) return ofRescaled(*node, depth);
    return ofLayer(*node);
  }

 private:
  template <typename F>
  static std::optional<double> both(std::optional<double> a, std::optional<double> b, F f) {
    return a && b ? std::optional(f(*a, *b)) : std::nullopt;
  }
  static std::optional<double> typeBound(DType dtype) {
    if (dtype == DType::Int8 || dtype == DType::Int16) return -static_cast<double>(integerMin(dtype));
    return std::nullopt;
  }
  static double ofConstant(const Tensor& values) {
    double most = 0;
    for (int64_t i = 0; i < values.numElements(); ++i) most = std::max(most, std::abs(values.realAt(i)));
    return most;
  }
  std::optional<double> ofRescaled(const ir::Node& node, int depth) const {
    const auto from = of(node.operands()[0], depth - 1);
    if (!from || !node.operands()[1]->isConstant() || !node.operands()[2]->isConstant()) return std::nullopt;
    const Tensor &multiplier = node.operands()[1]->constant(), &shift = node.operands()[2]->constant();
    double most = 0;
    for (int64_t i = 0; i < multiplier.numElements(); ++i)
      most = std::max(most, std::ldexp(multiplier.realAt(i), -static_cast<int>(shift.integerAt(i))));
    const auto zero = [&](size_t i) { return ofConstant(node.operands()[i]->constant()); };
    return (*from + zero(3)) * most + zero(4) + 1;
  }
  /// Sums of products of 8-bit codes.
  static std::optional<double> ofLayer(const ir::Node& node) {
    constexpr double kLargestProduct = 255 * 255;  // both minus their zero points
    if (node.operands().empty() || node.operands()[0]->dtype() != DType::Int8) return std::nullopt;
    if (const auto product = ir::dynCast<tosa::Matmul>(&node))
      return kLargestProduct * static_cast<double>(product.a()->dim(2));
    const bool depthwise = ir::isa<tosa::DepthwiseConv2d>(&node);
    if (!depthwise && !ir::isa<tosa::Conv2d>(&node) && !ir::isa<tosa::Conv3d>(&node) &&
        !ir::isa<tosa::TransposeConv2d>(&node))
      return std::nullopt;
    const ir::Value *weight = node.operands()[1], *bias = node.operands()[2];
    if (!bias->isConstant()) return std::nullopt;
    const int64_t channels = depthwise ? weight->dim(2) * weight->dim(3) : weight->dim(0);
    const int64_t products = weight->numElements() / std::max<int64_t>(channels, 1);
    return kLargestProduct * static_cast<double>(products) + ofConstant(bias->constant());
  }
};

}  // namespace

ir::Value* Emitter::withinShifts(ir::Value* input, std::span<const RescaleFactor> factors,
                                 std::optional<double> most) {
  if (input->dtype() != DType::Int32) return input;
  if (!most) most = Magnitudes().of(input);
  const auto limitOf = [](const RescaleFactor& factor) {
    return std::min((int64_t{1} << std::min<int>(factor.shift - 1, 31)) - 1, integerMax(DType::Int32));
  };
  if (!most || std::all_of(factors.begin(), factors.end(), [&](const RescaleFactor& factor) {
        return *most <= static_cast<double>(limitOf(factor));
      }))
    return input;
  Shape shape(input->shape().size(), 1);
  if (factors.size() > 1) shape.back() = static_cast<int64_t>(factors.size());
  Tensor low = Tensor::uninitialized(DType::Int32, shape), high = Tensor::uninitialized(DType::Int32, shape);
  for (size_t i = 0; i < factors.size(); ++i) {
    high.setIntegerAt(static_cast<int64_t>(i), limitOf(factors[i]));
    low.setIntegerAt(static_cast<int64_t>(i), -limitOf(factors[i]));
  }
  return binary(Binary::Minimum, binary(Binary::Maximum, input, constant(std::move(low))),
                constant(std::move(high)));
}

Result<ir::Value*> Emitter::rescale(ir::Value* input, DType to, int64_t inputZero, int64_t outputZero,
                                    std::span<const double> factors, std::optional<double> most) {
  const bool scale32 = input->dtype() != DType::Int48;
  const auto count = static_cast<int64_t>(factors.size());
  std::vector<RescaleFactor> pairs;
  for (double factor : factors) {
    CARINA_TRY(RescaleFactor pair, rescaleFactor(factor, scale32));
    // RESCALE is defined for inputs below 2^(shift - 1). With smaller shifts, all values but 0 saturate.
    const int8_t least = leastShift(input->dtype());
    if (pair.shift < least) {
      if (dtypeSize(to) > 2) {
        return fail(Code::UnusableQuantization, "a factor of {} between scales is too large for {}", factor,
                    dtypeName(input->dtype()))
            .withRemedy("calibrate with more samples: the result's range is far below its operands'");
      }
      pair = {1 << 30, least};
    }
    pairs.push_back(pair);
  }
  if (input->isConstant() && count == 1) {
    Tensor result = Tensor::uninitialized(to, input->shape());
    for (int64_t i = 0; i < result.numElements(); ++i) {
      result.setIntegerAt(i, rescaled(input->constant().integerAt(i) - inputZero, pairs[0], outputZero, to));
    }
    return constant(std::move(result));
  }
  if (dtypeSize(to) <= 2) input = withinShifts(input, pairs, most);
  return rescale(input, to, inputZero, outputZero, pairs, scale32, false);
}

ir::Value* Emitter::rescale(ir::Value* input, DType to, int64_t inputZero, int64_t outputZero,
                            std::span<const RescaleFactor> factors, bool scale32, bool doubleRound) {
  const auto count = static_cast<int64_t>(factors.size());
  Tensor multiplier = Tensor::uninitialized(scale32 ? DType::Int32 : DType::Int16, {count});
  Tensor shift = Tensor::uninitialized(DType::Int8, {count});
  for (int64_t i = 0; i < count; ++i) {
    multiplier.setIntegerAt(i, factors[static_cast<size_t>(i)].multiplier);
    shift.setIntegerAt(i, factors[static_cast<size_t>(i)].shift);
  }
  ir::Builder b = builder();
  return tosa::Rescale::create(
      b, input, constant(std::move(multiplier)), constant(std::move(shift)), zeroPoint(input, inputZero),
      scalar(to, outputZero), scale32,
      doubleRound ? tosa::RoundingMode::DOUBLE_ROUND : tosa::RoundingMode::SINGLE_ROUND, count > 1, false,
      false, {{to, input->shape()}});
}

ir::Value* Emitter::halfTurned(ir::Value* value, bool fromUnsigned) {
  return tosa::Rescale::create(builder(), value, scalar(DType::Int32, 1 << 30), scalar(DType::Int8, 30),
                               scalar(DType::Int8, -128), scalar(DType::Int8, 0), true,
                               tosa::RoundingMode::SINGLE_ROUND, false, fromUnsigned, !fromUnsigned,
                               {{DType::Int8, value->shape()}});
}

ir::Value* Emitter::lessHalf(ir::Value* bytes) {
  return halfTurned(bytes, true);
}

ir::Value* Emitter::plusHalf(ir::Value* codes) {
  return halfTurned(codes, false);
}

ir::Value* Emitter::conv2d(ir::Value* input, ir::Value* weight, ir::Value* bias, int64_t inputZero,
                           int64_t weightZero, const Window& window) {
  return tosa::Conv2d::create(builder(), input, weight, bias, zeroPoint(input, inputZero),
                              zeroPoint(weight, weightZero), window.pad, window.stride, window.dilation,
                              false, accumulatorFor(input->dtype()));
}

ir::Value* Emitter::depthwiseConv2d(ir::Value* input, ir::Value* weight, ir::Value* bias, int64_t inputZero,
                                    int64_t weightZero, const Window& window) {
  return tosa::DepthwiseConv2d::create(builder(), input, weight, bias, zeroPoint(input, inputZero),
                                       zeroPoint(weight, weightZero), window.pad, window.stride,
                                       window.dilation, false, accumulatorFor(input->dtype()));
}

ir::Value* Emitter::conv3d(ir::Value* input, ir::Value* weight, ir::Value* bias, int64_t inputZero,
                           int64_t weightZero, const Window& window) {
  return tosa::Conv3d::create(builder(), input, weight, bias, zeroPoint(input, inputZero),
                              zeroPoint(weight, weightZero), window.pad, window.stride, window.dilation,
                              false, accumulatorFor(input->dtype()));
}

ir::Value* Emitter::transposeConv2d(ir::Value* input, ir::Value* weight, ir::Value* bias, int64_t inputZero,
                                    int64_t weightZero, const Window& window) {
  return tosa::TransposeConv2d::create(builder(), input, weight, bias, zeroPoint(input, inputZero),
                                       zeroPoint(weight, weightZero), window.pad, window.stride, false,
                                       accumulatorFor(input->dtype()));
}

ir::Value* Emitter::averagePool2d(ir::Value* input, std::vector<int64_t> kernel, const Window& window,
                                  int64_t zero) {
  return tosa::AvgPool2d::create(builder(), input, zeroPoint(input, zero), zeroPoint(input, zero),
                                 std::move(kernel), window.stride, window.pad, DType::Int32);
}

ir::Value* Emitter::maxPool2d(ir::Value* input, std::vector<int64_t> kernel, const Window& window) {
  return tosa::MaxPool2d::create(builder(), input, std::move(kernel), window.stride, window.pad);
}

ir::Value* Emitter::matmul(ir::Value* a, ir::Value* b, int64_t aZero, int64_t bZero) {
  return tosa::Matmul::create(builder(), a, b, zeroPoint(a, aZero), zeroPoint(b, bZero));
}

ir::Value* Emitter::binary(Binary op, ir::Value* a, ir::Value* b) {
  ir::Builder builder_ = builder();
  switch (op) {
    case Binary::Add:
      return tosa::Add::create(builder_, a, b);
    case Binary::Sub:
      return tosa::Sub::create(builder_, a, b);
    case Binary::Mul:
      return tosa::Mul::create(builder_, a, b, scalar(DType::Int8, 0));
    case Binary::Maximum:
      return tosa::Maximum::create(builder_, a, b);
    case Binary::Minimum:
      return tosa::Minimum::create(builder_, a, b);
    case Binary::Equal:
      return tosa::Equal::create(builder_, a, b);
    case Binary::Greater:
      return tosa::Greater::create(builder_, a, b);
    case Binary::GreaterEqual:
      return tosa::GreaterEqual::create(builder_, a, b);
    case Binary::LogicalAnd:
      return tosa::LogicalAnd::create(builder_, a, b);
    case Binary::LogicalOr:
      return tosa::LogicalOr::create(builder_, a, b);
    case Binary::LogicalXor:
      return tosa::LogicalXor::create(builder_, a, b);
    case Binary::BitwiseAnd:
      return tosa::BitwiseAnd::create(builder_, a, b);
    case Binary::BitwiseOr:
      return tosa::BitwiseOr::create(builder_, a, b);
    case Binary::BitwiseXor:
      return tosa::BitwiseXor::create(builder_, a, b);
    case Binary::LeftShift:
      return tosa::LogicalLeftShift::create(builder_, a, b);
    case Binary::ArithmeticRightShift:
      return tosa::ArithmeticRightShift::create(builder_, a, b);
    case Binary::LogicalRightShift:
      return tosa::LogicalRightShift::create(builder_, a, b);
    case Binary::IntDiv:
      return tosa::Intdiv::create(builder_, a, b);
  }
  CARINA_UNREACHABLE("binary operator");
}

ir::Value* Emitter::product(ir::Value* a, ir::Value* b, int shift) {
  return tosa::Mul::create(builder(), a, b, scalar(DType::Int8, shift));
}

ir::Value* Emitter::shiftedRight(ir::Value* a, ir::Value* b) {
  return tosa::ArithmeticRightShift::create(builder(), a, b, true);
}

ir::Value* Emitter::number(int64_t value, const ir::Value* like) {
  return reshape(scalar(DType::Int32, value), Shape(like->shape().size(), 1));
}

ir::Value* Emitter::unary(Unary op, ir::Value* input) {
  ir::Builder b = builder();
  switch (op) {
    case Unary::Abs:
      return tosa::Abs::create(b, input);
    case Unary::LogicalNot:
      return tosa::LogicalNot::create(b, input);
    case Unary::BitwiseNot:
      return tosa::BitwiseNot::create(b, input);
    case Unary::Clz:
      return tosa::Clz::create(b, input);
    case Unary::Identity:
      return tosa::Identity::create(b, input);
  }
  CARINA_UNREACHABLE("unary operator");
}

ir::Value* Emitter::negate(ir::Value* input, int64_t inputZero, int64_t outputZero) {
  return tosa::Negate::create(builder(), input, zeroPoint(input, inputZero), zeroPoint(input, outputZero));
}

ir::Value* Emitter::clamp(ir::Value* input, int64_t low, int64_t high) {
  return tosa::Clamp::create(builder(), input, low, high);
}

ir::Value* Emitter::select(ir::Value* condition, ir::Value* a, ir::Value* b) {
  return tosa::Select::create(builder(), condition, a, b);
}

ir::Value* Emitter::table(ir::Value* input, Tensor table) {
  return tosa::Table::create(builder(), input, constant(std::move(table)));
}

Result<ir::Value*> Emitter::lookUp(ir::Value* codes, Tensor entries) {
  return rescale(table(codes, std::move(entries)), DType::Int16, 0, 0, std::array{0x1p-7});
}

ir::Value* Emitter::cast(ir::Value* input, DType to) {
  return tosa::Cast::create(builder(), input, {{to, input->shape()}});
}

ir::Value* Emitter::reduce(Reduce op, ir::Value* input, int64_t axis) {
  ir::Builder b = builder();
  switch (op) {
    case Reduce::Sum:
      return tosa::ReduceSum::create(b, input, axis);
    case Reduce::Max:
      return tosa::ReduceMax::create(b, input, axis);
    case Reduce::Min:
      return tosa::ReduceMin::create(b, input, axis);
    case Reduce::All:
      return tosa::ReduceAll::create(b, input, axis);
    case Reduce::Any:
      return tosa::ReduceAny::create(b, input, axis);
  }
  CARINA_UNREACHABLE("reduction");
}

ir::Value* Emitter::argmax(ir::Value* input, int64_t axis) {
  return tosa::Argmax::create(builder(), input, axis);
}

ir::Value* Emitter::reshape(ir::Value* input, const Shape& shape) {
  if (const auto before = ir::producerAs<tosa::Reshape>(input))
    input = before.input1();  // only the last shape matters
  if (input->shape() == shape) return input;
  if (input->isConstant()) return constant(input->constant().reshaped(shape));
  return tosa::Reshape::create(builder(), input, shapeConstant(shape));
}

ir::Value* Emitter::transpose(ir::Value* input, const std::vector<int>& permutation) {
  if (std::is_sorted(permutation.begin(), permutation.end())) return input;
  if (input->isConstant()) return constant(transposed(input->constant(), permutation));
  return tosa::Transpose::create(builder(), input, ir::Ints(permutation.begin(), permutation.end()));
}

ir::Value* Emitter::slice(ir::Value* input, const Shape& start, const Shape& size) {
  if (size == input->shape()) return input;
  return tosa::Slice::create(builder(), input, shapeConstant(start), shapeConstant(size));
}

ir::Value* Emitter::sliceAxis(ir::Value* input, int64_t axis, int64_t start, int64_t size) {
  Shape starts(input->shape().size(), 0), sizes = input->shape();
  starts[static_cast<size_t>(axis)] = start;
  sizes[static_cast<size_t>(axis)] = size;
  return slice(input, starts, sizes);
}

ir::Value* Emitter::sliceEvery(ir::Value* value, int64_t axis, int64_t start, int64_t count, int64_t step) {
  if (step == 1 || count <= 1) return sliceAxis(value, axis, start, count);
  // Rows of `step` elements of which the first is kept; the last row may need padding.
  const int64_t extent = value->dim(axis), end = start + count * step;
  if (end > extent) {
    Shape padding(static_cast<size_t>(2 * value->rank()), 0);
    padding[static_cast<size_t>(2 * axis + 1)] = end - extent;
    value = pad(value, padding, 0);
  }
  value = sliceAxis(value, axis, start, count * step);
  const Shape shape = value->shape();
  int64_t outer = 1, inner = 1;
  for (int64_t i = 0; i < axis; ++i) outer *= shape[static_cast<size_t>(i)];
  for (size_t i = static_cast<size_t>(axis) + 1; i < shape.size(); ++i) inner *= shape[i];
  value = sliceAxis(reshape(value, {outer * count, step, inner}), 1, 0, 1);
  Shape result = shape;
  result[static_cast<size_t>(axis)] = count;
  return reshape(value, result);
}

ir::Value* Emitter::concat(const std::vector<ir::Value*>& inputs, int64_t axis) {
  if (inputs.size() == 1) return inputs[0];
  return tosa::Concat::create(builder(), inputs, axis);
}

ir::Value* Emitter::pad(ir::Value* input, const Shape& padding, int64_t value) {
  if (std::all_of(padding.begin(), padding.end(), [](int64_t p) { return p == 0; })) return input;
  return tosa::Pad::create(builder(), input, shapeConstant(padding), scalar(input->dtype(), value));
}

ir::Value* Emitter::tile(ir::Value* input, const Shape& multiples) {
  if (std::all_of(multiples.begin(), multiples.end(), [](int64_t m) { return m == 1; })) return input;
  return tosa::Tile::create(builder(), input, shapeConstant(multiples));
}

ir::Value* Emitter::reverse(ir::Value* input, int64_t axis) {
  return tosa::Reverse::create(builder(), input, axis);
}

ir::Value* Emitter::gather(ir::Value* values, ir::Value* indices) {
  return tosa::Gather::create(builder(), values, indices);
}

ir::Value* Emitter::scatter(ir::Value* values, ir::Value* indices, ir::Value* input) {
  return tosa::Scatter::create(builder(), values, indices, input).valuesOut();
}

std::vector<ir::Value*> Emitter::controlFlow(const ir::OpDef& op,
                                             std::vector<std::vector<ir::Value*>> operands, ir::Graph first,
                                             ir::Graph second) {
  ir::NodeSpec spec;
  spec.def = &op;
  spec.operands = std::move(operands);
  for (const ir::Value* output : second.outputs()) spec.types.push_back(output->type);
  ir::Node* node = builder().create(std::move(spec));
  node->setRegion(0, std::move(first));
  node->setRegion(1, std::move(second));
  return node->results();
}

ir::Value* Emitter::resize(ir::Value* input, bool bilinear, const Shape& scale, const Shape& offset,
                           const Shape& border) {
  return tosa::Resize::create(builder(), input, shapeConstant(scale), shapeConstant(offset),
                              shapeConstant(border),
                              bilinear ? tosa::ResizeMode::BILINEAR : tosa::ResizeMode::NEAREST);
}

}  // namespace carina::lower
