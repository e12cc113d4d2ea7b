// SPDX-License-Identifier: Apache-2.0
// CONV and DEPTHWISE: fast kernels if the value ranges allow, exact 64-bit sums otherwise.
#include <algorithm>
#include <limits>

#include "npu/model/executor.hpp"

namespace carina::npu::model {
namespace {

/// Output positions per task: accumulators of about 256 KiB, a multiple of the register tile.
int64_t positionsPerTask(int64_t channels, int64_t bytes) {
  return std::clamp<int64_t>((int64_t{1} << 18) / std::max<int64_t>(channels * bytes, 1), 8, 2048) / 8 * 8;
}

constexpr int64_t kInt32Limit = std::numeric_limits<int32_t>::max();

/// First input element of output position p.
template <typename T>
const T* windowStart(const Plane<T>& plane, const Kernel& kernel, int64_t ofmWidth, int64_t p) {
  return plane.data +
         (p / ofmWidth * kernel.strideY * plane.width + p % ofmWidth * kernel.strideX) * plane.depth;
}

}  // namespace

Outcome Executor::weightsFromIfm2(const KernelOperation& op, const Geometry& geometry, AddressMap& memory,
                                  std::vector<int64_t>& weights) const {
  if (!op.ifm2) return makeFault(FaultKind::Parse, "weights from IFM2 without IFM2");
  if (op.kernel.height != 1 || op.kernel.width != 1) {
    return makeFault(FaultKind::Parse, "weights from IFM2 need a 1x1 kernel, not {}x{}", op.kernel.height,
                     op.kernel.width);
  }
  if (elementBytes(op.ifm2->type) > 2 || op.ifm2->storage == Storage::Chained ||
      op.ifm2->storage == Storage::None) {
    return makeFault(FaultKind::Parse, "weights from IFM2 must be 8 or 16 bits wide and in memory");
  }
  if (Outcome failed =
          checkLimits(geometry.ofmDepth * geometry.ifmDepth, geometry.ofmDepth * geometry.ifmDepth * 8)) {
    return failed;
  }
  // [1, output channel, input channel]
  BoundMap map;
  if (Outcome failed = map.bind(*op.ifm2, 1, geometry.ofmDepth, geometry.ifmDepth, memory, Access::Read,
                                Channel::Ifm, "IFM2 (weights)")) {
    return failed;
  }
  weights.resize(static_cast<size_t>(geometry.ofmDepth * geometry.ifmDepth));
  map.readRow(0, 0, geometry.ofmDepth, op.ifm2->zeroPoint, weights.data());
  return std::nullopt;
}

Outcome Executor::convolution(const KernelOperation& op, AddressMap& memory) {
  const bool depthwise = op.kind == OperationKind::Depthwise;
  Geometry geometry;
  if (Outcome failed = geometryOf(op, geometry)) return failed;
  if (elementBytes(op.ifm.type) > 2) {
    return makeFault(FaultKind::Parse, "convolution of {}-bit elements", elementBytes(op.ifm.type) * 8);
  }
  const int64_t depth = depthwise ? geometry.ofmDepth : geometry.ifmDepth;
  const int64_t taps = int64_t{op.kernel.height} * op.kernel.width;
  const int64_t volume = taps * (depthwise ? 1 : depth);  // below 2^48
  if (volume * geometry.ofmDepth > options_.maxOperationBytes)
    return checkLimits(0, volume * geometry.ofmDepth);
  if (Outcome failed = checkLimits(geometry.positions() * geometry.ofmDepth, 0)) return failed;
  if (volume > options_.maxOperationWork / std::max<int64_t>(geometry.positions() * geometry.ofmDepth, 1)) {
    return checkLimits(std::numeric_limits<int64_t>::max(), 0);
  }

  std::vector<int64_t> dynamicWeights;
  std::shared_ptr<const DecodedWeights> weights;
  if (op.weightsFromIfm2 && !depthwise) {
    if (Outcome failed = weightsFromIfm2(op, geometry, memory, dynamicWeights)) return failed;
  } else {
    if (Outcome failed = cache_.get(target_, op, geometry.ofmDepth, memory, weights)) return failed;
    zeroWeights_ = weights->zeroShare;
  }

  if (!fitsInt16(op.ifm)) {
    Plane<int64_t> plane;
    if (Outcome failed = gather(op, geometry, true, depth, memory, plane)) return failed;
    if (weights) dynamicWeights.assign(weights->values.begin(), weights->values.end());
    convolveExact(op, geometry, plane, dynamicWeights.data());
    return std::nullopt;
  }
  Plane<int16_t> plane;
  if (Outcome failed = gather(op, geometry, true, depth, memory, plane)) return failed;
  const int64_t maxInput = maxMagnitude(op.ifm);
  if (depthwise) {
    depthwiseFast(op, geometry, plane, *weights, maxInput);
    return std::nullopt;
  }
  if (!weights) {
    // A matrix from IFM2: the fast kernels accept it if its values are in the range of stream weights.
    DecodedWeights matrix;
    matrix.values.reserve(dynamicWeights.size());
    for (size_t i = 0; i < dynamicWeights.size(); ++i) {
      const int64_t w = dynamicWeights[i];
      if (w < -255 || w > 255) {
        convolveExact(op, geometry, plane, dynamicWeights.data());
        return std::nullopt;
      }
      matrix.values.push_back(static_cast<int16_t>(w));
    }
    matrix.maxAbsoluteSum = 256 * geometry.ifmDepth;
    const int64_t pairs = (geometry.ifmDepth + 1) / 2;
    if (geometry.ifmDepth % 2 != 0) {
      std::vector<int16_t> even(static_cast<size_t>(geometry.ofmDepth * pairs * 2), int16_t{0});
      for (int64_t o = 0; o < geometry.ofmDepth; ++o) {
        std::copy_n(matrix.values.begin() + o * geometry.ifmDepth, geometry.ifmDepth,
                    even.begin() + o * pairs * 2);
      }
      matrix.packed = packDotWeights(even.data(), geometry.ofmDepth, 1, pairs);
    } else {
      matrix.packed = packDotWeights(matrix.values.data(), geometry.ofmDepth, 1, pairs);
    }
    matrix.runs = 1;
    matrix.pairs = pairs;
    convolveFast(op, geometry, plane, matrix, maxInput);
    return std::nullopt;
  }
  convolveFast(op, geometry, plane, *weights, maxInput);
  return std::nullopt;
}

void Executor::convolveFast(const KernelOperation& op, const Geometry& geometry, const Plane<int16_t>& plane,
                            const DecodedWeights& weights, int64_t maxInput) {
  const Kernel& kernel = op.kernel;
  DotWindow window;
  window.pairs = weights.pairs;
  for (int64_t ky = 0; ky < kernel.height; ++ky) {
    const int64_t row = ky * kernel.dilationY * plane.width * plane.depth;
    if (kernel.dilationX == 1) {
      window.offset.push_back(row);
      continue;
    }
    for (int64_t kx = 0; kx < kernel.width; ++kx)
      window.offset.push_back(row + kx * kernel.dilationX * plane.depth);
  }
  // A run of odd length reads one element of its neighbour, multiplied by a zero weight; the plane has slack
  // at its end.
  const int64_t bound = maxInput * weights.maxAbsoluteSum;
  const bool fast =
      bound <= kInt32Limit && !needsInitial() && op.accumulatorOutput && stage_.canFinishFast(bound);
  const int64_t padded = weights.packed.paddedChannels;
  if (fast) stage_.prepareFast(padded);
  const int64_t grain = positionsPerTask(padded, fast ? 4 : 8);
  forRange((geometry.positions() + grain - 1) / grain, 1, [&](int64_t begin, int64_t end) {
    thread_local AlignedBytes accBytes;
    thread_local std::vector<std::byte> out;
    thread_local std::vector<int64_t> dense;
    std::vector<const int16_t*> start(static_cast<size_t>(grain));
    accBytes.reserve(static_cast<size_t>(grain * padded * (fast ? 4 : 8)));
    for (int64_t task = begin; task < end; ++task) {
      const int64_t first = task * grain, count = std::min(grain, geometry.positions() - first);
      for (int64_t i = 0; i < count; ++i) {
        start[static_cast<size_t>(i)] = windowStart(plane, kernel, geometry.ofmWidth, first + i);
      }
      if (fast) {
        auto* acc = accBytes.as<int32_t>();
        dotProducts(window, weights.packed, start.data(), count, acc);
        out.resize(static_cast<size_t>(count * geometry.ofmDepth * stage_.outBytes()));
        stage_.finishFast(acc, count, out.data());
        sink_.store(first, count, out.data());
        continue;
      }
      auto* acc = accBytes.as<int64_t>();
      dotProductsWide(window, weights.packed, start.data(), count, acc);
      dense.resize(static_cast<size_t>(count * geometry.ofmDepth));
      for (int64_t i = 0; i < count; ++i) {
        std::copy_n(acc + i * padded, geometry.ofmDepth, dense.data() + i * geometry.ofmDepth);
      }
      emit(op, first, count, dense.data(), out);
    }
  });
}

void Executor::depthwiseFast(const KernelOperation& op, const Geometry& geometry, const Plane<int16_t>& plane,
                             const DecodedWeights& weights, int64_t maxInput) {
  const Kernel& kernel = op.kernel;
  const int64_t channels = geometry.ofmDepth;
  const int64_t bound = maxInput * weights.maxAbsoluteSum;
  if (bound > kInt32Limit) {
    const std::vector<int64_t> wide(weights.values.begin(), weights.values.end());
    convolveExact(op, geometry, plane, wide.data());
    return;
  }
  std::vector<int64_t> tapOffset;
  for (int64_t ky = 0; ky < kernel.height; ++ky) {
    for (int64_t kx = 0; kx < kernel.width; ++kx) {
      tapOffset.push_back((ky * kernel.dilationY * plane.width + kx * kernel.dilationX) * plane.depth);
    }
  }
  const bool fast = !needsInitial() && op.accumulatorOutput && stage_.canFinishFast(bound);
  if (fast) stage_.prepareFast(channels);
  const int64_t grain = positionsPerTask(channels, 4);
  forRange((geometry.positions() + grain - 1) / grain, 1, [&](int64_t begin, int64_t end) {
    thread_local AlignedBytes accBytes;
    thread_local std::vector<std::byte> out;
    thread_local std::vector<int64_t> dense;
    std::vector<const int16_t*> start(static_cast<size_t>(grain));
    accBytes.reserve(static_cast<size_t>(grain * channels) * sizeof(int32_t));
    for (int64_t task = begin; task < end; ++task) {
      const int64_t first = task * grain, count = std::min(grain, geometry.positions() - first);
      for (int64_t i = 0; i < count; ++i) {
        start[static_cast<size_t>(i)] = windowStart(plane, kernel, geometry.ofmWidth, first + i);
      }
      auto* acc = accBytes.as<int32_t>();
      depthwiseSums(start.data(), count, tapOffset.data(), weights.values.data(),
                    static_cast<int64_t>(tapOffset.size()), channels, acc);
      if (fast) {
        out.resize(static_cast<size_t>(count * channels * stage_.outBytes()));
        stage_.finishFast(acc, count, out.data());
        sink_.store(first, count, out.data());
        continue;
      }
      dense.assign(acc, acc + count * channels);
      emit(op, first, count, dense.data(), out);
    }
  });
}

template <typename T>
void Executor::convolveExact(const KernelOperation& op, const Geometry& geometry, const Plane<T>& plane,
                             const int64_t* weights) {
  const Kernel& kernel = op.kernel;
  const bool depthwise = op.kind == OperationKind::Depthwise;
  const int64_t channels = geometry.ofmDepth, depth = plane.depth;
  forRange(geometry.positions(), 16, [&](int64_t begin, int64_t end) {
    std::vector<int64_t> acc(static_cast<size_t>(channels));
    std::vector<std::byte> out;
    for (int64_t p = begin; p < end; ++p) {
      const T* window = windowStart(plane, kernel, geometry.ofmWidth, p);
      for (int64_t o = 0; o < channels; ++o) {
        int64_t sum = 0;
        for (int64_t ky = 0; ky < kernel.height; ++ky) {
          for (int64_t kx = 0; kx < kernel.width; ++kx) {
            const T* x = window + (ky * kernel.dilationY * plane.width + kx * kernel.dilationX) * depth;
            const int64_t tap = ky * kernel.width + kx;
            if (depthwise) {
              sum += x[o] * weights[tap * channels + o];
              continue;
            }
            const int64_t* w = weights + (o * kernel.height * kernel.width + tap) * depth;
            for (int64_t i = 0; i < depth; ++i) sum += x[i] * w[i];
          }
        }
        acc[static_cast<size_t>(o)] = sum;
      }
      emit(op, p, 1, acc.data(), out);
    }
  });
}

template void Executor::convolveExact<int16_t>(const KernelOperation&, const Geometry&, const Plane<int16_t>&,
                                               const int64_t*);
template void Executor::convolveExact<int64_t>(const KernelOperation&, const Geometry&, const Plane<int64_t>&,
                                               const int64_t*);

}  // namespace carina::npu::model
