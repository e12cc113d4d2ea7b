// SPDX-License-Identifier: Apache-2.0
#include "aten/promotion.hpp"

#include "base/pairs.hpp"

namespace carina::aten {
namespace {

/// Ranks in the order of signed integers and floats; uint8 has the rank of int8.
constexpr std::pair<DType, int> kWidths[] = {
    {DType::Bool, 0},  {DType::Int8, 1},    {DType::UInt8, 1},    {DType::Int16, 2},   {DType::Int32, 3},
    {DType::Int64, 4}, {DType::Float16, 5}, {DType::BFloat16, 5}, {DType::Float32, 6}, {DType::Float64, 7}};

int widthOf(DType dtype) {
  return secondOf(kWidths, dtype).value_or(-1);
}

}  // namespace

std::optional<DType> joinTypes(DType a, DType b) {
  if (a == b) return a;
  const int widthA = widthOf(a), widthB = widthOf(b);
  if (widthA < 0 || widthB < 0) return std::nullopt;
  if (widthA == widthB) return isFloat(a) ? DType::Float32 : DType::Int16;  // f16 with bf16, i8 with u8
  return widthA > widthB ? a : b;
}

void Promotion::merge(Rank& rank, DType dtype) {
  if (!rank) {
    rank = dtype;
  } else if (auto joined = joinTypes(*rank, dtype)) {
    rank = joined;
  } else {
    impossible_ = true;
  }
}

Promotion& Promotion::add(const ir::Type& type) {
  merge(type.shape.empty() ? scalars_ : tensors_, type.dtype);
  return *this;
}

Promotion& Promotion::add(const ir::Attribute& number) {
  if (std::holds_alternative<bool>(number)) merge(numbers_, DType::Bool);
  if (std::holds_alternative<int64_t>(number)) merge(numbers_, DType::Int64);
  if (std::holds_alternative<double>(number)) merge(numbers_, DType::Float32);
  return *this;
}

Result<DType> Promotion::type() const {
  bool impossible = impossible_;
  const auto combine = [&impossible](Rank high, Rank low) -> Rank {
    if (!high) return low;
    if (!low || isFloat(*high)) return high;
    if (*high != DType::Bool && !isFloat(*low)) return high;
    const Rank joined = joinTypes(*high, *low);
    if (!joined) impossible = true;
    return joined;
  };
  const Rank result = combine(tensors_, combine(scalars_, numbers_));
  if (impossible || !result) return fail(Code::WrongElementType, "the operands have no common element type");
  return *result;
}

Status checkFactors(const ir::Node& node) {
  const ir::Value* first = nullptr;
  for (const ir::Value* operand : node.operands()) {
    if (!operand) continue;
    if (!first) first = operand;
    if (operand->dtype() != first->dtype()) {
      return fail(Code::WrongElementType, "{}: the operands have types {} and {}, expected one type",
                  node.opName(), dtypeName(first->dtype()), dtypeName(operand->dtype()))
          .withRemedy("convert one of them first");
    }
  }
  if (first && first->dtype() == DType::Bool) {
    return fail(Code::WrongElementType, "{} is not defined on bool", node.opName())
        .withRemedy("convert the operands to numbers first, for example to float32");
  }
  return {};
}

}  // namespace carina::aten
