// SPDX-License-Identifier: Apache-2.0
// Executes decoded operations, each to completion: the arithmetic core of the model. One file per operation
// kind: convolution.cpp, pooling.cpp, elementwise.cpp, resize.cpp, dma.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "npu/isa/operation.hpp"
#include "npu/model/feature_map.hpp"
#include "npu/model/output_stage.hpp"
#include "npu/model/weight_cache.hpp"

namespace carina::npu::model {

/// A complete tensor in a U85 chaining buffer.
struct ChainBuffer {
  bool valid = false;
  int64_t height = 0, width = 0, depth = 0;
  std::vector<int64_t> values;
};

/// Accumulators left by an operation without output (U85).
struct KeptAccumulators {
  bool valid = false;
  int64_t height = 0, width = 0, depth = 0;
  std::vector<int64_t> values;
};

/// A dense input, zero point subtracted, padded and upscaled: element (y, x, c) is data[(y * width + x) *
/// depth + c].
template <typename T>
struct Plane {
  const T* data = nullptr;
  int64_t height = 0, width = 0, depth = 0;
};

/// Sizes of a conv-like operation.
struct Geometry {
  int64_t ofmHeight = 0, ofmWidth = 0, ofmDepth = 0, ifmDepth = 0;
  int64_t ifmHeight = 0, ifmWidth = 0;  // upscaled coordinates, without padding
  int64_t positions() const { return ofmHeight * ofmWidth; }
};

/// Destination of finished elements: memory (transposed, reversed), a chaining buffer, or nowhere.
class Sink {
 public:
  Outcome bind(const KernelOperation& op, AddressMap& memory, std::array<ChainBuffer, 8>& chains);
  /// Stores `count` positions from linear position `first` (row-major), dense in the OFM type. Thread-safe
  /// for disjoint ranges.
  void store(int64_t first, int64_t count, const std::byte* elements);
  /// Bit 0 of the only element of a one-element OFM.
  bool flag() const { return flag_; }

 private:
  enum class Mode : uint8_t { Memory, Permuted, Chain, Discard };
  Mode mode_ = Mode::Memory;
  BoundMap map_;
  ChainBuffer* chain_ = nullptr;
  ElementType type_ = ElementType::Int8;
  Transpose transpose_ = Transpose::HWC;
  Reverse reverse_ = Reverse::None;
  int64_t height_ = 0, width_ = 0, depth_ = 0;
  bool flag_ = false;
};

class Executor {
 public:
  Executor(const Target& target, const ModelOptions& options);

  /// Clears tables, chaining buffers and accumulators (but not decoded weights).
  void reset();

  void setMaxOperationBytes(int64_t bytes) { options_.maxOperationBytes = bytes; }

  Outcome execute(const KernelOperation& op, AddressMap& memory);
  Outcome execute(const DmaOperation& op, AddressMap& memory);

  /// U85: bit 0 of the latest one-element OFM.
  bool resultFlag() const { return resultFlag_; }
  /// SHRAM (U55/U65) or LUT RAM (U85) as DMA and the debug window see it.
  std::vector<uint8_t>& internalMemory() { return internal_; }
  /// Share of zero weights in the latest operation, for the timing model; negative if it had no weights.
  double latestZeroWeights() const { return zeroWeights_; }

 private:
  Outcome convolution(const KernelOperation& op, AddressMap& memory);
  Outcome pooling(const KernelOperation& op, AddressMap& memory);
  Outcome elementwise(const KernelOperation& op, AddressMap& memory);
  Outcome resize(const KernelOperation& op, AddressMap& memory);

  Outcome geometryOf(const KernelOperation& op, Geometry& geometry) const;
  Outcome checkLimits(int64_t work, int64_t bytes) const;
  /// Selects the scale of the output stage for this operation, and reads its scale records, if any.
  Outcome prepareOutput(const KernelOperation& op, AddressMap& memory);
  /// Reads initial accumulators (KEEP, IFM2) into initial_, or leaves it empty.
  Outcome prepareAccumulators(const KernelOperation& op, AddressMap& memory);
  /// Adds initial accumulators to `count` positions of dense accumulators and passes them to the output stage
  /// and sink.
  void emit(const KernelOperation& op, int64_t first, int64_t count, int64_t* acc,
            std::vector<std::byte>& scratch);
  bool needsInitial() const { return !initial_.empty(); }

  template <typename T>
  Outcome gather(const KernelOperation& op, const Geometry& geometry, bool padded, int64_t depth,
                 AddressMap& memory, Plane<T>& plane);
  template <typename T>
  void convolveExact(const KernelOperation& op, const Geometry& geometry, const Plane<T>& plane,
                     const int64_t* weights);
  void convolveFast(const KernelOperation& op, const Geometry& geometry, const Plane<int16_t>& plane,
                    const DecodedWeights& weights, int64_t maxInput);
  void depthwiseFast(const KernelOperation& op, const Geometry& geometry, const Plane<int16_t>& plane,
                     const DecodedWeights& weights, int64_t maxInput);
  Outcome weightsFromIfm2(const KernelOperation& op, const Geometry& geometry, AddressMap& memory,
                          std::vector<int64_t>& weights) const;
  template <typename T>
  void poolPlane(const KernelOperation& op, const Geometry& geometry, const Plane<T>& plane);

  /// Calls body(begin, end) over [0, count), in parallel if allowed and worthwhile.
  void forRange(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) const;

  const uint8_t* tableMemory() const;

  const Target& target_;
  ModelOptions options_;
  std::vector<uint8_t> internal_;
  std::array<ChainBuffer, 8> chains_;
  KeptAccumulators kept_;
  WeightCache cache_;
  bool resultFlag_ = false;
  double zeroWeights_ = -1;

  // State of the operation being executed.
  OutputStage stage_;
  bool fastEmit_ = false;  // the output stage accepts 32-bit accumulators
  Sink sink_;
  std::vector<ScaleRecord> records_;
  std::vector<int64_t> initial_;
  AlignedBytes planeBytes_;
};

/// Whether values of the type minus the zero point fit int16.
bool fitsInt16(const FeatureMap& map);
/// Largest magnitude of a value of the type minus the zero point.
int64_t maxMagnitude(const FeatureMap& map);

}  // namespace carina::npu::model
