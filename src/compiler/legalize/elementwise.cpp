// SPDX-License-Identifier: Apache-2.0
// Elementwise operators. TOSA widens 8 and 16-bit operands to int32 by RESCALE before ADD, MUL and others;
// the hardware reads them directly if its operand scaling gives exactly the same values (ethosu-numerics 5),
// otherwise 32-bit operations do the same.
#include <algorithm>
#include <bit>

#include "compiler/legalize/constant_codes.hpp"
#include "compiler/legalize/legalizer.hpp"

namespace carina::compiler {

using npu_ir::ElementwiseMode;
using npu_ir::OutputStage;
using npu_ir::Rounding;

namespace {

/// Scale of an operand as attributes: unit scales in their shortest form.
ir::Ints scaleOf(int64_t multiplier, int64_t shift, bool doubleRound) {
  // The first of two roundings is at a fixed bit: such scales stay as they are.
  const bool whole = shift < 62 && multiplier % (int64_t{1} << shift) == 0;
  if (!doubleRound || whole) reduceScale(multiplier, shift, Rounding::NATURAL);
  return {multiplier, shift};
}

/// How a dimension is read: whole by both operands, or repeated by one.
int broadcastClass(int64_t a, int64_t b, int64_t out) {
  if (out == 1) return -1;  // fits any neighbour
  return (a == out ? 1 : 0) | (b == out ? 2 : 0);
}

}  // namespace

Result<std::optional<Legalizer::Operand>> Legalizer::rescaledOperand(const ir::Value* value) {
  const auto rescale = ir::producerAs<tosa::Rescale>(value);
  if (!rescale || value->dtype() != DType::Int32) return std::optional<Operand>();
  const RescaleNumbers numbers = rescaleNumbers(rescale);
  if (numbers.perChannel() || numbers.outputZeroPoint != 0 || dtypeSize(numbers.inputType) > 2)
    return std::optional<Operand>();
  if (numbers.rounding != Rounding::NATURAL && !numbers.wholeFactor()) return std::optional<Operand>();
  CARINA_TRY(ir::Value * source, get(rescale.input()));
  if (source->dtype() != numbers.inputType) {
    source = npu_ir::createView(builder_, source, numbers.inputType, source->shape(), 0,
                                rowMajorStrides(source->shape()));
  }
  return std::optional<Operand>(
      Operand{source, numbers.inputZeroPoint, numbers.multipliers[0], numbers.shifts[0]});
}

Result<std::optional<Legalizer::Operand>> Legalizer::doublyRescaledOperand(const ir::Value* value) {
  const std::optional<Operand> none;
  const auto rescale = ir::producerAs<tosa::Rescale>(value);
  if (!rescale || rescale.input()->dtype() != DType::Int32 || value->dtype() != DType::Int32) return none;
  const RescaleNumbers numbers = rescaleNumbers(rescale);
  const auto shifted = ir::producerAs<tosa::LogicalLeftShift>(rescale.input());
  if (!shifted || numbers.perChannel() || numbers.inputZeroPoint != 0 || numbers.outputZeroPoint != 0 ||
      numbers.rounding != Rounding::DOUBLE_SYMMETRIC)
    return none;
  const ir::Value* amount = shifted.input2();
  CARINA_TRY(std::optional<Operand> operand, rescaledOperand(shifted.input1()));
  if (!operand || !operand->unit() || !amount->isConstant() || amount->numElements() != 1) return none;
  const int64_t bits = npu_ir::operandPreShift(operand->value->dtype());
  if (constantValue(amount) != bits || numbers.shifts[0] < bits) return none;
  operand->multiplier = numbers.multipliers[0];
  operand->shift = numbers.shifts[0] - bits;
  operand->doubleRound = true;
  return operand;
}

std::optional<Legalizer::Operand> Legalizer::scalarOperandFor(const Operand& other, const ir::Value* value) {
  const DType type = other.value->dtype();
  if (!value->isConstant() || value->numElements() != 1 || value->dtype() != DType::Int32)
    return std::nullopt;
  if (other.doubleRound || (type != DType::Int8 && type != DType::Int16)) return std::nullopt;
  const int64_t number = constantValue(value), bits = other.bits() - 2;
  if (number == integerMin(DType::Int32)) return std::nullopt;  // a multiplier has 31 bits
  Tensor code = Tensor::zeros(type, Shape(other.value->shape().size(), 1));
  if (!npu().operandScales && number >= integerMin(type) && number <= integerMax(type)) {
    // Ethos-U55 and U65 have integer factors for both operands.
    code.setIntegerAt(0, number);
    return Operand{constant(std::move(code))};
  }
  code.setIntegerAt(0, number < 0 ? -(int64_t{1} << bits) : int64_t{1} << bits);
  return Operand{constant(std::move(code)), 0, std::abs(number), bits};
}

std::optional<Legalizer::Operand> Legalizer::constantOperandFor(const Operand& other,
                                                                const ir::Value* value) {
  if (!value->isConstant() || value->numElements() == 1) return scalarOperandFor(other, value);
  const DType type = other.value->dtype();
  if (other.doubleRound || (type != DType::Int8 && type != DType::Int16) || value->dtype() != DType::Int32)
    return std::nullopt;
  std::optional<ConstantCodes> found = codesOfNumbers(value->constant(), type);
  if (!found) return std::nullopt;
  return Operand{constant(std::move(found->codes)), found->zeroPoint, found->multiplier, found->shift};
}

std::optional<Legalizer::Operand> Legalizer::codesOperandFor(const Operand& other, const ir::Value* value) {
  const DType type = other.value->dtype();
  if (!value->isConstant() || value->dtype() != DType::Int32 || value->numElements() == 0 ||
      (type != DType::Int8 && type != DType::Int16))
    return std::nullopt;
  const Tensor& numbers = value->constant();
  int64_t low = INT64_MAX, high = INT64_MIN;
  for (int64_t n = 0; n < numbers.numElements(); ++n) {
    low = std::min(low, numbers.integerAt(n));
    high = std::max(high, numbers.integerAt(n));
  }
  if (low == 0 && high == 0) return std::nullopt;  // foldZeros() removes such a product
  const int64_t least = integerMin(type), most = integerMax(type);
  // Codes of 16 bits have no zero point.
  const int64_t zero =
      type == DType::Int16 ? 0 : std::clamp<int64_t>(0, least - low, std::max(least - low, most - high));
  if (zero < least || zero > most || low + zero < least || high + zero > most) return std::nullopt;
  Tensor codes = Tensor::uninitialized(type, numbers.shape());
  for (int64_t n = 0; n < numbers.numElements(); ++n) codes.setIntegerAt(n, numbers.integerAt(n) + zero);
  return Operand{constant(std::move(codes)), zero};
}

std::optional<Legalizer::Convolution> Legalizer::channelProduct(const Operand& a, const Operand& b,
                                                                const Shape& shape) {
  // A channel's weight and scale record take longer to read than its value; from this many positions on the
  // faster operation makes up for it.
  constexpr int64_t kMinPositions = 64;
  const int64_t channels = shape.empty() ? 0 : shape.back();
  if (!npu().slowProducts || !b.value->isConstant() || b.value->dtype() != DType::Int8 ||
      a.value->dtype() != DType::Int8 || a.value->isConstant() || a.value->shape() != shape ||
      b.value->numElements() != channels || b.value->shape().empty() || b.value->shape().back() != channels ||
      channels > kMaxAxis || a.value->numElements() < kMinPositions * channels)
    return std::nullopt;
  auto map = asMap(a.value);
  if (!map.ok() || (*map)->shape().back() != channels) return std::nullopt;
  Convolution conv;
  conv.ifm = *map;
  conv.weight = b.value->constant().reshaped({1, 1, channels});
  conv.weightZeroPoint = b.zeroPoint;
  conv.bias = Tensor::zeros(DType::Int32, {channels});
  conv.window.ifmZeroPoint = a.zeroPoint;
  conv.depthwise = true;
  return conv;
}

std::optional<RescaleNumbers> Legalizer::consumingRescale(const ir::Value* value) const {
  if (!hasOneReader(value)) return std::nullopt;
  const auto rescale = ir::dynCast<tosa::Rescale>(value->uses().front().node);
  if (!rescale) return std::nullopt;
  return rescaleNumbers(rescale);
}

std::optional<Legalizer::Padding> Legalizer::paddingOf(const ir::Value* operand, int64_t zeroPoint) const {
  const ir::Node* node = operand->producer();
  while (operand->hasOneUse() && node &&
         (ir::isa<tosa::Rescale>(node) || ir::isa<tosa::LogicalLeftShift>(node))) {
    operand = node->operand(0);
    node = operand->producer();
  }
  if (!operand->hasOneUse() || !node || !ir::isa<tosa::Pad>(node) ||
      constantValue(node->operand(2)) != zeroPoint)
    return std::nullopt;
  const ir::Ints sizes = constantValues(node->operand(1));
  const auto isAdded = [](int64_t size) { return size > 0; };
  const auto first = std::find_if(sizes.begin(), sizes.end(), isAdded);
  if (first == sizes.end() || std::find_if(first + 1, sizes.end(), isAdded) != sizes.end())
    return std::nullopt;
  const auto at = static_cast<size_t>(first - sizes.begin());
  return Padding{node->operand(0), at / 2, at % 2 == 0 ? *first : 0};
}

Result<ir::Value*> Legalizer::elementwise(ElementwiseMode mode, const Operand& a, const Operand& b,
                                          const OutputStage& stage, DType type,
                                          std::vector<ir::Node*>* nodes) {
  const auto whole = broadcastShapes(a.value->shape(), b.value ? b.value->shape() : a.value->shape());
  if (!whole)
    return fail(Code::InvalidGraph, "{} and {} do not broadcast", shapeText(a.value->shape()),
                shapeText(b.value->shape()));
  const Shape& out = *whole;
  Shape sa = a.value->shape(), sb = b.value ? b.value->shape() : out, shape = out;
  const auto pad = [&](Shape& s) {
    while (s.size() < std::max<size_t>(out.size(), 3)) s.insert(s.begin(), 1);
  };
  pad(sa);
  pad(sb);
  pad(shape);
  const auto drop = [&](size_t d) {
    for (Shape* s : {&sa, &sb, &shape}) s->erase(s->begin() + static_cast<std::ptrdiff_t>(d));
  };
  while (shape.size() > 3 && shape.front() == 1) drop(0);
  // Merge outer dimensions that are read alike.
  for (size_t d = 0; shape.size() > 3 && d + 1 < shape.size();) {
    const int outer = broadcastClass(sa[d], sb[d], shape[d]),
              inner = broadcastClass(sa[d + 1], sb[d + 1], shape[d + 1]);
    if (outer == inner || outer < 0 || inner < 0) {
      for (Shape* s : {&sa, &sb, &shape}) (*s)[d + 1] *= (*s)[d];
      drop(d);
    } else {
      ++d;
    }
  }
  // A scalar that is too wide for a register is a feature map, which is read again for every position. With
  // the other operand's only long dimension as channels, there is a single position.
  const bool beside = b.value && (numElements(sa) == 1 || numElements(sb) == 1) &&
                      dtypeSize(b.value->dtype()) > npu().scalarBytes;
  if (beside && std::count_if(shape.begin(), shape.end(), [](int64_t size) { return size > 1; }) == 1) {
    while (shape.back() == 1) {
      for (Shape* s : {&sa, &sb, &shape}) std::rotate(s->begin(), s->end() - 1, s->end());
    }
  }
  const bool plain = sa == shape && sb == shape;
  if (plain && std::any_of(shape.begin(), shape.end(), [](int64_t size) { return size > kMaxAxis; })) {
    if (const auto map = asMap(a.value)) sa = sb = shape = (*map)->shape();
  }
  Operand x = a, y = b;
  x.value = npu_ir::createReshape(builder_, a.value, sa);
  if (b.value) y.value = npu_ir::createReshape(builder_, b.value, sb);
  // One operation per index of the outermost dimension, or per part of an axis that is too long.
  const auto tooLong = std::find_if(shape.begin(), shape.end(), [](int64_t size) { return size > kMaxAxis; });
  if (shape.size() > 3 || tooLong != shape.end()) {
    const size_t axis = shape.size() > 3 ? 0 : static_cast<size_t>(tooLong - shape.begin());
    const int64_t step = shape.size() > 3 ? 1 : ceilDiv(shape[axis], ceilDiv(shape[axis], kMaxAxis));
    if (ceilDiv(shape[axis], step) > 4096)
      return fail(Code::HardwareLimit, "broadcasting {} and {} takes more than 4096 operations",
                  shapeText(sa), shapeText(sb))
          .withRemedy("merge some of its dimensions, or keep it on the CPU");
    std::vector<npu_ir::Piece> pieces;
    Shape strides = rowMajorStrides(shape);
    const int64_t stride = strides[axis];
    if (shape.size() > 3) strides.erase(strides.begin());
    const auto part = [&](ir::Value* value, int64_t first, int64_t count) {
      Shape start(shape.size(), 0), size = value->shape();
      if (size[axis] > 1) {
        start[axis] = first;
        size[axis] = count;
      }
      ir::Value* slice = npu_ir::createSlice(builder_, value, start, size);
      if (size.size() > 3) size.erase(size.begin());
      return npu_ir::createReshape(builder_, slice, size);
    };
    for (int64_t first = 0; first < shape[axis]; first += step) {
      const int64_t count = std::min(step, shape[axis] - first);
      Operand xi = x, yi = y;
      xi.value = part(x.value, first, count);
      if (y.value) yi.value = part(y.value, first, count);
      CARINA_TRY(ir::Value * result, elementwise(mode, xi, yi, stage, type, nodes));
      pieces.push_back({result, first * stride, strides});
    }
    return npu_ir::createJoin(builder_, pieces, {type, out});
  }
  if (y.value) {
    const bool both = x.value->shape() != shape && y.value->shape() != shape;
    const bool constants = x.value->isConstant() && y.value->isConstant() && x.value->numElements() == 1 &&
                           y.value->numElements() == 1;
    if (constants) {
      const ir::Ints one{1, 1, 1};
      x.value = rearranged(x.value, one, one, 0, one, 0, one);
    } else if (!npu().broadcastsBothOperands && both) {
      CARINA_TRY(x.value, broadcastTo(x.value, shape));
    }
  }
  ir::Value* result = npu_ir::createElementwise(
      builder_, mode, {x.value, x.zeroPoint, scaleOf(x.multiplier, x.shift, x.doubleRound)},
      {y.value, y.zeroPoint, scaleOf(y.multiplier, y.shift, y.doubleRound)},
      x.doubleRound || y.doubleRound ? Rounding::DOUBLE_SYMMETRIC : Rounding::NATURAL, stage, type);
  if (nodes) nodes->push_back(result->producer());
  return npu_ir::createReshape(builder_, result, out);
}

Result<ir::Value*> Legalizer::elementwise(ElementwiseMode mode, ir::Value* a, ir::Value* b, DType type,
                                          const OutputStage& stage, std::vector<ir::Node*>* nodes) {
  // Scalar constants may have another rank than the other operand.
  const auto ranked = [this](ir::Value* value, const ir::Value* other) {
    if (!other || value->rank() == other->rank() || value->numElements() != 1) return value;
    return npu_ir::createReshape(builder_, value, Shape(other->shape().size(), 1));
  };
  if (b && b->isConstant() && b->rank() != a->rank())
    b = constant(b->constant().reshaped(Shape(a->shape().size(), 1)));
  if (b && a->isConstant() && b->rank() != a->rank())
    a = constant(a->constant().reshaped(Shape(b->shape().size(), 1)));
  return elementwise(mode, Operand{ranked(a, b)}, b ? Operand{ranked(b, a)} : Operand{}, stage, type, nodes);
}

Result<ir::Value*> Legalizer::sumAroundPadding(const ir::Node& node, ElementwiseMode mode, const Operand& a,
                                               const Operand& b, std::vector<ir::Node*>& operations) {
  for (const size_t side : {0, 1}) {
    const Operand &padded = side == 0 ? a : b, &other = side == 0 ? b : a;
    const auto added = paddingOf(node.operand(side), padded.zeroPoint);
    if (!added || other.value->shape() != padded.value->shape()) continue;
    Operand inner = padded, nothing = padded;
    CARINA_TRY(inner.value, get(added->inner));
    if (inner.value->dtype() != padded.value->dtype()) continue;
    Tensor zero = Tensor::zeros(padded.value->dtype(), Shape(padded.value->shape().size(), 1));
    zero.setIntegerAt(0, padded.zeroPoint);
    nothing.value = constant(std::move(zero));
    const Shape &whole = padded.value->shape(), &part = inner.value->shape(),
                strides = rowMajorStrides(whole);
    std::vector<npu_ir::Piece> pieces;
    const auto add = [&](const Operand& summand, int64_t first, int64_t count) -> Status {
      Operand beside = other;
      Shape start(whole.size(), 0), size = whole;
      start[added->axis] = first;
      size[added->axis] = count;
      beside.value = npu_ir::createSlice(builder_, other.value, start, size);
      CARINA_TRY(ir::Value * sum, elementwise(mode, side == 0 ? summand : beside,
                                              side == 0 ? beside : summand, {}, DType::Int32, &operations));
      pieces.push_back({sum, first * strides[added->axis], strides});
      return {};
    };
    const int64_t count = part[added->axis], rest = whole[added->axis] - count;
    CARINA_RETURN_IF_ERROR(add(inner, added->before, count));
    CARINA_RETURN_IF_ERROR(add(nothing, added->before > 0 ? 0 : count, rest));
    return npu_ir::createJoin(builder_, pieces, {DType::Int32, whole});
  }
  return nullptr;
}

Status Legalizer::lowerBinary(ir::Node* node, ElementwiseMode mode) {
  const ir::Value* output = node->result();
  const bool sum = mode == ElementwiseMode::ADD || mode == ElementwiseMode::SUB;
  const bool extremum = mode == ElementwiseMode::MIN || mode == ElementwiseMode::MAX;
  if (!npu().bitwise && !sum && !extremum) {
    return fail(Code::MissingCapability,
                "{} is not an operation of {} and cannot be composed of its operations", node->opName(),
                npu::familyName(target_.family))
        .withRemedy("divide by powers of two with a shift (x >> n), or divide floats");
  }
  std::vector<ir::Node*> operations;
  if (sum || extremum) {
    CARINA_TRY(std::optional<Operand> a, rescaledOperand(node->operand(0)));
    CARINA_TRY(std::optional<Operand> b, rescaledOperand(node->operand(1)));
    if (sum && !a && !b) {
      CARINA_TRY(a, doublyRescaledOperand(node->operand(0)));
      CARINA_TRY(b, doublyRescaledOperand(node->operand(1)));
    }
    if (sum && a && !b) b = constantOperandFor(*a, node->operand(1));
    if (sum && b && !a) a = constantOperandFor(*b, node->operand(0));
    if (a && b && a->value->dtype() == b->value->dtype()) {
      const auto consumer = consumingRescale(output);
      const bool narrow = consumer && !consumer->perChannel() && consumer->inputZeroPoint == 0 &&
                          dtypeSize(consumer->outputType) <= 2;
      bool possible = npu().operandScales;
      int64_t preShift = 0;
      if (!npu().operandScales && sum) {
        // Integer factors, with common powers of two moved after the sum.
        const auto factor = [](const Operand& o) -> int64_t {
          if (o.shift > 62 || o.multiplier % (int64_t{1} << o.shift) != 0) return 0;
          return o.multiplier >> o.shift;
        };
        const int64_t ka = factor(*a), kb = factor(*b);
        const int64_t fixed = int64_t{1} << (a->bits() == 8 ? 19 : 14);
        const auto below = [fixed](const Operand& o) {
          return o.multiplier <= fixed << std::min<int64_t>(o.shift, 40) || o.shift > 40;
        };
        if (ka > 0 && kb > 0) {
          const int64_t common = std::min(std::countr_zero(static_cast<uint64_t>(ka)),
                                          std::countr_zero(static_cast<uint64_t>(kb)));
          const bool movable =
              narrow && consumer->rounding == Rounding::NATURAL && consumer->shifts[0] - common >= 1;
          const int64_t moved = movable ? common : 0;
          if (ka >> moved <= 0xffff && kb >> moved <= 0xffff && (narrow || moved == 0)) {
            a->multiplier = ka >> moved;
            b->multiplier = kb >> moved;
            a->shift = b->shift = 0;
            preShift = moved;
            possible = narrow || (ka == 1 && kb == 1);
          }
        }
        if (!possible && narrow && ((ka == fixed && below(*b)) || (kb == fixed && below(*a))))
          possible = true;
      }
      if (!npu().operandScales && extremum) {
        // Without operand scales: equal quantisation of both operands and the result.
        possible = a->unit() && b->unit() && narrow && consumer->wholeFactor() == 1;
      }
      if (possible) {
        CARINA_TRY(ir::Value * result, sumAroundPadding(*node, mode, *a, *b, operations));
        if (!result) {
          CARINA_TRY(result, elementwise(mode, *a, *b, {}, DType::Int32, &operations));
        }
        if (preShift > 0) {
          for (const ir::Node* op : operations) preShift_[op] = preShift;
        }
        define(output, result, std::move(operations));
        return {};
      }
    }
  }
  CARINA_TRY(ir::Value * a, get(node->operand(0)));
  CARINA_TRY(ir::Value * b, get(node->operand(1)));
  CARINA_TRY(ir::Value * result, elementwise(mode, Operand{a}, Operand{b}, {}, output->dtype(), &operations));
  define(output, result, std::move(operations));
  return {};
}

Status Legalizer::lowerMul(ir::Node* node) {
  const int64_t shift = constantValue(node->operand(2));
  OutputStage stage;
  stage.shifts = {shift};
  std::vector<ir::Node*> operations;
  if (shift == 0 && node->operand(0)->dtype() == DType::Int32) {
    CARINA_TRY(std::optional<Operand> a, rescaledOperand(node->operand(0)));
    CARINA_TRY(std::optional<Operand> b, rescaledOperand(node->operand(1)));
    if (a && a->unit()) {
      if (const auto codes = codesOperandFor(*a, node->operand(1))) b = codes;
    } else if (b && b->unit()) {
      if (const auto codes = codesOperandFor(*b, node->operand(0))) a = codes;
    }
    if (a && b && a->unit() && b->unit() && a->value->dtype() == b->value->dtype()) {
      const Shape& shape = node->result()->shape();
      auto conv = channelProduct(*a, *b, shape);
      if (!conv) conv = channelProduct(*b, *a, shape);
      if (conv) {
        CARINA_TRY(ir::Value * product, convolve(std::move(*conv), operations));
        define(node->result(), npu_ir::createReshape(builder_, product, shape), std::move(operations));
        return {};
      }
      CARINA_TRY(ir::Value * result,
                 elementwise(ElementwiseMode::MUL, *a, *b, {}, DType::Int32, &operations));
      define(node->result(), result, std::move(operations));
      return {};
    }
  }
  CARINA_TRY(ir::Value * a, get(node->operand(0)));
  CARINA_TRY(ir::Value * b, get(node->operand(1)));
  CARINA_TRY(ir::Value * result,
             elementwise(ElementwiseMode::MUL, Operand{a}, Operand{b}, stage, DType::Int32, &operations));
  define(node->result(), result, std::move(operations));
  return {};
}

Status Legalizer::lowerUnary(ir::Node* node, ElementwiseMode mode) {
  std::vector<ir::Node*> operations;
  if (mode == ElementwiseMode::ABS) {
    CARINA_TRY(const std::optional<Operand> a, rescaledOperand(node->operand(0)));
    const auto consumer = consumingRescale(node->result());
    if (a && a->unit() && consumer && !consumer->perChannel() && dtypeSize(consumer->outputType) <= 2) {
      CARINA_TRY(ir::Value * result, elementwise(mode, *a, Operand{}, {}, DType::Int32, &operations));
      define(node->result(), result, std::move(operations));
      return {};
    }
  }
  CARINA_TRY(ir::Value * a, get(node->operand(0)));
  CARINA_TRY(ir::Value * result,
             elementwise(mode, Operand{a}, Operand{}, {}, node->result()->dtype(), &operations));
  define(node->result(), result, std::move(operations));
  return {};
}

Status Legalizer::lowerNegate(ir::Node* node) {
  CARINA_TRY(ir::Value * value, get(node->operand(0)));
  Operand zero{scalarConstant(value->dtype(), 0)};
  zero.value =
      constant(zero.value->constant().reshaped(Shape(std::max<size_t>(value->shape().size(), 0), 1)));
  Operand input{value, constantValue(node->operand(1))};
  OutputStage stage;
  stage.zeroPoint = constantValue(node->operand(2));
  std::vector<ir::Node*> operations;
  CARINA_TRY(ir::Value * result,
             elementwise(ElementwiseMode::SUB, zero, input, stage, value->dtype(), &operations));
  define(node->result(), result, std::move(operations));
  return {};
}

}  // namespace carina::compiler
