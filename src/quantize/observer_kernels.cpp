// SPDX-License-Identifier: Apache-2.0
// Vector loops over elements (range, histogram) and bins (clipping error); compiled once per instruction set
// by Highway.
#include "quantize/observer_kernels.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <mutex>
#include <vector>

#include "base/parallel.hpp"
#include "quantize/observer.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantize/observer_kernels.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace carina::quantize::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Infinite and NaN elements are replaced by the neutral element of each side.
RangeResult rangeKernel(const float* values, size_t count) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  auto low = infinity, high = hn::Neg(infinity);
  auto bad = hn::Zero(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto v = hn::LoadU(d, values + i);
    const auto finite = hn::Lt(hn::Abs(v), infinity);
    low = hn::Min(low, hn::IfThenElse(finite, v, infinity));
    high = hn::Max(high, hn::IfThenElse(finite, v, hn::Neg(infinity)));
    bad = hn::IfThenElse(finite, bad, infinity);
  }
  RangeResult result{hn::GetLane(hn::MinOfLanes(d, low)), hn::GetLane(hn::MaxOfLanes(d, high)),
                     hn::GetLane(hn::MaxOfLanes(d, bad)) > 0};
  for (; i < count; ++i) {
    if (std::isfinite(values[i])) {
      result.min = std::min(result.min, values[i]);
      result.max = std::max(result.max, values[i]);
    } else {
      result.nonFinite = true;
    }
  }
  return result;
}

/// Bin indices are computed with vectors and counted in four tables in turn: neighbouring equal values (the
/// zeros after a ReLU) would otherwise wait for each other's increments. `tables`: memory for them.
void histogramKernel(const float* values, size_t count, float low, float high, uint32_t* tables,
                     uint32_t* counts) {
  constexpr size_t kBins = HistogramObserver::kBins;
  constexpr size_t kBlock = 1024;
  std::fill_n(tables, kTables * kTableEntries, 0);
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const size_t lanes = hn::Lanes(d);
  // A power of two that keeps the products below finite; 1 for all but the widest ranges.
  const float unit = static_cast<double>(high) - low > 0x1p100 ? 0x1p-16f : 1.0f;
  const float from = low * unit, width = high * unit - from;
  const auto lowV = hn::Set(d, low), highV = hn::Set(d, high), unitV = hn::Set(d, unit),
             fromV = hn::Set(d, from);
  const auto bins = hn::Set(d, static_cast<float>(kBins)), range = hn::Set(d, width);
  const auto last = hn::Set(di, static_cast<int32_t>(kBins) - 1),
             skip = hn::Set(di, static_cast<int32_t>(kBins));
  alignas(64) std::array<int32_t, kBlock> index;
  size_t done = 0;
  while (done < count) {
    const size_t block = std::min(kBlock, count - done);
    size_t i = 0;
    for (; i + lanes <= block; i += lanes) {
      const auto v = hn::LoadU(d, values + done + i);
      const auto inside = hn::And(hn::Ge(v, lowV), hn::Le(v, highV));
      const auto position = hn::Div(hn::Mul(hn::Sub(hn::Mul(v, unitV), fromV), bins), range);
      const auto bin = hn::Min(hn::ConvertTo(di, hn::IfThenElseZero(inside, position)), last);
      hn::Store(hn::IfThenElse(hn::RebindMask(di, inside), bin, skip), di, index.data() + i);
    }
    for (; i < block; ++i) {
      const float v = values[done + i];
      const bool inside = v >= low && v <= high;
      const float position = inside ? (v * unit - from) * static_cast<float>(kBins) / width : 0.0f;
      index[i] = inside ? std::min(static_cast<int32_t>(position), static_cast<int32_t>(kBins) - 1)
                        : static_cast<int32_t>(kBins);
    }
    for (i = 0; i + kTables <= block; i += kTables) {
      for (size_t t = 0; t < kTables; ++t) ++tables[t * kTableEntries + static_cast<size_t>(index[i + t])];
    }
    for (; i < block; ++i) ++tables[static_cast<size_t>(index[i])];
    done += block;
  }
  for (size_t bin = 0; bin < kBins; ++bin) {
    uint32_t sum = 0;
    for (size_t t = 0; t < kTables; ++t) sum += tables[t * kTableEntries + bin];
    counts[bin] += sum;
  }
}

