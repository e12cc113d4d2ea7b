// SPDX-License-Identifier: Apache-2.0
#include "compiler/legalize/constant_codes.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "base/dtype.hpp"

namespace carina::compiler {
namespace {

constexpr int64_t kMaxCode = 255;  // relative to its zero point
constexpr int64_t kMostSteps = 8;  // between the two closest values

/// The distinct values in ascending order; none if there are more than codes.
std::vector<int64_t> distinctNumbers(const Tensor& numbers) {
  std::vector<int64_t> distinct;
  for (int64_t n = 0; n < numbers.numElements(); ++n) {
    const int64_t number = numbers.integerAt(n);
    const auto at = std::lower_bound(distinct.begin(), distinct.end(), number);
    if (at != distinct.end() && *at == number) continue;
    if (std::ssize(distinct) > kMaxCode) return {};
    distinct.insert(at, number);
  }
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
/// multiple narrows the range, which determines the next one.
double narrowedUnit(const std::vector<int64_t>& magnitudes, double low, double high) {
  for (const int64_t magnitude : magnitudes) {
    const auto number = static_cast<double>(magnitude);
    const double steps = std::round(number / ((low + high) / 2));
    if (steps < 1 || steps > static_cast<double>(kMaxCode)) return 0;
    low = std::max(low, (number - 0.5) / steps);
    high = std::min(high, (number + 0.5) / steps);
    if (low > high) return 0;
  }
  return (low + high) / 2;
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

std::optional<ConstantCodes> codesOfNumbers(const Tensor& numbers) {
  const std::vector<int64_t> distinct = distinctNumbers(numbers);
  if (distinct.empty() || (distinct.size() == 1 && distinct[0] == 0)) return std::nullopt;
  std::vector<int64_t> magnitudes;
  for (const int64_t number : distinct) {
    if (number != 0) magnitudes.push_back(std::abs(number));
  }
  std::sort(magnitudes.begin(), magnitudes.end());
  const auto span = static_cast<double>(smallestSpan(distinct));
  for (int64_t k = 1; k <= kMostSteps; ++k) {
    const auto part = static_cast<double>(k);
    const double unit = narrowedUnit(magnitudes, (span - 1) / part, (span + 1) / part);
    if (unit <= 0) continue;
    const auto scale = scaleOfUnit(unit);
    if (!scale) continue;
    const std::vector<int64_t> steps = stepsTo(distinct, unit, scale->first, scale->second);
    if (steps.empty() || steps.back() - steps.front() > kMaxCode) continue;
    const int64_t low = integerMin(DType::Int8), high = integerMax(DType::Int8);
    const int64_t zeroPoint = std::clamp<int64_t>(0, low - steps.front(), high - steps.back());
    ConstantCodes result{Tensor::zeros(DType::Int8, numbers.shape()), zeroPoint, scale->first, scale->second};
    for (int64_t n = 0; n < numbers.numElements(); ++n) {
      const auto at = std::lower_bound(distinct.begin(), distinct.end(), numbers.integerAt(n));
      result.codes.setIntegerAt(n, steps[static_cast<size_t>(at - distinct.begin())] + zeroPoint);
    }
    return result;
  }
  return std::nullopt;
}

}  // namespace carina::compiler
