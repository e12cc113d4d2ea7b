// SPDX-License-Identifier: Apache-2.0
// The vectorised inner loops declared in kernels.hpp.
#include "npu/model/kernels.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#define HWY_WANT_AVX3_DL 1
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "npu/model/kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace carina::npu::model {
namespace HWY_NAMESPACE {
#if HWY_TARGET == HWY_SCALAR

// Machines without vectors: the same functions element by element.
int64_t Lanes() {
  return 1;
}

DotWeights PackDotWeights(const int16_t* dense, int64_t channels, int64_t runs, int64_t pairs) {
  DotWeights packed;
  packed.channels = packed.paddedChannels = channels;
  packed.runs = runs;
  packed.pairs = pairs;
  const size_t bytes = static_cast<size_t>(channels * runs * pairs * 2) * sizeof(int16_t);
  packed.data.reserve(bytes);
  std::memcpy(packed.data.as<int16_t>(), dense, bytes);
  return packed;
}

template <typename Sum>
void dotSums(const DotWindow& window, const DotWeights& weights, const int16_t* const* start,
             int64_t positions, Sum* acc) {
  for (int64_t i = 0; i < positions; ++i) {
    const int16_t* w = weights.data.as<int16_t>();
    for (int64_t c = 0; c < weights.channels; ++c) {
      Sum sum = 0;
      for (const int64_t offset : window.offset) {
        for (int64_t k = 0; k < 2 * window.pairs; ++k) sum += static_cast<Sum>(start[i][offset + k]) * *w++;
      }
      acc[i * weights.paddedChannels + c] = sum;
    }
  }
}

void DotProducts(const DotWindow& window, const DotWeights& weights, const int16_t* const* start,
                 int64_t positions, int32_t* acc) {
  dotSums(window, weights, start, positions, acc);
}

void DotProductsWide(const DotWindow& window, const DotWeights& weights, const int16_t* const* start,
                     int64_t positions, int64_t* acc) {
  dotSums(window, weights, start, positions, acc);
}

void DepthwiseSums(const int16_t* const* start, int64_t positions, const int64_t* tapOffset,
                   const int16_t* weights, int64_t taps, int64_t channels, int32_t* acc) {
  for (int64_t i = 0; i < positions; ++i) {
    for (int64_t c = 0; c < channels; ++c) {
      int32_t sum = 0;
      for (int64_t t = 0; t < taps; ++t) sum += start[i][tapOffset[t] + c] * weights[t * channels + c];
      acc[i * channels + c] = sum;
    }
  }
}

template <typename Out>
void scaleRowsTo(const ChannelScales& scales, const int32_t* acc, int64_t rows, int64_t channels,
                 int64_t zeroPoint, int64_t minimum, int64_t maximum, Out* out) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t c = 0; c < channels; ++c) {
      const auto at = static_cast<size_t>(c);
      const int64_t v = acc[row * scales.paddedChannels + c] + static_cast<int64_t>(scales.bias[at]);
      const int64_t product =
          v * scales.multiplier[at] + (v >= 0 ? scales.positive[at] : scales.negative[at]);
      out[row * channels + c] =
          static_cast<Out>(std::clamp((product >> scales.shift[at]) + zeroPoint, minimum, maximum));
    }
  }
}

#else  // vectors

namespace hn = hwy::HWY_NAMESPACE;

using D32 = hn::ScalableTag<int32_t>;
using D16 = hn::ScalableTag<int16_t>;
using D64 = hn::ScalableTag<int64_t>;
using V32 = hn::Vec<D32>;
constexpr int64_t kMaxLanes32 = HWY_MAX_BYTES / 4;
constexpr int64_t kMaxLanes64 = HWY_MAX_BYTES / 8;

// Positions x vectors of output channels held in registers: 24 accumulators if there are 32 registers.
#if HWY_TARGET <= HWY_AVX3
constexpr int kPositions = 8;
constexpr int kVectors = 3;
#else
constexpr int kPositions = 4;
constexpr int kVectors = 2;
#endif

/// acc[i] + a[2i]*b[2i] + a[2i+1]*b[2i+1]
HWY_INLINE V32 dotPairs(hn::Vec<D16> a, hn::Vec<D16> b, V32 acc) {
  const D32 d32;
#if HWY_ARCH_X86
  V32 unused = hn::Zero(d32);
  return hn::ReorderWidenMulAccumulate(d32, a, b, acc, unused);
#else
  const V32 a32 = hn::BitCast(d32, a);
  const V32 b32 = hn::BitCast(d32, b);
  const V32 even =
      hn::Mul(hn::ShiftRight<16>(hn::ShiftLeft<16>(a32)), hn::ShiftRight<16>(hn::ShiftLeft<16>(b32)));
  const V32 odd = hn::Mul(hn::ShiftRight<16>(a32), hn::ShiftRight<16>(b32));
  return hn::Add(acc, hn::Add(even, odd));
#endif
}

