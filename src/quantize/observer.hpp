// SPDX-License-Identifier: Apache-2.0
// Observers determine the range of a tensor's values over the calibration samples. Semantics of PyTorch's
// MinMaxObserver, MovingAverageMinMaxObserver and HistogramObserver (2048 bins, mean-squared-error search),
// and a percentile observer.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace carina::quantize {

enum class ObserverKind : uint8_t { MinMax, MovingAverage, Histogram, Percentile };

/// An observer and its parameter.
struct ObserverSettings {
  ObserverKind kind = ObserverKind::Histogram;
  double parameter = 0;  // MovingAverage: the averaging constant; Percentile: the percentage; others: 0
  ObserverSettings() = default;
  ObserverSettings(ObserverKind observer);  // NOLINT(google-explicit-constructor): with its usual number
  ObserverSettings(ObserverKind observer, double number) : kind(observer), parameter(number) {}
  friend bool operator==(const ObserverSettings&, const ObserverSettings&) = default;
};

/// "minmax", "moving-average" (0.01) or "moving-average:0.1", "histogram", "percentile" (99.99) or
/// "percentile:99.9". Errors: unknown names, numbers that are out of range, numbers for observers without a
/// parameter.
Result<ObserverSettings> parseObserver(std::string_view text);
std::string observerText(const ObserverSettings& settings);

/// A closed range of real values; empty until something is observed.
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
  /// Observes one batch (one sample's values of one tensor). Non-finite values are ignored.
  virtual void observe(std::span<const float> values) = 0;
  /// The range to quantize; empty if nothing was observed.
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

/// Keeps a histogram and selects the part of it with the least squared error when quantized to `levels`
/// codes; values outside are clipped. The search starts with the error of the whole range, so it clips only
/// if that reduces the error (PyTorch's takes its first step unconditionally, which clips the largest value
/// of small samples).
class HistogramObserver final : public Observer {
 public:
  static constexpr int kBins = 2048;
  static constexpr int kUpsample = 16;

  /// levels: 256 for 8-bit codes, 65536 for 16-bit.
  explicit HistogramObserver(int levels) : levels_(levels), histogram_(kBins, 0.0f) {}
  void observe(std::span<const float> values) override;
  /// The result of the search, which takes up to a few milliseconds.
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

/// The range that excludes at most (100 - percentage) % of the values at either end. Its ends are observed
/// values, exact to 1/128 of their magnitude; 100 gives the smallest and largest value. The order of batches
/// does not matter.
class PercentileObserver final : public Observer {
 public:
  /// 50 < percentage <= 100.
  explicit PercentileObserver(double percentage) : percentage_(percentage) {}
  void observe(std::span<const float> values) override;
  Range range() const override;

 private:
  /// Values of one sign and exponent share a block, those with equal upper mantissa bits a cell of it. Keys
  /// of blocks and cells ascend with the values.
  static constexpr int kCellBits = 7;
  struct Cell {
    uint64_t count = 0;
    Range values;
  };
  using Block = std::array<Cell, size_t{1} << kCellBits>;
  static constexpr size_t kBlocks = 512;

  double percentage_;
  uint64_t total_ = 0;
  std::array<std::unique_ptr<Block>, kBlocks> blocks_;
};

/// levels: how many codes the activation has.
std::unique_ptr<Observer> makeObserver(const ObserverSettings& settings, int levels);

/// counts[k] += the number of finite values in bin k of kBins equal bins over [range.min, range.max] (the
/// upper edge belongs to the last bin). range.min < range.max.
void addHistogram(std::span<const float> values, const Range& range, std::span<float> counts);

}  // namespace carina::quantize