double errorKernel(const float* histogram, size_t count, int first, float width, float codeWidth,
                   int levels) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto w = hn::Set(d, width), code = hn::Set(d, codeWidth), half = hn::Set(d, 0.5f),
             one = hn::Set(d, 1.0f);
  const auto top = hn::Set(d, static_cast<float>(levels - 1));
  const auto halfCode = hn::Set(d, codeWidth / 2);
  const auto cube = [](auto x) { return hn::Mul(hn::Mul(x, x), x); };
  const auto halfCodeCubed = cube(halfCode);
  const auto inverseThree = hn::Set(d, 1.0f / 3.0f);
  const auto codeOf = [&](auto x) { return hn::Min(hn::Max(hn::Floor(hn::Div(x, code)), hn::Zero(d)), top); };
  auto index = hn::Sub(hn::Iota(d, 0), hn::Set(d, static_cast<float>(first)));
  const auto step = hn::Set(d, static_cast<float>(lanes));
  auto sum = hn::Zero(d);
  for (size_t i = 0; i + lanes <= count; i += lanes) {
    const auto density = hn::Div(hn::LoadU(d, histogram + i), w);
    const auto begin = hn::Mul(index, w);
    const auto end = hn::Add(begin, w);
    const auto beginCode = codeOf(begin), endCode = codeOf(end);
    const auto fromCentre = hn::Sub(begin, hn::Mul(hn::Add(beginCode, half), code));
    const auto toCentre = hn::Sub(end, hn::Mul(hn::Add(endCode, half), code));
    const auto whole =
        hn::Sub(hn::Sub(endCode, beginCode), one);  // codes that lie inside the bin; -1 when it is one code
    const auto parts =
        hn::Add(hn::Sub(halfCodeCubed, cube(fromCentre)), hn::Add(cube(toCentre), halfCodeCubed));
    const auto inner = hn::Mul(whole, hn::Add(halfCodeCubed, halfCodeCubed));
    sum = hn::Add(sum, hn::Mul(density, hn::Mul(hn::Add(parts, inner), inverseThree)));
    index = hn::Add(index, step);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

}  // namespace carina::quantize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace carina::quantize {
namespace {

HWY_EXPORT(rangeKernel);
HWY_EXPORT(histogramKernel);
HWY_EXPORT(errorKernel);

constexpr size_t kGrain = 1u << 16;  // elements per task

}  // namespace

Range rangeOf(std::span<const float> values, bool* nonFinite) {
  std::vector<RangeResult> parts((values.size() + kGrain - 1) / kGrain);
  parallelFor(parts.size(), [&](size_t i) {
    const auto part = values.subspan(i * kGrain, std::min(kGrain, values.size() - i * kGrain));
    parts[i] = HWY_DYNAMIC_DISPATCH(rangeKernel)(part.data(), part.size());
  });
  Range range;
  bool bad = false;
  for (const RangeResult& part : parts) {  // in order: of two zeros with different signs the first one counts
    range = {std::min(range.min, part.min), std::max(range.max, part.max)};
    bad |= part.nonFinite;
  }
  if (nonFinite) *nonFinite = bad;
  return range;
}

void addHistogram(std::span<const float> values, const Range& range, std::span<float> counts) {
  std::array<uint32_t, HistogramObserver::kBins> sum{};
  std::mutex joining;
  parallelRanges(values.size(), kGrain, [&](size_t begin, size_t end) {
    // One allocation per thread that counts: static storage would cost every thread of the program.
    thread_local std::vector<uint32_t> tables;
    tables.resize(kTables * kTableEntries);
    std::array<uint32_t, HistogramObserver::kBins> own{};
    HWY_DYNAMIC_DISPATCH(histogramKernel)
    (values.data() + begin, end - begin, range.min, range.max, tables.data(), own.data());
    const std::lock_guard lock(joining);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += own[i];
  });
  for (size_t i = 0; i < sum.size(); ++i) counts[i] += static_cast<float>(sum[i]);
}

double clippedQuantizationError(std::span<const float> histogram, int first, float width, float codeWidth,
                                int levels) {
  return HWY_DYNAMIC_DISPATCH(errorKernel)(histogram.data(), histogram.size(), first, width, codeWidth,
                                           levels);
}

}  // namespace carina::quantize
#endif
