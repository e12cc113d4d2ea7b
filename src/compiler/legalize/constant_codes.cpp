// SPDX-License-Identifier: Apache-2.0
#include "compiler/legalize/constant_codes.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "base/dtype.hpp"

namespace carina::compiler {
namespace {

constexpr int64_t kMostSteps = 64;  // between the two closest values

/// Codes of a type, minus their zero point.
struct Steps {
  int64_t least, most, span;  // span: the largest difference
};

/// int16 codes have no zero point.
Steps stepsOf(DType type) {
  return type == DType::Int8 ? Steps{-255, 255, 255} : Steps{integerMin(type), integerMax(type), 0xffff};
}

/// The distinct values in ascending order; none if there are more than codes.
std::vector<int64_t> distinctNumbers(const Tensor& numbers, const Steps& codes) {
  std::vector<int64_t> distinct;
  for (int64_t n = 0; n < numbers.numElements(); ++n) distinct.push_back(numbers.integerAt(n));
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  if (std::ssize(distinct) > codes.span + 1) distinct.clear();
  return distinct;
}

/// The smallest value that is a multiple of the unit, apart from rounding: a difference or a magnitude.
int64_t smallestSpan(const std::vector<int64_t>& distinct) {
  int64_t span = INT64_MAX;
  for (size_t n = 0; n < distinct.size(); ++n) {
    if (distinct[n] != 0) span = std::min(span, std::abs(distinct[n]));
    if (n > 0) span = std::min(span, distinct[n] - distinct[n - 1]);
  }
  return span;
}

/// A unit between `low` and `high` of which all magnitudes (ascending) are rounded multiples; 0: none. Each
/// multiple narrows the range, which determines the next one. A power of two if there is one: Ethos-U55 and
/// U65 have one as the scale of the coarser operand of a sum.
double narrowedUnit(const std::vector<int64_t>& magnitudes, double low, double high, int64_t mostSteps) {
  for (const int64_t magnitude : magnitudes) {
    const auto number = static_cast<double>(magnitude);
    const double steps = std::round(number / ((low + high) / 2));
    if (steps < 1 || steps > static_cast<double>(mostSteps)) return 0;
    low = std::max(low, (number - 0.5) / steps);
    high = std::min(high, (number + 0.5) / steps);
    if (low > high) return 0;
  }
  const double power = std::exp2(std::ceil(std::log2(low)));
  return power <= high ? power : (low + high) / 2;
}

/// Multiplier and shift of a unit, with as many bits as a multiplier has.
std::optional<std::pair<int64_t, int64_t>> scaleOfUnit(double unit) {
  int64_t shift = 30 - std::ilogb(unit);
  if (shift < 2 || shift > 61) return std::nullopt;
  auto multiplier = static_cast<int64_t>(std::llround(std::ldexp(unit, static_cast<int>(shift))));
  if (multiplier == int64_t{1} << 31) {
    multiplier /= 2;
    --shift;
  }
  return std::pair(multiplier, shift);
}

/// The steps that RESCALE turns into these values, in the same order; none if it misses one.
std::vector<int64_t> stepsTo(const std::vector<int64_t>& distinct, double unit, int64_t multiplier,
                             int64_t shift) {
  std::vector<int64_t> steps;
  for (const int64_t number : distinct) {
    const int64_t step = std::llround(static_cast<double>(number) / unit);
    if ((step * multiplier + (int64_t{1} << (shift - 1))) >> shift != number) return {};
    steps.push_back(step);
  }
  return steps;
}

}  // namespace

std::optional<ConstantCodes> codesOfNumbers(const Tensor& numbers, DType type) {
  const Steps codes = stepsOf(type);
  const std::vector<int64_t> distinct = distinctNumbers(numbers, codes);
  if (distinct.empty() || (distinct.size() == 1 && distinct[0] == 0)) return std::nullopt;
  if (type == DType::Int16 && distinct.front() >= codes.least && distinct.back() <= codes.most) {
    Tensor same = Tensor::uninitialized(type, numbers.shape());
    for (int64_t n = 0; n < numbers.numElements(); ++n) same.setIntegerAt(n, numbers.integerAt(n));
    return ConstantCodes{std::move(same), 0, 1, 0};
  }
  std::vector<int64_t> magnitudes;
  for (const int64_t number : distinct) {
    if (number != 0) magnitudes.push_back(std::abs(number));
  }
  std::sort(magnitudes.begin(), magnitudes.end());
  const auto span = static_cast<double>(smallestSpan(distinct));
  for (int64_t k = 1; k <= kMostSteps; ++k) {
    const auto part = static_cast<double>(k);
    const double unit = narrowedUnit(magnitudes, (span - 1) / part, (span + 1) / part, -codes.least);
    if (unit <= 0) continue;
    const auto scale = scaleOfUnit(unit);
    if (!scale) continue;
    const std::vector<int64_t> steps = stepsTo(distinct, unit, scale->first, scale->second);
    if (steps.empty() || steps.front() < codes.least || steps.back() > codes.most ||
        steps.back() - steps.front() > codes.span)
      continue;
    const int64_t zeroPoint = type == DType::Int8 ? std::clamp<int64_t>(0, integerMin(type) - steps.front(),
                                                                        integerMax(type) - steps.back())
                                                  : 0;
    ConstantCodes result{Tensor::zeros(type, numbers.shape()), zeroPoint, scale->first, scale->second};
    for (int64_t n = 0; n < numbers.numElements(); ++n) {
      const auto at = std::lower_bound(distinct.begin(), distinct.end(), numbers.integerAt(n));
      result.codes.setIntegerAt(n, steps[static_cast<size_t>(at - distinct.begin())] + zeroPoint);
    }
    return result;
  }
  return std::nullopt;
}

}  // namespace carina::compiler