/// One register tile: M positions, N vectors of channels, runs [firstRun, lastRun), pairs [firstPair,
/// lastPair).
template <int M, int N>
HWY_INLINE void tile(const int64_t* offset, int64_t firstRun, int64_t lastRun, int64_t firstPair,
                     int64_t lastPair, int64_t pairsPerRun, const int16_t* weights,
                     const int16_t* const* start, int32_t* out, int64_t stride) {
  const D32 d32;
  const D16 d16;
  const auto lanes16 = static_cast<int64_t>(hn::Lanes(d16));
  V32 acc[M][N];
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m) {
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) acc[m][n] = hn::Zero(d32);
  }
  for (int64_t run = firstRun; run < lastRun; ++run) {
    const int16_t* x[M];
    for (int m = 0; m < M; ++m) x[m] = start[m] + offset[run];
    const int16_t* w = weights + (run * pairsPerRun + firstPair) * N * lanes16;
    for (int64_t pair = firstPair; pair < lastPair; ++pair, w += N * lanes16) {
      hn::Vec<D16> wv[N];
#pragma GCC unroll 8
      for (int n = 0; n < N; ++n) wv[n] = hn::Load(d16, w + n * lanes16);
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m) {
        int32_t both;
        std::memcpy(&both, x[m] + 2 * pair, sizeof both);
        const hn::Vec<D16> xv = hn::BitCast(d16, hn::Set(d32, both));
#pragma GCC unroll 8
        for (int n = 0; n < N; ++n) acc[m][n] = dotPairs(wv[n], xv, acc[m][n]);
      }
    }
  }
  const auto lanes32 = static_cast<int64_t>(hn::Lanes(d32));
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m) {
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) hn::StoreU(acc[m][n], d32, out + m * stride + n * lanes32);
  }
}

using TileFunction = void (*)(const int64_t*, int64_t, int64_t, int64_t, int64_t, int64_t, const int16_t*,
                              const int16_t* const*, int32_t*, int64_t);

template <int M, int N>
void tileFunction(const int64_t* offset, int64_t firstRun, int64_t lastRun, int64_t firstPair,
                  int64_t lastPair, int64_t pairsPerRun, const int16_t* weights, const int16_t* const* start,
                  int32_t* out, int64_t stride) {
  tile<M, N>(offset, firstRun, lastRun, firstPair, lastPair, pairsPerRun, weights, start, out, stride);
}

template <int N>
TileFunction tileOf(int64_t positions) {
  switch (positions) {
    case 1:
      return &tileFunction<1, N>;
    case 2:
      return &tileFunction<2, N>;
    case 3:
      return &tileFunction<3, N>;
#if HWY_TARGET <= HWY_AVX3
    case 4:
      return &tileFunction<4, N>;
    case 5:
      return &tileFunction<5, N>;
    case 6:
      return &tileFunction<6, N>;
    case 7:
      return &tileFunction<7, N>;
#endif
    default:
      return &tileFunction<kPositions, N>;
  }
}

TileFunction tileOf(int64_t positions, int64_t vectors) {
  switch (vectors) {
    case 1:
      return tileOf<1>(positions);
    case 2:
      return tileOf<2>(positions);
    default:
      return tileOf<kVectors>(positions);
  }
}

int64_t Lanes() {
  return static_cast<int64_t>(hn::Lanes(D32()));
}

DotWeights PackDotWeights(const int16_t* dense, int64_t channels, int64_t runs, int64_t pairs) {
  const int64_t lanes = Lanes();
  DotWeights packed;
  packed.channels = channels;
  packed.paddedChannels = (channels + lanes - 1) / lanes * lanes;
  packed.runs = runs;
  packed.pairs = pairs;
  packed.data.reserve(static_cast<size_t>(packed.paddedChannels * runs * pairs * 2) * sizeof(int16_t));
  int16_t* to = packed.data.as<int16_t>();
  for (int64_t first = 0; first < packed.paddedChannels; first += kVectors * lanes) {
    const int64_t width = std::min(packed.paddedChannels - first, kVectors * lanes);
    for (int64_t run = 0; run < runs; ++run) {
      for (int64_t pair = 0; pair < pairs; ++pair) {
        for (int64_t c = first; c < first + width; ++c, to += 2) {
          const int16_t* from = dense + (c * runs + run) * pairs * 2 + pair * 2;
          to[0] = c < channels ? from[0] : int16_t{0};
          to[1] = c < channels ? from[1] : int16_t{0};
        }
      }
    }
  }
  return packed;
}

