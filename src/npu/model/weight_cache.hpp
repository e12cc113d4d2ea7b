// SPDX-License-Identifier: Apache-2.0
// Decoded weights in the form that the kernels use. Decoding costs far more than using the weights once, so
// results are cached by content: the encoded bytes are compared, never assumed to be unchanged.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "npu/isa/operation.hpp"
#include "npu/model/kernels.hpp"
#include "npu/model/operation_fault.hpp"
#include "npu/targets/target.hpp"
#include "npu/weights/weight_codec.hpp"

namespace carina::npu::model {

struct DecodedWeights {
  std::vector<int16_t> values;       // OHWI, depthwise (H, W, C)
  std::vector<int64_t> absoluteSum;  // per OFM channel
  int64_t maxAbsoluteSum = 0;
  int32_t maxAbsolute = 0;
  double zeroShare = 0;
  DotWeights packed;  // convolutions
  int64_t runs = 0, pairs = 0;
};

class WeightCache {
 public:
  /// Weights of a Conv or Depthwise from its streams in memory.
  Outcome get(const Target& target, const KernelOperation& op, int64_t channels, AddressMap& memory,
              std::shared_ptr<const DecodedWeights>& result);

 private:
  struct Entry {
    uint64_t hash = 0;
    WeightShape shape;
    WeightOrder order;
    WeightEncoding encoding = WeightEncoding::Standard;
    std::vector<std::vector<std::byte>> streams;
    std::shared_ptr<const DecodedWeights> weights;
    size_t bytes = 0;
  };
  std::list<Entry> entries_;  // most recently used first
  size_t bytes_ = 0;
};

/// The runs of contiguous input that make up a window: rows of the kernel, or single taps if dilated in x.
struct WindowShape {
  int64_t runs = 0, elements = 0;  // per run, before rounding up to pairs
};
WindowShape windowShape(const Kernel& kernel, int64_t ifmDepth);

}  // namespace carina::npu::model
