// SPDX-License-Identifier: Apache-2.0
// Observers: what range of values a tensor takes over the calibration samples. Semantics of PyTorch's
// MinMaxObserver, MovingAverageMinMaxObserver and HistogramObserver (2048 bins, mean-squared-error search).
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace carina::quantize {

enum class ObserverKind : uint8_t { MinMax, MovingAverage, Histogram };

/// A closed range of real values; empty while nothing was observed.
struct Range {
  float min = std::numeric_limits<float>::infinity();
  float max = -std::numeric_limits<float>::infinity();
  bool empty() const { return !(min <= max); }
};

/// Smallest and largest element. Vectorised. `nonFinite` is set when there are NaN or infinite elements,
/// which are left out of the range.
Range rangeOf(std::span<const float> values, bool* nonFinite = nullptr);

class Observer {
 public:
  virtual ~Observer() = default;
  /// Takes in one batch (one sample's values of one tensor). Non-finite values are ignored.
  virtual void observe(std::span<const float> values) = 0;
  /// The range to quantize; empty when nothing was observed.
  virtual Range range() const = 0;
};

/// Smallest and largest value seen.
class MinMaxObserver final : public Observer {
 public:
  void observe(std::span<const float> values) override;
  Range range() const override { return range_; }

 private:
  Range range_;
};

/// m += c * (current - m) for both ends, starting at the first batch.
class MovingAverageObserver final : public Observer {
 public:
  explicit MovingAverageObserver(float constant = 0.01f) : constant_(constant) {}
  void observe(std::span<const float> values) override;
  Range range() const override { return range_; }

 private:
  float constant_;
  Range range_;
};

/// Keeps a histogram and picks the part of it that loses least (squared error) when quantized to `levels`
/// codes: it clips.
class HistogramObserver final : public Observer {
 public:
  static constexpr int kBins = 2048;
  static constexpr int kUpsample = 16;

  /// levels: 256 for 8-bit codes, 65536 for 16-bit.
  explicit HistogramObserver(int levels) : levels_(levels), histogram_(kBins, 0.0f) {}
  void observe(std::span<const float> values) override;
  /// The searched range. Costs up to a few milliseconds.
  Range range() const override;

  /// Everything seen, unclipped, and the counts per bin over it.
  const Range& observed() const { return seen_; }
  std::span<const float> histogram() const { return histogram_; }

 private:
  void widen(const Range& wider);
  double error(int first, int last) const;

  int levels_;
  Range seen_;
  std::vector<float> histogram_;
};

std::unique_ptr<Observer> makeObserver(ObserverKind kind, int levels);

/// counts[k] += how many finite values lie in bin k of kBins equal bins over [range.min, range.max] (the
/// upper edge belongs to the last bin). range.min < range.max.
void addHistogram(std::span<const float> values, const Range& range, std::span<float> counts);

}  // namespace carina::quantize
