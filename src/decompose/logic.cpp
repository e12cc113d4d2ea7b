// SPDX-License-Identifier: Apache-2.0
// Logic on numbers, arithmetic on booleans, and functions of integers, expressed by operators that the NPU
// supports; tensors without elements.
#include "aten/ops.hpp"
#include "decompose/dims.hpp"
#include "decompose/rewrites.hpp"

namespace carina::decompose {
namespace {

using aten::OpId;

bool isBool(const ir::Value* value) {
  return value->dtype() == DType::Bool;
}
ir::Value* zeroLike(ir::Builder& b, const ir::Value* value) {
  return b.constant(Tensor::zeros(value->dtype(), {}));
}
/// Whether a number counts as true.
ir::Value* truth(ir::Builder& b, ir::Value* value) {
  return isBool(value) ? value : aten::NeTensor::create(b, value, zeroLike(b, value));
}
ir::Value* inverted(const ir::Builder& b, ir::Value* value) {
  return aten::LogicalNot::create(b, value);
}

/// Logical operators test whether their operands are nonzero: bitwise ones would give other results.
Result<bool> rewriteLogicOfNumbers(ir::Node* node) {
  const bool pair =
      ir::isa<aten::LogicalAnd>(node) || ir::isa<aten::LogicalOr>(node) || ir::isa<aten::LogicalXor>(node);
  if ((!pair && !ir::isa<aten::LogicalNot>(node)) || isQuantizedAsUnit(*node)) return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  ir::Value* x = node->operands()[0];
  if (!pair) {
    if (isBool(x)) return false;
    replaceNode(node, aten::EqTensor::create(b, x, zeroLike(b, x)));
    return true;
  }
  ir::Value* y = node->operands()[1];
  if (isBool(x) && isBool(y)) return false;
  node->setOperand(0, truth(b, x));
  node->setOperand(1, truth(b, y));
  return true;
}

/// Arithmetic and comparisons of two booleans as logic; null for other operators.
ir::Value* logicOf(ir::Builder& b, const ir::Node& node, ir::Value* x, ir::Value* y) {
  switch (aten::opId(&node)) {
    case OpId::MulTensor:
    case OpId::Minimum:
      return aten::LogicalAnd::create(b, x, y);
    case OpId::AddTensor:
      if (ir::scalarReal(ir::cast<aten::AddTensor>(&node).alpha()) != 1) return nullptr;
      return aten::LogicalOr::create(b, x, y);
    case OpId::Maximum:
      return aten::LogicalOr::create(b, x, y);
    case OpId::NeTensor:
      return aten::LogicalXor::create(b, x, y);
    case OpId::EqTensor:
      return inverted(b, aten::LogicalXor::create(b, x, y));
    case OpId::LtTensor:
      return aten::LogicalAnd::create(b, inverted(b, x), y);
    case OpId::LeTensor:
      return aten::LogicalOr::create(b, inverted(b, x), y);
    case OpId::GtTensor:
      return aten::LogicalAnd::create(b, x, inverted(b, y));
    case OpId::GeTensor:
      return aten::LogicalOr::create(b, x, inverted(b, y));
    default:
      return nullptr;
  }
}

ir::Value* rewriteArithmeticOfBools(ir::Builder& b, ir::Node* node) {
  if (!aten::isOperator(node) || node->operands().size() != 2 || node->results().size() != 1) return nullptr;
  ir::Value* x = node->operands()[0];
  ir::Value* y = node->operands()[1];
  if (!x || !y || !isBool(x) || !isBool(y) || !isBool(node->result())) return nullptr;
  return logicOf(b, *node, x, y);
}

/// A boolean compared with 0 or 1: itself, or its opposite.
Result<bool> rewriteBoolAgainstNumber(ir::Node* node) {
  const bool equal = ir::isa<aten::EqScalar>(node);
  if ((!equal && !ir::isa<aten::NeScalar>(node)) || !isBool(node->operands()[0])) return false;
  const double other = ir::scalarReal(node->attribute(0));
  if (other != 0 && other != 1) return false;
  ir::Value* x = node->operands()[0];
  if (equal == (other == 1)) {
    node->graph().replaceAllUses(node->result(), x);
    node->graph().erase(node);
  } else {
    replaceNode(node, inverted(ir::Builder::beforeNode(node), x));
  }
  return true;
}

/// abs, neg, sign and fmod of signed integers.
ir::Value* rewriteIntegerFunction(ir::Builder& b, ir::Node* node) {
  if (!aten::isOperator(node) || node->operands().empty() || node->results().size() != 1 ||
      !node->operands()[0])
    return nullptr;
  ir::Value* x = node->operands()[0];
  const DType dtype = node->result()->dtype();
  if (!isInteger(dtype) || dtype == DType::UInt8 || x->dtype() != dtype) return nullptr;
  const auto minus = [&](ir::Value* v, ir::Value* w) { return aten::SubTensor::create(b, v, w); };
  const auto asNumber = [&](ir::Value* v) { return aten::PrivateToCopy::create(b, v, dtype); };
  switch (aten::opId(node)) {
    case OpId::Neg:
      return minus(zeroLike(b, x), x);
    case OpId::Abs:
      return aten::Maximum::create(b, x, minus(zeroLike(b, x), x));
    case OpId::Sign:
    case OpId::Sgn: {
      ir::Value* zero = zeroLike(b, x);
      return minus(asNumber(aten::GtTensor::create(b, x, zero)),
                   asNumber(aten::LtTensor::create(b, x, zero)));
    }
    case OpId::Square:
      return aten::MulTensor::create(b, x, x);
    case OpId::PowTensorScalar: {
      const double exponent = ir::scalarReal(node->attribute(0));
      if (exponent != 2 && exponent != 3) return nullptr;
      ir::Value* square = aten::MulTensor::create(b, x, x);
      return exponent == 3 ? aten::MulTensor::create(b, square, x) : square;
    }
    case OpId::FmodTensor: {
      ir::Value* y = node->operands()[1];
      if (y->dtype() != dtype) return nullptr;
      ir::Value* quotient = aten::DivTensorMode::create(b, x, y, "trunc");
      return minus(x, aten::MulTensor::create(b, quotient, y));
    }
    default:
      return nullptr;
  }
}

/// Real-valued functions of integers: the operand is converted to float first.
Result<bool> rewriteRealOfInteger(ir::Node* node) {
  if (!aten::isOperator(node) || node->operands().size() != 1 || node->results().size() != 1) return false;
  ir::Value* x = node->operands()[0];
  if (!x || isFloat(x->dtype()) || node->result()->dtype() != DType::Float32) return false;
  switch (aten::opId(node)) {
    case OpId::Sqrt:
    case OpId::Rsqrt:
    case OpId::Reciprocal:
    case OpId::Exp:
    case OpId::Log:
    case OpId::Sin:
    case OpId::Cos:
    case OpId::Tanh:
    case OpId::Sigmoid:
    case OpId::Atan:
    case OpId::Sum:
    case OpId::SumDimIntList:
    case OpId::Mean:
    case OpId::MeanDim:
      break;
    default:
      return false;
  }
  node->setOperand(0, aten::PrivateToCopy::create(ir::Builder::beforeNode(node), x, DType::Float32));
  return true;
}

/// Numbers as booleans: whether they are nonzero.
ir::Value* rewriteToBool(ir::Builder& b, ir::Node* node) {
  if (!aten::isOperator(node) || node->operands().empty() || node->results().size() != 1) return nullptr;
  switch (aten::opId(node)) {
    case OpId::ToDtype:
    case OpId::ToDtypeLayout:
    case OpId::PrivateToCopy:
      break;
    default:
      return nullptr;
  }
  ir::Value* x = node->operands()[0];
  if (!isBool(node->result()) || isBool(x) || isQuantizedAsUnit(*node)) return nullptr;
  return truth(b, x);
}

/// Concatenations drop tensors without elements.
ir::Value* rewriteEmptyParts(ir::Builder& b, aten::Cat op) {
  if (op->result()->numElements() == 0) return nullptr;
  std::vector<ir::Value*> parts;
  for (ir::Value* part : op.tensors()) {
    if (part->numElements() > 0) parts.push_back(part);
  }
  if (parts.size() == op.tensors().size()) return nullptr;
  const int64_t dim = wrapped(op.dim(), op->result()->rank());
  return aten::Cat::create(b, parts, dim);
}

}  // namespace

void addLogicRewrites(std::vector<ir::Rewrite>& rewrites) {
  addRewrites(rewrites, rewriteLogicOfNumbers, rewriteArithmeticOfBools, rewriteBoolAgainstNumber,
              rewriteIntegerFunction, rewriteRealOfInteger, rewriteToBool, rewriteEmptyParts);
}

}  // namespace carina::decompose
