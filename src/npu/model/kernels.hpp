// SPDX-License-Identifier: Apache-2.0
// The performance-critical inner loops of the NPU model: dot products of int16 activations with int16
// weights, depthwise accumulation and the scaling of 32-bit accumulators. Written with Highway and compiled
// for several instruction sets; the best one for the machine is selected at run time. Nothing here checks
// bounds: the callers guarantee that pointers, counts and value ranges are valid for the whole operation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace carina::npu::model {

/// Memory for vectors: aligned to a cache line, uninitialised, with slack for one over-read vector at the
/// end.
class AlignedBytes {
 public:
  AlignedBytes() = default;
  explicit AlignedBytes(size_t bytes);
  ~AlignedBytes();
  AlignedBytes(AlignedBytes&& other) noexcept : data_(other.data_), size_(other.size_) {
    other.data_ = nullptr;
    other.size_ = 0;
  }
  AlignedBytes& operator=(AlignedBytes&& other) noexcept;
  AlignedBytes(const AlignedBytes&) = delete;
  AlignedBytes& operator=(const AlignedBytes&) = delete;

  /// Grows if smaller (contents are lost); never shrinks.
  void reserve(size_t bytes);
  size_t size() const { return size_; }
  template <typename T>
  T* as() {
    return reinterpret_cast<T*>(data_);
  }
  template <typename T>
  const T* as() const {
    return reinterpret_cast<const T*>(data_);
  }

 private:
  static constexpr std::align_val_t kAlignment{128};
  static constexpr size_t kOverRead = 128;  // bytes

  unsigned char* data_ = nullptr;
  size_t size_ = 0;
};

/// The window of one output position as runs of contiguous activations, each `pairs` pairs of int16 long. Run
/// r of the position that starts at p covers p[offset[r]] .. p[offset[r] + 2*pairs - 1].
struct DotWindow {
  std::vector<int64_t> offset;  // elements from the start of the position
  int64_t pairs = 0;
  int64_t runs() const { return static_cast<int64_t>(offset.size()); }
};

/// Weights re-ordered for dotProducts on this machine: tiles of output channels, then run, pair, channel, and
/// the two weights of the pair.
struct DotWeights {
  AlignedBytes data;
  int64_t channels = 0;
  int64_t paddedChannels = 0;  // multiple of the vector width; accumulator rows have this stride
  int64_t runs = 0, pairs = 0;
};

/// Packs int16 weights dense[channel][run][2*pairs].
DotWeights packDotWeights(const int16_t* dense, int64_t channels, int64_t runs, int64_t pairs);

/// acc[i*paddedChannels + c] = sum over runs and pairs of x[start[i] + offset[run] + k] * w(c, run, k),
/// wrapping int32. The caller guarantees that no sum exceeds int32.
void dotProducts(const DotWindow& window, const DotWeights& weights, const int16_t* const* start,
                 int64_t positions, int32_t* acc);
/// The same with 64-bit sums, exact for any int16 activations and weights within +-255.
void dotProductsWide(const DotWindow& window, const DotWeights& weights, const int16_t* const* start,
                     int64_t positions, int64_t* acc);

/// Depthwise: acc[i*channels + c] = sum over taps t of x[start[i] + tapOffset[t] + c] * w[t*channels + c],
/// int32.
void depthwiseSums(const int16_t* const* start, int64_t positions, const int64_t* tapOffset,
                   const int16_t* weights, int64_t taps, int64_t channels, int32_t* acc);

/// Scaling of 32-bit accumulators to 8-, 16- or 32-bit outputs, per channel:
///   v = ((acc + bias) * multiplier + (acc + bias >= 0 ? positive : negative)) >> shift;
///   v += zeroPoint; clamp.
/// All arrays are padded to whole vectors; accumulator rows have the stride paddedChannels. The caller
/// guarantees |acc + bias| < 2^31 and multiplier < 2^31.
struct ChannelScales {
  int64_t paddedChannels = 0;
  std::vector<int32_t> bias, multiplier;
  std::vector<int64_t> shift, positive, negative;  // rounding terms for acc + bias >= 0 and < 0
};
/// rows x channels values from acc (row stride paddedChannels) to out, dense [rows][channels] of outBytes (1,
/// 2 or 4) each; minimum and maximum are within the output type (signed or unsigned).
void scaleRows(const ChannelScales& scales, const int32_t* acc, int64_t rows, int64_t channels,
               int64_t zeroPoint, int64_t minimum, int64_t maximum, int outBytes, void* out);

/// int32 lanes in a vector of the instruction set in use; channels are padded to multiples of this.
int64_t vectorLanes();
/// Name of the instruction set in use, for reports.
const char* instructionSet();

}  // namespace carina::npu::model
