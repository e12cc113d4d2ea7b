// SPDX-License-Identifier: Apache-2.0
// Observers of calibration data. The loops over elements and bins are in observer_kernels.cpp.
#include "quantize/observer.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"
#include "quantize/observer_kernels.hpp"

namespace carina::quantize {
namespace {

Range unite(const Range& a, const Range& b) {
  return {std::min(a.min, b.min), std::max(a.max, b.max)};
}

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
        static_cast<float>(values.size());  // a single value so far: its place is decided when it widens
    return;
  }
  addHistogram(values, wider, histogram_);
}

/// Moves the counts over seen_ into bins over `wider`: every bin is cut in kUpsample parts, and each part
/// goes to the new bin that its centre lies in.
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
      for (int j = 0; j < kUpsample; ++j) moved[newBin(start + (j + 0.5) * part)] += count / kUpsample;
    }
  }
  histogram_ = std::move(moved);
}

/// Squared error when bins first..last become `levels_` codes and what lies outside is clipped to them.
double HistogramObserver::error(int first, int last) const {
  const double width = binWidth(seen_);
  const double codeWidth = width * (last - first + 1) / levels_;
  if (codeWidth == 0) return 0;
  return clippedQuantizationError(histogram_, first, static_cast<float>(width), static_cast<float>(codeWidth),
                                  levels_);
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
  double alpha = 0, beta = 1, best = std::numeric_limits<double>::infinity();
  int start = 0, end = kBins - 1;
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

std::unique_ptr<Observer> makeObserver(ObserverKind kind, int levels) {
  switch (kind) {
    case ObserverKind::MinMax:
      return std::make_unique<MinMaxObserver>();
    case ObserverKind::MovingAverage:
      return std::make_unique<MovingAverageObserver>();
    case ObserverKind::Histogram:
      return std::make_unique<HistogramObserver>(levels);
  }
  CARINA_UNREACHABLE("observer kind");
}

}  // namespace carina::quantize
