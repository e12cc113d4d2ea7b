// SPDX-License-Identifier: Apache-2.0
// Conversion of weight tensors to hardware streams and back: ordering and entropy coding combined. Pure
// functions, safe to call in parallel for different operations.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/tensor.hpp"
#include "npu/weights/swd.hpp"
#include "npu/weights/weight_order.hpp"

namespace carina::npu {

enum class WeightEncoding : uint8_t {
  Standard,
  Fast
};  // NPU_SET_WEIGHT_FORMAT bit 0; Fast: U85, not depthwise

struct EncodedWeights {
  /// One byte string per hardware stream (WEIGHT, WEIGHT1, ...), each a multiple of 16 bytes; a core without
  /// channels has an empty one. Fast: one stream (multiple of 32) for all decoders.
  std::vector<std::vector<uint8_t>> streams;
  int64_t weights = 0;  // in all streams, padding included

  int64_t bytes() const;
};

/// Encodes the OFM channels of `slice`.
Result<EncodedWeights> encodeWeights(const WeightView& view, const WeightOrder& order, DepthSlice slice,
                                     WeightEncoding encoding = WeightEncoding::Standard,
                                     CodingEffort effort = CodingEffort::Normal);

/// Decodes streams to weights: dense OHWI of `shape` (depthwise: H,W,C), with the zero point already
/// subtracted. `streams` are those that the WEIGHTn_BASE/LENGTH registers select; fails if one is corrupt or
/// holds a different count than the order needs.
Result<std::vector<int16_t>> decodeWeights(std::span<const ByteSpan> streams, const WeightShape& shape,
                                           const WeightOrder& order,
                                           WeightEncoding encoding = WeightEncoding::Standard);

/// Part-kernel-first or depth-first, whichever pads less, for convolutions (not fully connected or
/// depthwise): the choice that both public compilers make; any choice is correct.
WeightTraversal preferredTraversal(const WeightShape& shape, const Target& target, int ifmBits,
                                   bool sparse = false);

}  // namespace carina::npu
