// SPDX-License-Identifier: Apache-2.0
// Observers of calibration data. The loops over elements and bins are in observer_kernels.cpp.
#include "quantize/observer.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

#include "base/check.hpp"
#include "quantize/observer_kernels.hpp"
#include "quantize/ranges.hpp"

namespace carina::quantize {
namespace {

/// Width of a bin, computed in double as the search does.
double binWidth(const Range& range) {
  return (static_cast<double>(range.max) - static_cast<double>(range.min)) / HistogramObserver::kBins;
}

}  // namespace

void MinMaxObserver::observe(std::span<const float> values) {
  range_ = unite(range_, rangeOf(values));
}

void MovingAverageObserver::observe(std::span<const float> values) {
  const Range current = rangeOf(values);
  if (current.empty()) return;
  if (range_.empty()) {
    range_ = current;
    return;
  }
  range_.min += constant_ * (current.min - range_.min);
  range_.max += constant_ * (current.max - range_.max);
}

void HistogramObserver::observe(std::span<const float> values) {
  const Range current = rangeOf(values);
  if (current.empty()) return;
  const Range wider = unite(seen_, current);
  if (!seen_.empty() && (wider.min < seen_.min || wider.max > seen_.max)) widen(wider);
  seen_ = wider;
  if (wider.min == wider.max) {
    histogram_[0] +=
        static_cast<float>(values.size());  // a single value so far: its bin is decided on widening
    return;
  }
  addHistogram(values, wider, histogram_);
}

/// Moves the counts over seen_ into bins over `wider`: every bin is split into kUpsample parts, and each part
/// goes to the new bin that contains its centre.
void HistogramObserver::widen(const Range& wider) {
  std::vector<float> moved(kBins, 0.0f);
  const double newWidth = binWidth(wider);
  const auto newBin = [&](double value) {
    return static_cast<size_t>(std::clamp(static_cast<int>((value - wider.min) / newWidth), 0, kBins - 1));
  };
  if (seen_.min == seen_.max) {
    float total = 0;
    for (float count : histogram_) total += count;
    moved[newBin(seen_.min)] = total;
  } else {
    const double part = binWidth(seen_) / kUpsample;
    for (int i = 0; i < kBins; ++i) {
      const float count = histogram_[static_cast<size_t>(i)];
      if (count == 0) continue;
      const double start = seen_.min + static_cast<double>(i) * kUpsample * part;
      const auto binOf = [&](int j) { return newBin(start + (j + 0.5) * part); };
      const size_t first = binOf(0);
      if (first == binOf(kUpsample - 1)) {  // and so do those in between
        for (int j = 0; j < kUpsample; ++j) moved[first] += count / kUpsample;
        continue;
      }
      for (int j = 0; j < kUpsample; ++j) moved[binOf(j)] += count / kUpsample;
    }
  }
  histogram_ = std::move(moved);
}

/// Squared error if bins first..last become `levels_` codes and values outside are clipped to them.
double HistogramObserver::error(int first, int last) const {
  const double width = binWidth(seen_);
  const double codeWidth = width * (last - first + 1) / levels_;
  if (codeWidth == 0) return 0;
  // In units near the width, whose cube neither overflows nor underflows: errors are only compared.
  const int exponent = std::ilogb(width);
  return clippedQuantizationError(histogram_, first, static_cast<float>(std::ldexp(width, -exponent)),
                                  static_cast<float>(std::ldexp(codeWidth, -exponent)), levels_);
}

Range HistogramObserver::range() const {
  if (seen_.empty() || seen_.min == seen_.max) return seen_;
  std::vector<float> cumulative(kBins);
  double total = 0;
  for (size_t i = 0; i < kBins; ++i) {
    total += histogram_[i];
    cumulative[i] = static_cast<float>(total);
  }

  // Narrow the range from whichever end holds fewer counts, one quantile step at a time, until the error
  // grows.
  constexpr double kStep = 1e-5;
  int start = 0, end = kBins - 1;
  double alpha = 0, beta = 1, best = error(start, end);
  while (alpha < beta) {
    const double nextAlpha = alpha + kStep, nextBeta = beta - kStep;
    const float lowCount = static_cast<float>(nextAlpha * total),
                highCount = static_cast<float>(nextBeta * total);
    int left = start, right = end;
    while (left < end && cumulative[static_cast<size_t>(left)] < lowCount) ++left;
    while (right > start && cumulative[static_cast<size_t>(right)] > highCount) --right;
    int nextStart = start, nextEnd = end;
    if (left - start > end - right) {
      nextStart = left;
      alpha = nextAlpha;
    } else {
      nextEnd = right;
      beta = nextBeta;
    }
    if (nextStart == start && nextEnd == end) continue;
    const double candidate = error(nextStart, nextEnd);
    if (candidate > best) break;
    best = candidate;
    start = nextStart;
    end = nextEnd;
  }
  const double width = binWidth(seen_);
  return {static_cast<float>(seen_.min + width * start), static_cast<float>(seen_.min + width * (end + 1))};
}

namespace {

/// The bits of a float as an integer that ascends with it.
uint32_t orderedBits(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

}  // namespace

void PercentileObserver::observe(std::span<const float> values) {
  for (float value : values) {
    if (!std::isfinite(value)) continue;
    const uint32_t key = orderedBits(value) >> (23 - kCellBits);
    auto& block = blocks_[key >> kCellBits];
    if (!block) block = std::make_unique<Block>();
    Cell& cell = (*block)[key & ((1u << kCellBits) - 1)];
    ++cell.count;
    cell.values = unite(cell.values, {value, value});
    ++total_;
  }
}

Range PercentileObserver::range() const {
  Range result;
  if (total_ == 0) return result;
  // The number of values that may be outside at either end. The small term compensates for rounding in the
  // division.
  const auto outside =
      static_cast<uint64_t>(static_cast<double>(total_) * (100.0 - percentage_) / 100.0 + 1e-6);
  uint64_t seen = 0;
  for (const auto& block : blocks_) {
    if (!block) continue;
    for (const Cell& cell : *block) {
      if (cell.count == 0) continue;
      if (seen <= outside && seen + cell.count > outside) result.min = cell.values.min;
      seen += cell.count;
      if (seen >= total_ - outside) {
        result.max = cell.values.max;
        return result;
      }
    }
  }
  CARINA_UNREACHABLE("a percentile beyond the values");
}

namespace {

constexpr double kAveraging = 0.01, kPercentage = 99.99;

double usualNumber(ObserverKind kind) {
  switch (kind) {
    case ObserverKind::MovingAverage:
      return kAveraging;
    case ObserverKind::Percentile:
      return kPercentage;
    default:
      return 0;
  }
}

struct ObserverName {
  ObserverKind kind;
  std::string_view name;
};
constexpr std::array kObserverNames{
    ObserverName{ObserverKind::MinMax, "minmax"}, ObserverName{ObserverKind::MovingAverage, "moving-average"},
    ObserverName{ObserverKind::Histogram, "histogram"}, ObserverName{ObserverKind::Percentile, "percentile"}};

}  // namespace

ObserverSettings::ObserverSettings(ObserverKind observer)
    : kind(observer), parameter(usualNumber(observer)) {}

Result<ObserverSettings> parseObserver(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const auto known = std::find_if(kObserverNames.begin(), kObserverNames.end(),
                                  [&](const ObserverName& entry) { return entry.name == name; });
  if (known == kObserverNames.end()) {
    return fail(Code::BadOption, "there is no observer '{}'", name)
        .withRemedy("observers are minmax, moving-average, histogram and percentile");
  }
  ObserverSettings settings(known->kind);
  if (colon == std::string_view::npos) return settings;
  const std::string_view number = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), settings.parameter);
  const bool isNumber = error == std::errc() && end == number.data() + number.size();
  switch (known->kind) {
    case ObserverKind::MovingAverage:
      if (isNumber && settings.parameter > 0 && settings.parameter <= 1) return settings;
      return fail(Code::BadOption, "the averaging constant '{}' is not a number in (0, 1]", number);
    case ObserverKind::Percentile:
      if (isNumber && settings.parameter > 50 && settings.parameter <= 100) return settings;
      return fail(Code::BadOption, "the percentage '{}' is not a number in (50, 100]", number);
    default:
      return fail(Code::BadOption, "observer {} takes no number", name);
  }
}

std::string observerText(const ObserverSettings& settings) {
  for (const ObserverName& entry : kObserverNames) {
    if (entry.kind != settings.kind) continue;
    return settings.parameter == 0 ? std::string(entry.name)
                                   : fmt::format("{}:{}", entry.name, settings.parameter);
  }
  CARINA_UNREACHABLE("observer kind");
}

std::unique_ptr<Observer> makeObserver(const ObserverSettings& settings, int levels) {
  switch (settings.kind) {
    case ObserverKind::MinMax:
      return std::make_unique<MinMaxObserver>();
    case ObserverKind::MovingAverage:
      return std::make_unique<MovingAverageObserver>(static_cast<float>(settings.parameter));
    case ObserverKind::Histogram:
      return std::make_unique<HistogramObserver>(levels);
    case ObserverKind::Percentile:
      return std::make_unique<PercentileObserver>(settings.parameter);
  }
  CARINA_UNREACHABLE("observer kind");
}

}  // namespace carina::quantize
