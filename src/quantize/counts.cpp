// SPDX-License-Identifier: Apache-2.0
#include "quantize/counts.hpp"

#include <algorithm>
#include <cmath>

#include "aten/ops.hpp"

namespace carina::quantize {
namespace {

/// A value without conversions and operators that only change or repeat its shape.
const ir::Value* unconverted(const ir::Value* value) {
  const auto keeps = [](const ir::Node* node) {
    return ir::isa<aten::PrivateToCopy>(node) || ir::isa<aten::View>(node) || ir::isa<aten::Reshape>(node) ||
           ir::isa<aten::Unsqueeze>(node) || ir::isa<aten::Expand>(node);
  };
  while (value->dtype() != DType::Bool && value->producer() && keeps(value->producer()))
    value = value->producer()->operands()[0];
  return value;
}

/// The argument of a reciprocal, also if it is infinite where there is nothing to count (rewriteDivision()).
const ir::Value* divisorOf(const ir::Value& value) {
  const auto reciprocal = ir::producerAs<aten::Reciprocal>(&value);
  if (!reciprocal) return nullptr;
  const auto chosen = ir::producerAs<aten::WhereSelf>(reciprocal.self());
  const bool isGuard = chosen && ir::producerAs<aten::LeTensor>(chosen.condition()) &&
                       chosen.condition()->producer()->operands()[0] == chosen.other();
  return isGuard ? chosen.other() : reciprocal.self();
}

}  // namespace

std::optional<double> largestCount(const ir::Value& value) {
  if (value.dtype() != DType::Float32) return std::nullopt;
  const ir::Value* at = &value;
  double added = 0, least = 0;
  for (;;) {
    at = unconverted(at);
    const auto sum = ir::producerAs<aten::AddScalar>(at);
    const auto limited = ir::producerAs<aten::ClampMin>(at);
    if (!sum && !limited) break;
    if (sum) added += ir::scalarReal(sum.alpha()) * ir::scalarReal(sum.other());
    if (limited) least = std::max(least, ir::scalarReal(limited.min()));
    at = at->producer()->operands()[0];
  }
  if (!ir::producerAs<aten::SumDimIntList>(at) && !ir::producerAs<aten::Sum>(at)) return std::nullopt;
  const ir::Value* mask = at->producer()->operands()[0];
  if (unconverted(mask)->dtype() != DType::Bool || at->numElements() == 0 || !(added >= 0 && added <= 1))
    return std::nullopt;
  const double most = static_cast<double>(mask->numElements()) / static_cast<double>(at->numElements());
  return std::max(most, least) + added;
}

Range rangeOfCounts(const ir::Value& value, Precision precision) {
  const bool isByte = precision == Precision::Int8;
  if (const auto most = largestCount(value)) {
    // Whole numbers have exact codes if a step is a power of two, and at most 1.
    const double codes = isByte ? 255 : 32767;
    const double step = std::exp2(std::ceil(std::log2(*most / codes)));
    return {0, static_cast<float>(step <= 1 ? step * codes : *most)};
  }
  const ir::Value* divisor = divisorOf(value);
  const auto most = divisor ? largestCount(*divisor) : std::nullopt;
  if (!most) return {};
  // The reciprocals of small counts leave few codes to those of large ones.
  const double leastCodes = isByte ? 16 : 256, codes = isByte ? 255 : 32767;
  return {0, static_cast<float>(std::min(1.0, codes / leastCodes / *most))};
}

Range possibleCounts(const ir::Value& value) {
  if (const auto most = largestCount(value)) return {0, static_cast<float>(*most)};
  const ir::Value* divisor = divisorOf(value);
  return divisor && largestCount(*divisor) ? Range{0, 1} : Range{};
}

}  // namespace carina::quantize