void DotProducts(const DotWindow& window, const DotWeights& weights, const int16_t* const* start,
                 int64_t positions, int32_t* acc) {
  const int64_t lanes = Lanes();
  const int64_t runs = window.runs(), pairs = window.pairs;
  for (int64_t first = 0; first < weights.paddedChannels; first += kVectors * lanes) {
    const int64_t vectors =
        std::min((weights.paddedChannels - first) / lanes, static_cast<int64_t>(kVectors));
    const int16_t* w = weights.data.as<int16_t>() + first * runs * pairs * 2;
    const TileFunction full = tileOf(kPositions, vectors);
    int64_t i = 0;
    for (; i + kPositions <= positions; i += kPositions) {
      full(window.offset.data(), 0, runs, 0, pairs, pairs, w, start + i,
           acc + i * weights.paddedChannels + first, weights.paddedChannels);
    }
    if (i < positions) {
      tileOf(positions - i, vectors)(window.offset.data(), 0, runs, 0, pairs, pairs, w, start + i,
                                     acc + i * weights.paddedChannels + first, weights.paddedChannels);
    }
  }
}

void DotProductsWide(const DotWindow& window, const DotWeights& weights, const int16_t* const* start,
                     int64_t positions, int64_t* acc) {
  // 128 pairs of |x| <= 2^15, |w| <= 255 stay below 2^31.
  constexpr int64_t kPairsPerSum = 128;
  const int64_t lanes = Lanes();
  const int64_t runs = window.runs(), pairs = window.pairs;
  HWY_ALIGN int32_t part[kPositions * kVectors * kMaxLanes32];
  const int64_t runsPerSum = pairs >= kPairsPerSum ? 1 : kPairsPerSum / std::max<int64_t>(pairs, 1);
  for (int64_t first = 0; first < weights.paddedChannels; first += kVectors * lanes) {
    const int64_t vectors =
        std::min((weights.paddedChannels - first) / lanes, static_cast<int64_t>(kVectors));
    const int64_t width = vectors * lanes;
    const int16_t* w = weights.data.as<int16_t>() + first * runs * pairs * 2;
    for (int64_t i = 0; i < positions; i += kPositions) {
      const int64_t count = std::min(positions - i, static_cast<int64_t>(kPositions));
      const TileFunction function = tileOf(count, vectors);
      for (int64_t m = 0; m < count; ++m) {
        std::fill_n(acc + (i + m) * weights.paddedChannels + first, width, int64_t{0});
      }
      for (int64_t run = 0; run < runs; run += runsPerSum) {
        for (int64_t pair = 0; pair < pairs; pair += kPairsPerSum) {
          function(window.offset.data(), run, std::min(run + runsPerSum, runs), pair,
                   std::min(pair + kPairsPerSum, pairs), pairs, w, start + i, part, width);
          for (int64_t m = 0; m < count; ++m) {
            int64_t* to = acc + (i + m) * weights.paddedChannels + first;
            for (int64_t c = 0; c < width; ++c) to[c] += part[m * width + c];
          }
        }
      }
    }
  }
}

