// SPDX-License-Identifier: Apache-2.0
// POOL: maximum, minimum, average, sums, argmax and the U85 pass-through of IFM2 (ethosu-numerics 4).
#include <algorithm>
#include <cmath>
#include <limits>

#include "npu/model/executor.hpp"

namespace carina::npu::model {
namespace {

/// The scale by which the hardware divides a sum by n: slightly above 1/n, so that NATURAL rounding rounds
/// ties away from zero. bits: 31 on U55/U65, 30 on U85.
Scale divisionBy(int64_t n, int bits) {
  int k = 0;
  while ((int64_t{1} << k) < n) ++k;  // 2^(k-1) <= n - 1 < 2^k
  const Int128 numerator = (Int128{1} << (bits + k)) + (Int128{1} << k);
  Scale scale;
  scale.multiplier = static_cast<uint32_t>(numerator / n);
  scale.shift = static_cast<uint8_t>(bits + k);
  scale.rounding = Rounding::Natural;
  return scale;
}

struct Range {
  int64_t first, last;  // taps [first, last) that are inside the input
};
Range insideTaps(int64_t start, int64_t taps, int64_t dilation, int64_t size) {
  const int64_t first = start >= 0 ? 0 : (-start + dilation - 1) / dilation;
  const int64_t last = start >= size ? 0 : std::min(taps, (size - 1 - start) / dilation + 1);
  return {std::min(first, taps), std::max<int64_t>(last, std::min(first, taps))};
}

}  // namespace

template <typename T>
void Executor::poolPlane(const KernelOperation& op, const Geometry& geometry, const Plane<T>& plane) {
  const Kernel& kernel = op.kernel;
  const PoolMode mode = op.pool;
  const bool reduceSum = mode == PoolMode::ReduceSum;
  const int64_t channels = geometry.ofmDepth;
  const int64_t depth = plane.depth;
  // Assumption u55-average-division: any padding, or no global scale, makes the hardware divide by the number
  // of valid elements.
  const Architecture& npu = target_.architecture();
  const bool divide =
      mode == PoolMode::Average && (npu.averagesDivide || op.padding.any() || !op.globalScale);
  const int bits = npu.averageBits;
  const int64_t grain = std::clamp<int64_t>(32768 / std::max<int64_t>(channels, 1), 1, 4096);
  forRange(geometry.positions(), grain, [&](int64_t begin, int64_t end) {
    thread_local std::vector<int64_t> acc;
    thread_local std::vector<int32_t> narrow;
    thread_local std::vector<std::byte> out;
    acc.resize(static_cast<size_t>(std::min(grain, end - begin) * channels));
    narrow.resize(static_cast<size_t>(channels));
    for (int64_t first = begin; first < end; first += grain) {
      const int64_t count = std::min(grain, end - first);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t y0 = (first + i) / geometry.ofmWidth * kernel.strideY - op.padding.top;
        const int64_t x0 = (first + i) % geometry.ofmWidth * kernel.strideX - op.padding.left;
        const Range rows = insideTaps(y0, kernel.height, kernel.dilationY, geometry.ifmHeight);
        const Range columns = insideTaps(x0, kernel.width, kernel.dilationX, geometry.ifmWidth);
        int64_t* const a = acc.data() + i * channels;
        const int64_t valid = (rows.last - rows.first) * (columns.last - columns.first);
        const auto tap = [&](int64_t ky, int64_t kx) {
          return plane.data +
                 ((y0 + ky * kernel.dilationY) * plane.width + x0 + kx * kernel.dilationX) * depth;
        };
        if (reduceSum) {
          uint64_t sum = 0;
          for (int64_t ky = rows.first; ky < rows.last; ++ky) {
            for (int64_t kx = columns.first; kx < columns.last; ++kx) {
              const T* x = tap(ky, kx);
              for (int64_t c = 0; c < depth; ++c) sum += static_cast<uint64_t>(static_cast<int64_t>(x[c]));
            }
          }
          std::fill_n(a, channels, static_cast<int64_t>(sum));
          continue;
        }
        if (valid <= 0) {
          std::fill_n(a, channels, int64_t{0});
          continue;
        }
        if (mode == PoolMode::ArgMaxX || mode == PoolMode::ArgMaxY) {
          // Assumption argmax-first: the lowest index wins; the accumulator is index << 16 | value as 16
          // bits.
          for (int64_t c = 0; c < channels; ++c) {
            int64_t best = std::numeric_limits<int64_t>::min(), index = 0;
            for (int64_t ky = rows.first; ky < rows.last; ++ky) {
              for (int64_t kx = columns.first; kx < columns.last; ++kx) {
                const int64_t v = tap(ky, kx)[c];
                if (v > best) {
                  best = v;
                  index = mode == PoolMode::ArgMaxX ? kx : ky;
                }
              }
            }
            a[c] = index * 65536 + (best & 0xffff);
          }
          continue;
        }
        // Plain loops over channels, which the compiler vectorises.
        const auto reduce = [&](auto* into, auto combine) {
          const T* x0th = tap(rows.first, columns.first);
          for (int64_t c = 0; c < channels; ++c) into[c] = x0th[c];
          for (int64_t ky = rows.first; ky < rows.last; ++ky) {
            for (int64_t kx = columns.first; kx < columns.last; ++kx) {
              if (ky == rows.first && kx == columns.first) continue;
              const T* x = tap(ky, kx);
              for (int64_t c = 0; c < channels; ++c) into[c] = combine(into[c], x[c]);
            }
          }
        };
        const bool sums = mode == PoolMode::Sum || mode == PoolMode::Average;
        if (sizeof(T) == 2 && (!sums || valid <= 65535)) {
          if (sums) {
            reduce(narrow.data(), [](int32_t s, T v) { return s + v; });
          } else if (mode == PoolMode::Max) {
            reduce(narrow.data(), [](int32_t s, T v) { return s > v ? s : static_cast<int32_t>(v); });
          } else {
            reduce(narrow.data(), [](int32_t s, T v) { return s < v ? s : static_cast<int32_t>(v); });
          }
          for (int64_t c = 0; c < channels; ++c) a[c] = narrow[static_cast<size_t>(c)];
        } else if (sums) {
          reduce(a, [](int64_t s, T v) {
            return static_cast<int64_t>(static_cast<uint64_t>(s) +
                                        static_cast<uint64_t>(static_cast<int64_t>(v)));
          });
        } else if (mode == PoolMode::Max) {
          reduce(a, [](int64_t s, T v) { return s > v ? s : static_cast<int64_t>(v); });
        } else {
          reduce(a, [](int64_t s, T v) { return s < v ? s : static_cast<int64_t>(v); });
        }
        if (divide) {
          const Scale scale = divisionBy(valid, bits);
          for (int64_t c = 0; c < channels; ++c) a[c] = scaleExact(a[c], scale);
        }
      }
      emit(op, first, count, acc.data(), out);
    }
  });
}

