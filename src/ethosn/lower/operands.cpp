// SPDX-License-Identifier: Apache-2.0
#include "ethosn/lower/operands.hpp"

#include <cmath>

namespace carina::ethosn {

ir::Ints valuesOf(const ir::Value* value) {
  ir::Ints out;
  for (int64_t i = 0; i < value->numElements(); ++i) out.push_back(value->constant().integerAt(i));
  return out;
}

int64_t valueOf(const ir::Value* value) {
  return value->constant().integerAt(0);
}

std::vector<float> ratiosOf(const tosa::Rescale& rescale) {
  const ir::Ints multipliers = valuesOf(rescale.multiplier()), shifts = valuesOf(rescale.shift());
  std::vector<float> out;
  for (size_t i = 0; i < (rescale.perChannel() ? multipliers.size() : 1); ++i) {
    out.push_back(
        static_cast<float>(std::ldexp(static_cast<double>(multipliers[i]), -static_cast<int>(shifts[i]))));
  }
  return out;
}

std::vector<double> WideOperand::values() const {
  std::vector<double> out;
  for (const int64_t code : valuesOf(codes))
    out.push_back(std::nearbyint(static_cast<double>(code - zeroPoint) * ratio));
  return out;
}

std::optional<WideOperand> wideOperandOf(const ir::Value* value) {
  WideOperand operand;
  while (!value->isConstant() && value->dtype() == DType::Int32) {
    if (const auto shift = ir::producerAs<tosa::LogicalLeftShift>(value)) {
      if (!shift.input2()->isConstant() || shift.input2()->numElements() != 1) return std::nullopt;
      operand.ratio = std::ldexp(operand.ratio, static_cast<int>(valueOf(shift.input2())));
      value = shift.input1();
      continue;
    }
    const auto rescale = ir::producerAs<tosa::Rescale>(value);
    if (!rescale || rescale.perChannel() || valueOf(rescale.outputZp()) != 0) return std::nullopt;
    operand.ratio *= static_cast<double>(ratiosOf(rescale)[0]);
    value = rescale.input();
    const int64_t zero = valueOf(rescale.inputZp());
    if (value->dtype() == DType::Int32 && zero != 0) return std::nullopt;
    operand.zeroPoint = rescale.inputUnsigned() ? zero & 0xff : zero;
  }
  operand.codes = value;
  const bool narrow = dtypeSize(value->dtype()) == 1 && value->dtype() != DType::Bool;
  return narrow || value->isConstant() ? std::optional(operand) : std::nullopt;
}

}  // namespace carina::ethosn