void DepthwiseSums(const int16_t* const* start, int64_t positions, const int64_t* tapOffset,
                   const int16_t* weights, int64_t taps, int64_t channels, int32_t* acc) {
  const D32 d32;
  const hn::Rebind<int16_t, D32> half;
  const int64_t lanes = Lanes();
  constexpr int64_t kTile = 4;
  for (int64_t i = 0; i < positions; i += kTile) {
    const int64_t count = std::min(positions - i, kTile);
    int64_t c = 0;
    if (count == kTile) {
      for (; c + lanes <= channels; c += lanes) {
        V32 sum0 = hn::Zero(d32), sum1 = sum0, sum2 = sum0, sum3 = sum0;
        for (int64_t t = 0; t < taps; ++t) {
          const int64_t at = tapOffset[t] + c;
          const V32 w = hn::PromoteTo(d32, hn::LoadU(half, weights + t * channels + c));
          sum0 = hn::Add(sum0, hn::Mul(w, hn::PromoteTo(d32, hn::LoadU(half, start[i] + at))));
          sum1 = hn::Add(sum1, hn::Mul(w, hn::PromoteTo(d32, hn::LoadU(half, start[i + 1] + at))));
          sum2 = hn::Add(sum2, hn::Mul(w, hn::PromoteTo(d32, hn::LoadU(half, start[i + 2] + at))));
          sum3 = hn::Add(sum3, hn::Mul(w, hn::PromoteTo(d32, hn::LoadU(half, start[i + 3] + at))));
        }
        hn::StoreU(sum0, d32, acc + i * channels + c);
        hn::StoreU(sum1, d32, acc + (i + 1) * channels + c);
        hn::StoreU(sum2, d32, acc + (i + 2) * channels + c);
        hn::StoreU(sum3, d32, acc + (i + 3) * channels + c);
      }
    }
    for (int64_t m = i; m < i + count; ++m) {
      for (int64_t rest = c; rest < channels; ++rest) {
        int32_t sum = 0;
        for (int64_t t = 0; t < taps; ++t)
          sum += start[m][tapOffset[t] + rest] * weights[t * channels + rest];
        acc[m * channels + rest] = sum;
      }
    }
  }
}

/// 8-, 16- or 32-bit store of the first `count` lanes.
template <typename Out>
HWY_INLINE void storeNarrow(V32 v, int64_t count, Out* out) {
  const D32 d32;
  if constexpr (sizeof(Out) == 4) {
    if (count == static_cast<int64_t>(hn::Lanes(d32))) {
      hn::StoreU(v, d32, reinterpret_cast<int32_t*>(out));
      return;
    }
  } else {
    const hn::Rebind<Out, D32> narrow;
    if (count == static_cast<int64_t>(hn::Lanes(d32))) {
      hn::StoreU(hn::DemoteTo(narrow, v), narrow, out);
      return;
    }
  }
  HWY_ALIGN int32_t lane[kMaxLanes32];
  hn::Store(v, d32, lane);
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<Out>(lane[i]);
}

template <typename Out>
void scaleRowsTo(const ChannelScales& scales, const int32_t* acc, int64_t rows, int64_t channels,
                 int64_t zeroPoint, int64_t minimum, int64_t maximum, Out* out) {
  const D32 d32;
  const D64 d64;
  using V64 = hn::Vec<D64>;
  const int64_t lanes = Lanes();
  const V64 zp = hn::Set(d64, zeroPoint), lo = hn::Set(d64, minimum), hi = hn::Set(d64, maximum);
  const V64 zero = hn::Zero(d64);
  HWY_ALIGN int64_t even64[3][kMaxLanes64], odd64[3][kMaxLanes64];
  for (int64_t c = 0; c < channels; c += lanes) {
    const int64_t count = std::min(channels - c, lanes);
    for (int64_t k = 0; k < lanes / 2; ++k) {
      const auto e = static_cast<size_t>(c + 2 * k);
      even64[0][k] = scales.shift[e];
      odd64[0][k] = scales.shift[e + 1];
      even64[1][k] = scales.positive[e];
      odd64[1][k] = scales.positive[e + 1];
      even64[2][k] = scales.negative[e];
      odd64[2][k] = scales.negative[e + 1];
    }
    const V64 shiftE = hn::Load(d64, even64[0]), shiftO = hn::Load(d64, odd64[0]);
    const V64 posE = hn::Load(d64, even64[1]), posO = hn::Load(d64, odd64[1]);
    const V64 negE = hn::Load(d64, even64[2]), negO = hn::Load(d64, odd64[2]);
    const V32 bias = hn::LoadU(d32, scales.bias.data() + c);
    const V32 mult = hn::LoadU(d32, scales.multiplier.data() + c);
    const V32 multOdd = hn::BitCast(d32, hn::ShiftRight<32>(hn::BitCast(d64, mult)));
    for (int64_t row = 0; row < rows; ++row) {
      const V32 v = hn::Add(hn::LoadU(d32, acc + row * scales.paddedChannels + c), bias);
      V64 e = hn::MulEven(v, mult);
      V64 o = hn::MulEven(hn::BitCast(d32, hn::ShiftRight<32>(hn::BitCast(d64, v))), multOdd);
      const V64 vE = hn::ShiftRight<32>(hn::ShiftLeft<32>(hn::BitCast(d64, v)));
      const V64 vO = hn::ShiftRight<32>(hn::BitCast(d64, v));
      e = hn::Add(e, hn::IfThenElse(hn::Lt(vE, zero), negE, posE));
      o = hn::Add(o, hn::IfThenElse(hn::Lt(vO, zero), negO, posO));
      e = hn::Min(hn::Max(hn::Add(hn::Shr(e, shiftE), zp), lo), hi);
      o = hn::Min(hn::Max(hn::Add(hn::Shr(o, shiftO), zp), lo), hi);
      const V32 result = hn::OddEven(hn::BitCast(d32, hn::ShiftLeft<32>(o)), hn::BitCast(d32, e));
      storeNarrow(result, count, out + row * channels + c);
    }
  }
}

