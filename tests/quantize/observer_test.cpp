// SPDX-License-Identifier: Apache-2.0
// Observers compared with slow references and hand-computed histograms.
#include "quantize/observer.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <tuple>

#include "quantize/observer_kernels.hpp"

namespace carina::quantize {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> randomValues(size_t count, uint32_t seed, float mean = 0, float deviation = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(mean, deviation);
  std::vector<float> values(count);
  for (float& v : values) v = normal(random);
  return values;
}

/// The squared error that the PT2E flow's HistogramObserver minimizes, bin by bin in double precision.
double slowError(std::span<const float> histogram, int first, double width, double codeWidth, int levels) {
  const auto integral = [](double from, double to, double density) {
    return density * (to * to * to - from * from * from) / 3;
  };
  double sum = 0;
  for (size_t i = 0; i < histogram.size(); ++i) {
    const double begin = (static_cast<double>(i) - first) * width, end = begin + width;
    const auto code = [&](double x) { return std::clamp(std::floor(x / codeWidth), 0.0, levels - 1.0); };
    const double density = histogram[i] / width;
    const double beginCentre = (code(begin) + 0.5) * codeWidth, endCentre = (code(end) + 0.5) * codeWidth;
    sum += integral(begin - beginCentre, codeWidth / 2, density);
    sum += (code(end) - code(begin) - 1) * integral(-codeWidth / 2, codeWidth / 2, density);
    sum += integral(-codeWidth / 2, end - endCentre, density);
  }
  return sum;
}

TEST(RangeOf, SkipsNonFiniteValues) {
  std::vector<float> values(1001, 0.5f);
  values[3] = -kInfinity;
  values[1000] = std::nanf("");
  values[500] = -2;
  values[999] = 7;
  bool nonFinite = false;
  const Range range = rangeOf(values, &nonFinite);
  EXPECT_EQ(range.min, -2);
  EXPECT_EQ(range.max, 7);
  EXPECT_TRUE(nonFinite);
  EXPECT_TRUE(rangeOf({}).empty());
  EXPECT_TRUE(rangeOf(std::vector<float>(40, kInfinity)).empty());
}

TEST(RangeOf, LargeTensorsAreSplitOverTasks) {
  std::vector<float> values = randomValues(700'001, 1);
  bool nonFinite = true;
  const Range range = rangeOf(values, &nonFinite);
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  EXPECT_EQ(range.min, *low);
  EXPECT_EQ(range.max, *high);
  EXPECT_FALSE(nonFinite);
}

TEST(AddHistogram, EqualsTheDefinition) {
  for (size_t count : {0u, 1u, 7u, 1023u, 1029u, 300'011u}) {
    const std::vector<float> values = randomValues(count, 2);
    const Range range{-1.5f, 2.25f};
    std::vector<float> counts(HistogramObserver::kBins, 1.0f), expected(HistogramObserver::kBins, 1.0f);
    addHistogram(values, range, counts);
    for (float v : values) {
      if (v < range.min || v > range.max) continue;
      const auto bin = static_cast<size_t>((v - range.min) * 2048.0f / (range.max - range.min));
      ++expected[std::min<size_t>(bin, 2047)];
    }
    EXPECT_EQ(counts, expected) << count << " values";
  }
}

TEST(AddHistogram, EdgesAndNonFinite) {
  std::vector<float> counts(HistogramObserver::kBins, 0.0f);
  const std::vector<float> values{0, 2048, 2047, 1, 0.5f, kInfinity, -kInfinity, std::nanf("")};
  addHistogram(values, {0, 2048}, counts);
  EXPECT_EQ(counts[0], 2);
  EXPECT_EQ(counts[1], 1);
  EXPECT_EQ(counts[2047], 2);
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0.0f), 5);
}

TEST(ClippedQuantizationError, EqualsTheSlowSum) {
  std::vector<float> histogram(HistogramObserver::kBins);
  std::mt19937 random(3);
  for (float& h : histogram) h = static_cast<float>(random() % 1000);
  for (auto [first, last] : {std::pair{0, 2047}, {100, 1900}, {0, 255}, {1024, 1024}}) {
    const double width = 0.01, codeWidth = width * (last - first + 1) / 256;
    const double slow = slowError(histogram, first, width, codeWidth, 256);
    EXPECT_NEAR(clippedQuantizationError(histogram, first, 0.01f, static_cast<float>(codeWidth), 256), slow,
                std::abs(slow) * 2e-4);
  }
}

TEST(MinMaxObserver, KeepsTheExtremes) {
  MinMaxObserver observer;
  EXPECT_TRUE(observer.range().empty());
  observer.observe(std::vector<float>{1, 2});
  observer.observe(std::vector<float>{-3, 0});
  EXPECT_EQ(observer.range().min, -3);
  EXPECT_EQ(observer.range().max, 2);
}

TEST(MovingAverageObserver, MovesByAHundredth) {
  MovingAverageObserver observer;
  observer.observe(std::vector<float>{0, 1});
  observer.observe(std::vector<float>{-1, 3});
  EXPECT_FLOAT_EQ(observer.range().min, -0.01f);
  EXPECT_FLOAT_EQ(observer.range().max, 1.02f);
}

TEST(HistogramObserver, ConstantTensor) {
  HistogramObserver observer(256);
  observer.observe(std::vector<float>(100, 0.25f));
  observer.observe(std::vector<float>(100, 0.25f));
  EXPECT_EQ(observer.range().min, 0.25f);
  EXPECT_EQ(observer.range().max, 0.25f);
}

/// The difference of the largest floats is infinite.
TEST(HistogramObserver, TheWidestRange) {
  constexpr float kMost = std::numeric_limits<float>::max();
  HistogramObserver observer(256);
  std::vector<float> values(100, 0.0f);
  values.front() = -kMost, values.back() = kMost;
  observer.observe(values);
  observer.observe(values);
  const Range range = observer.range();
  EXPECT_LE(range.min, 0);
  EXPECT_GE(range.max, 0);
  EXPECT_FALSE(range.empty());
}

TEST(HistogramObserver, SingleValueMovesToItsBinWhenTheRangeGrows) {
  HistogramObserver observer(256);
  observer.observe(std::vector<float>(100, 1.0f));
  observer.observe(std::vector<float>{0.0f, 2048.0f});
  EXPECT_EQ(observer.histogram()[0], 1);
  EXPECT_EQ(observer.histogram()[1], 100);
  EXPECT_EQ(observer.histogram()[2047], 1);
}

TEST(HistogramObserver, WideningSplitsBins) {
  HistogramObserver observer(256);
  std::vector<float> first(2048);
  for (size_t i = 0; i < first.size(); ++i)
    first[i] = static_cast<float>(i) + (i + 1 == first.size() ? 1.0f : 0.0f);
  observer.observe(first);  // one value per bin over [0, 2048]
  observer.observe(std::vector<float>{0.0f, 4096.0f});
  // Bins twice as wide: two old counts in each bin of the lower half, the new batch at both ends.
  EXPECT_FLOAT_EQ(observer.histogram()[0], 3);
  EXPECT_FLOAT_EQ(observer.histogram()[700], 2);
  EXPECT_FLOAT_EQ(observer.histogram()[1500], 0);
  EXPECT_FLOAT_EQ(observer.histogram()[2047], 1);
  EXPECT_NEAR(std::accumulate(observer.histogram().begin(), observer.histogram().end(), 0.0), 2050, 1e-3);
}

TEST(HistogramObserver, ClipsAnOutlierThatCostsMoreThanItIsWorth) {
  // A million values in about +-5: quantizing [-5, 20] costs 1e6 * (25 / 256)^2 / 12 = 795, clipping 20 to 5
  // costs 225.
  HistogramObserver observer(256);
  std::vector<float> values = randomValues(1'000'000, 4);
  values[17] = 20;
  observer.observe(values);
  EXPECT_LT(observer.range().max, 6);
  EXPECT_GT(observer.range().max, 3);
}

TEST(HistogramObserver, KeepsAUniformRange) {
  HistogramObserver observer(256);
  std::vector<float> values(204'800);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) / 204'799.0f;
  observer.observe(values);
  EXPECT_LT(observer.range().min, 0.01f);
  EXPECT_GT(observer.range().max, 0.99f);
}

/// The PT2E flow's search over a histogram, from the whole range inwards, in double precision. It stops where
/// the error grows by more than the fraction `slack`.
std::pair<int, int> slowSearch(std::span<const float> histogram, double width, int levels, double slack) {
  std::vector<double> cumulative(histogram.size());
  std::partial_sum(histogram.begin(), histogram.end(), cumulative.begin(), std::plus<double>());
  const double total = cumulative.back();
  int start = 0, end = static_cast<int>(histogram.size()) - 1;
  double low = 0, high = 1,
         best =
             slowError(histogram, 0, width, width * static_cast<double>(histogram.size()) / levels, levels);
  while (low < high) {
    int l = start, r = end;
    while (l < end && cumulative[static_cast<size_t>(l)] < (low + 1e-5) * total) ++l;
    while (r > start && cumulative[static_cast<size_t>(r)] > (high - 1e-5) * total) --r;
    const bool left = l - start > end - r;
    (left ? low : high) += left ? 1e-5 : -1e-5;
    const std::pair<int, int> next = left ? std::pair{l, end} : std::pair{start, r};
    if (next == std::pair{start, end}) continue;
    const double e =
        slowError(histogram, next.first, width, width * (next.second - next.first + 1) / levels, levels);
    if (e > best * (1 + slack)) break;
    best = e;
    std::tie(start, end) = next;
  }
  return {start, end};
}

RC_GTEST_PROP(HistogramObserver, FindsTheRangeOfTheSlowSearch, (uint32_t seed)) {
  HistogramObserver observer(256);
  for (uint32_t batch = 0; batch < 3; ++batch) {
    observer.observe(
        randomValues(2000, seed + batch, static_cast<float>(seed % 5) - 2, 1 + static_cast<float>(batch)));
  }
  const Range seen = observer.observed(), chosen = observer.range();
  const double width = (static_cast<double>(seen.max) - seen.min) / 2048;
  const auto loss = [&](int first, int last) {
    return slowError(observer.histogram(), first, width, width * (last - first + 1) / 256, 256);
  };
  const auto bins = [&](float x) { return static_cast<int>(std::lround((x - seen.min) / width)); };
  // The errors of neighbouring candidates may differ in the last float digits only, where the search stops or
  // goes on to a lower minimum.
  const auto slowLoss = [&](double slack) {
    const auto [start, end] = slowSearch(observer.histogram(), width, 256, slack);
    return loss(start, end);
  };
  const auto [least, most] = std::minmax({slowLoss(1e-5), slowLoss(-1e-5)});
  const double found = loss(bins(chosen.min), bins(chosen.max) - 1);
  RC_ASSERT(found > least * 0.99);
  RC_ASSERT(found < most * 1.01);
}

TEST(HistogramObserver, AFewValuesAreNotClippedFor16Bits) {
  // With 65536 codes, clipping the largest value by 1 costs more than any quantization step.
  HistogramObserver observer(65536);
  observer.observe(std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(observer.range().min, 0);
  EXPECT_EQ(observer.range().max, 7);
}

Range percentileOf(std::span<const float> values, double percentage) {
  PercentileObserver observer(percentage);
  observer.observe(values);
  return observer.range();
}

/// The cube of a bin's width may overflow or underflow float32.
TEST(HistogramObserver, KeepsUniformRangesOfAnyMagnitude) {
  for (const float unit : {1e-30f, 1.0f, 1e31f}) {
    HistogramObserver observer(65536);
    std::vector<float> values(10'000);
    for (size_t i = 0; i < values.size(); ++i) values[i] = unit * (1 + static_cast<float>(i) / 10'000.0f);
    observer.observe(values);
    EXPECT_GT(observer.range().max, 1.99f * unit);
  }
}

TEST(PercentileObserver, HandComputed) {
  EXPECT_TRUE(PercentileObserver(99).range().empty());
  std::vector<float> values(100);
  std::iota(values.begin(), values.end(), 1.0f);  // 1, 2, ..., 100
  // 1 of 100 values may lie outside at either end, then 5, then none.
  EXPECT_EQ(percentileOf(values, 99).min, 2);
  EXPECT_EQ(percentileOf(values, 99).max, 99);
  EXPECT_EQ(percentileOf(values, 95).min, 6);
  EXPECT_EQ(percentileOf(values, 95).max, 95);
  EXPECT_EQ(percentileOf(values, 99.5).min, 1);
  EXPECT_EQ(percentileOf(values, 99.5).max, 100);
}

TEST(PercentileObserver, ExcludesOutliersAndNonFiniteValues) {
  std::vector<float> values(1000, 0.5f);
  values[1] = 1e6f;
  values[2] = -3e-7f;
  values[3] = kInfinity;
  values[4] = std::nanf("");
  EXPECT_EQ(percentileOf(values, 99.8).min, 0.5f);
  EXPECT_EQ(percentileOf(values, 99.8).max, 0.5f);
  EXPECT_EQ(percentileOf(values, 100).min, -3e-7f);
  EXPECT_EQ(percentileOf(values, 100).max, 1e6f);
}

TEST(PercentileObserver, NegativeValuesAreOrdered) {
  const std::vector<float> values{-8, -4, -2, -1, -0.5f, 0, 0.5f, 1, 2, 4};
  EXPECT_EQ(percentileOf(values, 90).min, -4);
  EXPECT_EQ(percentileOf(values, 90).max, 2);
}

RC_GTEST_PROP(PercentileObserver, OneHundredIsMinMax, (uint32_t seed)) {
  const std::vector<float> values = randomValues(1 + seed % 3000, seed);
  const Range expected = rangeOf(values), found = percentileOf(values, 100);
  RC_ASSERT(found.min == expected.min && found.max == expected.max);
}

RC_GTEST_PROP(PercentileObserver, CoversThePercentageWithinACell, (uint32_t seed)) {
  const std::vector<float> values = randomValues(500 + seed % 3000, seed);
  const double percentage = 51 + seed % 49;
  PercentileObserver whole(percentage), pieces(percentage);
  whole.observe(values);
  pieces.observe(std::span(values).subspan(100));
  pieces.observe(std::span(values).first(100));
  const Range range = whole.range();
  RC_ASSERT(range.min == pieces.range().min && range.max == pieces.range().max);  // the order does not matter
  std::vector<float> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  const auto outside =
      static_cast<size_t>(static_cast<double>(values.size()) * (100 - percentage) / 100 + 1e-6);
  const float low = sorted[outside], high = sorted[sorted.size() - 1 - outside];
  RC_ASSERT(range.min <= low && low - range.min <= std::abs(low) / 64);
  RC_ASSERT(range.max >= high && range.max - high <= std::abs(high) / 64);
}

TEST(MovingAverageObserver, AcceptsAConstant) {
  MovingAverageObserver observer(0.5f);
  observer.observe(std::vector<float>{0, 1});
  observer.observe(std::vector<float>{-1, 3});
  EXPECT_EQ(observer.range().min, -0.5f);
  EXPECT_EQ(observer.range().max, 2.0f);
}

TEST(ParseObserver, NamesAndNumbers) {
  EXPECT_EQ(*parseObserver("minmax"), ObserverSettings(ObserverKind::MinMax));
  EXPECT_EQ(*parseObserver("histogram"), ObserverSettings());
  EXPECT_EQ(*parseObserver("moving-average"), ObserverSettings(ObserverKind::MovingAverage, 0.01));
  EXPECT_EQ(*parseObserver("moving-average:0.5"), ObserverSettings(ObserverKind::MovingAverage, 0.5));
  EXPECT_EQ(*parseObserver("percentile"), ObserverSettings(ObserverKind::Percentile, 99.99));
  EXPECT_EQ(*parseObserver("percentile:99"), ObserverSettings(ObserverKind::Percentile, 99));
  for (const char* bad :
       {"", "mean", "percentile:", "percentile:50", "percentile:100.5", "percentile:nan", "percentile:99x",
        "moving-average:0", "moving-average:2", "minmax:3", "histogram:"}) {
    EXPECT_FALSE(parseObserver(bad).ok()) << bad;
  }
  for (const char* text : {"minmax", "moving-average:0.25", "histogram", "percentile:99.9"}) {
    EXPECT_EQ(observerText(*parseObserver(text)), text);
  }
}

}  // namespace
}  // namespace carina::quantize