Outcome Executor::pooling(const KernelOperation& op, AddressMap& memory) {
  Geometry geometry;
  if (op.pool == PoolMode::None) {
    // Nothing is read from the IFM: the accumulators from IFM2 (or the preceding operation) go through the
    // output stage.
    const int64_t positions = int64_t{op.ofm.height} * op.ofm.width;
    const int64_t grain = std::clamp<int64_t>(32768 / op.ofm.depth, 1, 4096);
    forRange(positions, grain, [&](int64_t begin, int64_t end) {
      thread_local std::vector<int64_t> acc;
      thread_local std::vector<std::byte> out;
      for (int64_t first = begin; first < end; first += grain) {
        const int64_t count = std::min(grain, end - first);
        acc.assign(static_cast<size_t>(count * op.ofm.depth), 0);
        emit(op, first, count, acc.data(), out);
      }
    });
    return std::nullopt;
  }
  if (Outcome failed = geometryOf(op, geometry)) return failed;
  const int64_t bytes = elementBytes(op.ifm.type);
  const bool reduceSum = op.pool == PoolMode::ReduceSum;
  if (bytes > target_.architecture().poolElementBytes && !reduceSum) {
    return makeFault(FaultKind::Parse, "pooling of {}-bit elements on {}", bytes * 8,
                     familyName(target_.family));
  }
  if (bytes > 4) return makeFault(FaultKind::Parse, "pooling of 64-bit elements");
  if (reduceSum && geometry.ofmDepth != 1) {
    return makeFault(FaultKind::Parse, "REDUCE_SUM with OFM depth {}", geometry.ofmDepth);
  }
  const int64_t taps = int64_t{op.kernel.height} * op.kernel.width;
  const int64_t depth = reduceSum ? geometry.ifmDepth : geometry.ofmDepth;
  if (taps * depth > options_.maxOperationWork / std::max<int64_t>(geometry.positions(), 1)) {
    return checkLimits(std::numeric_limits<int64_t>::max(), 0);
  }
  if (fitsInt16(op.ifm)) {
    Plane<int16_t> plane;
    if (Outcome failed = gather(op, geometry, false, depth, memory, plane)) return failed;
    poolPlane(op, geometry, plane);
  } else {
    Plane<int64_t> plane;
    if (Outcome failed = gather(op, geometry, false, depth, memory, plane)) return failed;
    poolPlane(op, geometry, plane);
  }
  return std::nullopt;
}

}  // namespace carina::npu::model