#endif  // HWY_SCALAR

void ScaleRows(const ChannelScales& scales, const int32_t* acc, int64_t rows, int64_t channels,
               int64_t zeroPoint, int64_t minimum, int64_t maximum, int outBytes, void* out) {
  if (outBytes == 1 && minimum < 0) {
    scaleRowsTo(scales, acc, rows, channels, zeroPoint, minimum, maximum, static_cast<int8_t*>(out));
  } else if (outBytes == 1) {
    scaleRowsTo(scales, acc, rows, channels, zeroPoint, minimum, maximum, static_cast<uint8_t*>(out));
  } else if (outBytes == 2 && maximum <= 32767) {
    scaleRowsTo(scales, acc, rows, channels, zeroPoint, minimum, maximum, static_cast<int16_t*>(out));
  } else if (outBytes == 2) {
    scaleRowsTo(scales, acc, rows, channels, zeroPoint, minimum, maximum, static_cast<uint16_t*>(out));
  } else {
    scaleRowsTo(scales, acc, rows, channels, zeroPoint, minimum, maximum, static_cast<int32_t*>(out));
  }
}

const char* Name() {
  return hwy::TargetName(HWY_TARGET);
}

}  // namespace HWY_NAMESPACE
}  // namespace carina::npu::model
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace carina::npu::model {

HWY_EXPORT(PackDotWeights);
HWY_EXPORT(DotProducts);
HWY_EXPORT(DotProductsWide);
HWY_EXPORT(DepthwiseSums);
HWY_EXPORT(ScaleRows);
HWY_EXPORT(Lanes);
HWY_EXPORT(Name);

AlignedBytes::AlignedBytes(size_t bytes) {
  reserve(bytes);
}

AlignedBytes::~AlignedBytes() {
  ::operator delete(data_, kAlignment);
}

AlignedBytes& AlignedBytes::operator=(AlignedBytes&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

void AlignedBytes::reserve(size_t bytes) {
  if (bytes <= size_ && data_ != nullptr) return;
  ::operator delete(std::exchange(data_, nullptr), kAlignment);
  size_ = 0;
  data_ = static_cast<unsigned char*>(::operator new(bytes + kOverRead, kAlignment));
  size_ = bytes;
}

DotWeights packDotWeights(const int16_t* dense, int64_t channels, int64_t runs, int64_t pairs) {
  return HWY_DYNAMIC_DISPATCH(PackDotWeights)(dense, channels, runs, pairs);
}

void dotProducts(const DotWindow& window, const DotWeights& weights, const int16_t* const* start,
                 int64_t positions, int32_t* acc) {
  HWY_DYNAMIC_DISPATCH(DotProducts)(window, weights, start, positions, acc);
}

void dotProductsWide(const DotWindow& window, const DotWeights& weights, const int16_t* const* start,
                     int64_t positions, int64_t* acc) {
  HWY_DYNAMIC_DISPATCH(DotProductsWide)(window, weights, start, positions, acc);
}

void depthwiseSums(const int16_t* const* start, int64_t positions, const int64_t* tapOffset,
                   const int16_t* weights, int64_t taps, int64_t channels, int32_t* acc) {
  HWY_DYNAMIC_DISPATCH(DepthwiseSums)(start, positions, tapOffset, weights, taps, channels, acc);
}

void scaleRows(const ChannelScales& scales, const int32_t* acc, int64_t rows, int64_t channels,
               int64_t zeroPoint, int64_t minimum, int64_t maximum, int outBytes, void* out) {
  HWY_DYNAMIC_DISPATCH(ScaleRows)(scales, acc, rows, channels, zeroPoint, minimum, maximum, outBytes, out);
}

int64_t vectorLanes() {
  return HWY_DYNAMIC_DISPATCH(Lanes)();
}
const char* instructionSet() {
  return HWY_DYNAMIC_DISPATCH(Name)();
}

}  // namespace carina::npu::model
#endif  // HWY_ONCE
