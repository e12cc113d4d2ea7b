// SPDX-License-Identifier: Apache-2.0
// Comparisons, logic, selection, bits and shifts. Ethos-U85 has operations for them. Ethos-U55 and U65 do
// not, but their arithmetic gives the same results: a comparison is the clamped difference, truth values 0
// and 1 are multiplied, and a table of 256 entries combines two halves of a byte.
#include <algorithm>

#include "compiler/legalize/legalizer.hpp"

namespace carina::compiler {

using npu_ir::ElementwiseMode;
using npu_ir::OutputStage;
using npu_ir::Rounding;
using npu_ir::TableKind;

namespace {

/// entry(v) for each int8 value v, in the order of the hardware's table.
template <typename Entry>
Tensor tableOf(const Entry& entry) {
  Tensor table = Tensor::zeros(DType::Int8, {256});
  for (int64_t v = -128; v < 128; ++v) table.setIntegerAt(v + 128, entry(v));
  return table;
}

int64_t combined(ElementwiseMode mode, int64_t a, int64_t b) {
  return mode == ElementwiseMode::AND ? a & b : mode == ElementwiseMode::OR ? a | b : a ^ b;
}

/// The value of a constant, if all elements are the same.
std::optional<int64_t> onlyNumber(const ir::Value* value) {
  if (!value->isConstant()) return std::nullopt;
  const Tensor& numbers = value->constant();
  const int64_t first = numbers.integerAt(0);
  for (int64_t i = 1; i < numbers.numElements(); ++i) {
    if (numbers.integerAt(i) != first) return std::nullopt;
  }
  return first;
}

/// f applied to every element of a constant.
template <typename F>
Tensor mapped(const Tensor& tensor, DType type, const F& f) {
  Tensor result = Tensor::zeros(type, tensor.shape());
  for (int64_t i = 0; i < tensor.numElements(); ++i) result.setIntegerAt(i, f(tensor.integerAt(i)));
  return result;
}

}  // namespace

OutputStage Legalizer::tableStage(Tensor table) {
  OutputStage stage;
  stage.tableKind = TableKind::LUT8;
  stage.table = constant(std::move(table));
  return stage;
}

OutputStage Legalizer::testZero(bool isZero) {
  return tableStage(tableOf([isZero](int64_t v) { return (v == 0) == isZero ? 1 : 0; }));
}

// Comparisons and truth values
// ---------------------------------------------------------------------------------------------------------

Status Legalizer::lowerComparison(ir::Node* node, ElementwiseMode mode) {
  CARINA_TRY(std::optional<Operand> a, rescaledOperand(node->operand(0)));
  CARINA_TRY(std::optional<Operand> b, rescaledOperand(node->operand(1)));
  const bool direct =
      a && b && a->value->dtype() == b->value->dtype() && (npu().operandScales || (a->unit() && b->unit()));
  if (!direct) {
    CARINA_TRY(ir::Value * left, get(node->operand(0)));
    CARINA_TRY(ir::Value * right, get(node->operand(1)));
    a = Operand{left};
    b = Operand{right};
  }
  if (!npu().bitwise) {
    // The difference is exact in the accumulator, and neither clamping nor saturating to int8 changes its
    // sign or makes it zero.
    OutputStage stage;
    if (mode == ElementwiseMode::CMP_EQ) {
      stage = testZero(true);
    } else {
      stage.zeroPoint = mode == ElementwiseMode::CMP_GE ? 1 : 0;
      stage.clamp = {0, 1};
    }
    CARINA_TRY(ir::Value * result, elementwise(ElementwiseMode::SUB, *a, *b, stage, DType::Int8));
    define(node->result(), result);
    return {};
  }
  CARINA_TRY(ir::Value * mask, elementwise(mode, *a, *b, {}, DType::Int8));
  // True is all ones in the operation's result and 1 in TOSA.
  CARINA_TRY(ir::Value * result,
             elementwise(ElementwiseMode::AND, mask, scalarConstant(DType::Int8, 1), DType::Int8));
  define(node->result(), result);
  return {};
}

Status Legalizer::lowerLogical(ir::Node* node, ElementwiseMode mode) {
  CARINA_TRY(ir::Value * a, get(node->operand(0)));
  CARINA_TRY(ir::Value * b, get(node->operand(1)));
  OutputStage stage;
  if (!npu().bitwise) {
    // For 0 and 1: the minimum, the maximum, whether they differ.
    if (mode == ElementwiseMode::XOR) stage = testZero(false);
    mode = mode == ElementwiseMode::AND  ? ElementwiseMode::MIN
           : mode == ElementwiseMode::OR ? ElementwiseMode::MAX
                                         : ElementwiseMode::SUB;
  }
  CARINA_TRY(ir::Value * result, elementwise(mode, a, b, DType::Int8, stage));
  define(node->result(), result);
  return {};
}

Status Legalizer::lowerLogicalNot(ir::Node* node) {
  CARINA_TRY(ir::Value * a, get(node->operand(0)));
  ir::Value* one = scalarConstant(DType::Int8, 1);
  CARINA_TRY(ir::Value * result, npu().bitwise ? elementwise(ElementwiseMode::XOR, a, one, DType::Int8)
                                               : elementwise(ElementwiseMode::SUB, one, a, DType::Int8));
  define(node->result(), result);
  return {};
}

Result<ir::Value*> Legalizer::truthOf(ir::Value* value) {
  ir::Value* zero = scalarConstant(value->dtype(), 0);
  if (!npu().bitwise) return elementwise(ElementwiseMode::ADD, value, zero, DType::Int8, testZero(false));
  CARINA_TRY(ir::Value * mask, elementwise(ElementwiseMode::CMP_NE, value, zero, DType::Int8));
  return elementwise(ElementwiseMode::AND, mask, scalarConstant(DType::Int8, 1), DType::Int8);
}

Result<ir::Value*> Legalizer::numberFor(ir::Value* condition, DType type, int64_t whenTrue,
                                        int64_t whenFalse) {
  if (condition->isConstant()) {
    return constant(
        mapped(condition->constant(), type, [&](int64_t c) { return c != 0 ? whenTrue : whenFalse; }));
  }
  const int64_t step = whenTrue - whenFalse;
  if (type == DType::Int8 && step == 1 && whenFalse == 0) return condition;
  if ((step == 1 || step == -1) && std::abs(whenFalse) <= 1) {
    ir::Value* start = scalarConstant(DType::Int8, whenFalse);
    return step == 1 ? elementwise(ElementwiseMode::ADD, condition, start, type)
                     : elementwise(ElementwiseMode::SUB, start, condition, type);
  }
  if (type != DType::Int8) return nullptr;
  if (step < integerMin(type) || step > integerMax(type))
    return lookedUp(condition, tableOf([&](int64_t c) { return c != 0 ? whenTrue : whenFalse; }));
  OutputStage stage;
  stage.zeroPoint = whenFalse;
  return elementwise(ElementwiseMode::MUL, condition, scalarConstant(type, step), type, stage);
}

Result<ir::Value*> Legalizer::selectNumber(ir::Value* condition, int64_t number, bool when, ir::Value* other,
                                           DType type) {
  const auto where = [&](int64_t chosen, int64_t otherwise) {
    return when ? numberFor(condition, type, chosen, otherwise)
                : numberFor(condition, type, otherwise, chosen);
  };
  const int64_t low = integerMin(type), high = integerMax(type);
  if (number == low || number == high) {
    CARINA_TRY(ir::Value * limit, where(number, number == low ? high : low));
    if (!limit) return nullptr;
    return elementwise(number == low ? ElementwiseMode::MIN : ElementwiseMode::MAX, other, limit, type);
  }
  if (number != 0) return nullptr;
  CARINA_TRY(ir::Value * mask, where(0, npu().bitwise ? -1 : 1));
  return elementwise(npu().bitwise ? ElementwiseMode::AND : ElementwiseMode::MUL, other, mask, type);
}

Status Legalizer::lowerSelect(ir::Node* node) {
  CARINA_TRY(ir::Value * condition, get(node->operand(0)));
  CARINA_TRY(ir::Value * a, get(node->operand(1)));
  CARINA_TRY(ir::Value * b, get(node->operand(2)));
  const DType type = node->result()->dtype() == DType::Bool ? DType::Int8 : node->result()->dtype();
  const std::optional<int64_t> first = onlyNumber(a), second = onlyNumber(b);
  ir::Value* open = first ? b : a;
  if ((first || second) && open->shape() == node->result()->shape()) {
    CARINA_TRY(ir::Value * chosen,
               selectNumber(condition, first ? *first : *second, first.has_value(), open, type));
    if (chosen) {
      define(node->result(), chosen);
      return {};
    }
  }
  if (npu().bitwise) {
    CARINA_TRY(ir::Value * mask, numberFor(condition, type, -1, 0));
    CARINA_TRY(ir::Value * taken, elementwise(ElementwiseMode::AND, a, mask, type));
    CARINA_TRY(ir::Value * other, elementwise(ElementwiseMode::AND_NOT, b, mask, type));
    CARINA_TRY(ir::Value * result, elementwise(ElementwiseMode::OR, taken, other, type));
    define(node->result(), result);
    return {};
  }
  // condition * a + (1 - condition) * b: one term is zero, so nothing overflows.
  const auto term = [&](ir::Value* choice, std::optional<int64_t> number, bool when) -> Result<ir::Value*> {
    if (number) {
      CARINA_TRY(ir::Value * product, numberFor(condition, type, when ? *number : 0, when ? 0 : *number));
      if (product) return product;
    }
    CARINA_TRY(ir::Value * factor, numberFor(condition, type, when ? 1 : 0, when ? 0 : 1));
    return elementwise(ElementwiseMode::MUL, choice, factor, type);
  };
  CARINA_TRY(ir::Value * taken, term(a, first, true));
  CARINA_TRY(ir::Value * other, term(b, second, false));
  CARINA_TRY(ir::Value * result, elementwise(ElementwiseMode::ADD, taken, other, type));
  define(node->result(), result);
  return {};
}

// Bits
// ---------------------------------------------------------------------------------------------------------

ir::Value* Legalizer::bytesOf(ir::Value* value) {
  const int64_t size = dtypeSize(value->dtype());
  if (size == 1) return value;
  Shape shape = value->shape();
  shape.push_back(size);
  return npu_ir::createView(builder_, value, DType::Int8, shape, 0, rowMajorStrides(shape));
}

ir::Value* Legalizer::fromBytes(ir::Value* bytes, DType type, const Shape& shape) {
  return npu_ir::createView(builder_, bytes, type, shape, 0, rowMajorStrides(shape));
}

Result<ir::Value*> Legalizer::lookedUp(ir::Value* value, Tensor table) {
  const OutputStage stage = tableStage(std::move(table));
  return perMap(value, [&](ir::Value* map) -> Result<ir::Value*> {
    return npu_ir::createCopy(builder_, map, 0, stage, DType::Int8);
  });
}

Status Legalizer::lowerBitwise(ir::Node* node, ElementwiseMode mode) {
  if (npu().bitwise) return lowerBinary(node, mode);
  CARINA_TRY(ir::Value * a, get(node->operand(0)));
  CARINA_TRY(ir::Value * b, get(node->operand(1)));
  const DType type = node->result()->dtype();
  if (a->isConstant() && !b->isConstant()) std::swap(a, b);
  if (dtypeSize(type) == 1 && b->isConstant() && b->numElements() == 1 &&
      a->numElements() == node->result()->numElements()) {
    const int64_t mask = b->constant().integerAt(0);
    CARINA_TRY(ir::Value * result, lookedUp(a, tableOf([&](int64_t v) { return combined(mode, v, mask); })));
    define(node->result(), result);
    return {};
  }
  // The upper halves of two bytes form one index, the lower halves another: a sum of table entries, which a
  // second table turns into half of the result.
  const auto half = [&](ir::Value* value, bool upper, bool first) -> Result<ir::Value*> {
    const auto entry = [=](int64_t v) {
      const int64_t bits = (upper ? v >> 4 : v) & 15;
      return first ? 16 * bits - 128 : bits;
    };
    if (!value->isConstant()) return lookedUp(bytesOf(value), tableOf(entry));
    const int64_t size = dtypeSize(value->dtype());
    Shape shape = value->shape();
    if (size > 1) shape.push_back(size);
    Tensor bytes = Tensor::zeros(DType::Int8, shape);
    for (int64_t i = 0; i < bytes.numElements(); ++i)
      bytes.setIntegerAt(i, entry(value->constant().integerAt(i / size) >> (8 * (i % size))));
    return constant(std::move(bytes));
  };
  const auto halves = [&](bool upper) -> Result<ir::Value*> {
    CARINA_TRY(ir::Value * first, half(a, upper, true));
    CARINA_TRY(ir::Value * second, half(b, upper, false));
    const OutputStage stage = tableStage(tableOf([&](int64_t v) {
      const int64_t bits = combined(mode, (v + 128) >> 4, (v + 128) & 15);
      return upper ? 16 * (bits < 8 ? bits : bits - 16) : bits;
    }));
    return elementwise(ElementwiseMode::ADD, first, second, DType::Int8, stage);
  };
  CARINA_TRY(ir::Value * upper, halves(true));
  CARINA_TRY(ir::Value * lower, halves(false));
  CARINA_TRY(ir::Value * bytes, elementwise(ElementwiseMode::ADD, upper, lower, DType::Int8));
  define(node->result(), fromBytes(bytes, type, node->result()->shape()));
  return {};
}

Status Legalizer::lowerBitwiseNot(ir::Node* node) {
  if (npu().bitwise) return lowerUnary(node, ElementwiseMode::NOT);
  CARINA_TRY(ir::Value * a, get(node->operand(0)));
  const DType type = a->dtype();
  CARINA_TRY(ir::Value * result, elementwise(ElementwiseMode::SUB, scalarConstant(type, -1), a, type));
  define(node->result(), result);
  return {};
}

// Shifts
// ---------------------------------------------------------------------------------------------------------

ir::Value* Legalizer::lowBytes(ir::Value* value, DType type) {
  const int64_t step = dtypeSize(value->dtype()) / dtypeSize(type);
  Shape parts = value->shape();
  parts.push_back(step);
  ir::Value* bytes = npu_ir::createView(builder_, value, type, parts, 0, rowMajorStrides(parts));
  const ir::Ints dense = rowMajorStrides(value->shape());
  ir::Ints strides = dense;
  for (int64_t& stride : strides) stride *= step;
  return rearranged(bytes, value->shape(), value->shape(), 0, strides, 0, dense);
}

Result<ir::Value*> Legalizer::shiftedDown(ir::Value* a, ir::Value* b, DType type) {
  // floor(a / 2^n) is the rounded quotient of a - 2^(n-1). The hardware adds the half again before it shifts.
  if (const auto amount = onlyNumber(b); amount && broadcastShapes(a->shape(), b->shape()) == a->shape()) {
    if (*amount == 0) return a;
    OutputStage stage;
    stage.shifts = {*amount};
    return elementwise(ElementwiseMode::SUB, a, scalarConstant(type, int64_t{1} << (*amount - 1)), type,
                       stage);
  }
  constexpr int64_t kLowest = INT32_MIN;
  const bool narrow = dtypeSize(type) < 4;
  if (narrow) {
    CARINA_TRY(a, widen(a, 0));
  }
  ir::Value *half = nullptr, *lowest = nullptr;
  if (b->isConstant()) {
    const Tensor amounts = mapped(b->constant(), DType::Int32, [](int64_t n) { return n; });
    const auto halfOf = [](int64_t n) { return n > 0 ? int64_t{1} << (n - 1) : 0; };
    b = constant(amounts);
    half = constant(mapped(amounts, DType::Int32, halfOf));
    lowest = constant(mapped(amounts, DType::Int32, [&](int64_t n) { return kLowest + halfOf(n); }));
  } else {
    if (narrow) {
      CARINA_TRY(b, widen(b, 0));
    }
    // floor(2^n / 2); 2^31 is negative as stored.
    const Shape ones(b->shape().size(), 1);
    const auto number = [&](int64_t n) {
      Tensor tensor = Tensor::zeros(DType::Int32, ones);
      tensor.setIntegerAt(0, n);
      return constant(std::move(tensor));
    };
    OutputStage halved;
    halved.shifts = {1};
    CARINA_TRY(half, elementwise(ElementwiseMode::SHL, number(1), b, DType::Int32));
    CARINA_TRY(half, elementwise(ElementwiseMode::SUB, half, number(1), DType::Int32, halved));
    CARINA_TRY(half, elementwise(ElementwiseMode::ABS, half, nullptr, DType::Int32));
    if (!narrow) {
      CARINA_TRY(lowest, elementwise(ElementwiseMode::ADD, half, number(kLowest), DType::Int32));
    }
  }
  // Values this close to the lowest one have the same quotient.
  if (!narrow) {
    CARINA_TRY(a, elementwise(ElementwiseMode::MAX, a, lowest, DType::Int32));
  }
  CARINA_TRY(ir::Value * below, elementwise(ElementwiseMode::SUB, a, half, DType::Int32));
  return elementwise(ElementwiseMode::SHR, below, b, type);
}

Status Legalizer::lowerShift(ir::Node* node) {
  const DType type = node->result()->dtype();
  CARINA_TRY(ir::Value * a, get(node->operand(0)));
  CARINA_TRY(ir::Value * b, get(node->operand(1)));
  OutputStage stage;
  ElementwiseMode mode = ElementwiseMode::SHL;
  if (ir::isa<tosa::ArithmeticRightShift>(node)) {
    mode = ElementwiseMode::SHR;
    if (!tosa::ArithmeticRightShift(node).round()) {
      if (!npu().truncatingScales) {
        CARINA_TRY(ir::Value * result, shiftedDown(a, b, type));
        define(node->result(), result);
        return {};
      }
      stage.rounding = Rounding::TRUNCATE_TO_LOWER;
    }
  } else if (ir::isa<tosa::LogicalRightShift>(node)) {
    mode = ElementwiseMode::LSR;
    if (!npu().bitwise)
      return fail(Code::MissingCapability, "LOGICAL_RIGHT_SHIFT needs Ethos-U85")
          .withRemedy("keep it on the CPU");
  }
  if (type != DType::Int32) {
    if (mode == ElementwiseMode::LSR) {
      return fail(Code::HardwareLimit, "{} has element type {}, but the NPU shifts 32-bit integers only",
                  node->opName(), dtypeName(type))
          .withRemedy("cast to int32");
    }
    CARINA_TRY(a, widen(a, 0));
    CARINA_TRY(b, widen(b, 0));
  }
  const bool wraps = mode == ElementwiseMode::SHL && type != DType::Int32;
  std::vector<ir::Node*> operations;
  CARINA_TRY(ir::Value * result, elementwise(mode, a, b, wraps ? DType::Int32 : type, stage, &operations));
  if (mode != ElementwiseMode::SHR) operations.clear();  // these do not scale their results
  define(node->result(), wraps ? lowBytes(result, type) : result, std::move(operations));
  return {};
}

}  // namespace carina::compiler
