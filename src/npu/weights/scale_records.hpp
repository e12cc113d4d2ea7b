// SPDX-License-Identifier: Apache-2.0
// Bias and scale records: ten bytes per output channel, stored alongside the weights. Reference:
// ethosu-weights 5.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "base/tensor.hpp"
#include "npu/isa/operation.hpp"

namespace carina::npu {

/// acc -> round((acc + bias) * scale / 2^shift) of one channel.
struct ScaleRecord {
  int64_t bias = 0;
  uint32_t scale = 0;
  uint8_t shift = 0;
  friend bool operator==(const ScaleRecord&, const ScaleRecord&) = default;
};

enum class ScaleFormat : uint8_t {
  U55,       // U55 and U65: bias 40 bits, scale 32
  U85,       // U85, 32-bit accumulator: bias 32, scale 31
  U85Acc48,  // U85, 48-bit accumulator: bias 48, scale 15
};
ScaleFormat scaleFormat(const Target& target, AccumulatorFormat accumulator);

constexpr int64_t kScaleRecordBytes = 10;

/// One record. Fails if bias, scale or shift (0..63) exceed the format.
Status encodeScaleRecord(const ScaleRecord& record, ScaleFormat format,
                         std::span<uint8_t, kScaleRecordBytes> bytes);
ScaleRecord decodeScaleRecord(std::span<const std::byte, kScaleRecordBytes> bytes, ScaleFormat format);

/// The scale streams of a depth slice, one per core, padded with zeros to 16 bytes; on U85 the records are
/// also padded to a multiple of max(16, microblock depth). A core without channels has an empty stream.
Result<std::vector<std::vector<uint8_t>>> encodeScales(std::span<const ScaleRecord> channels,
                                                       const Target& target, ScaleFormat format,
                                                       int32_t ofmMicroblockDepth);

/// Records of the first `channels` channels from the streams of all cores. Fails if they are too short.
Result<std::vector<ScaleRecord>> decodeScales(std::span<const ByteSpan> streams, int32_t channels,
                                              const Target& target, ScaleFormat format);

/// Converts a real multiplier (> 0) to (scale, shift) as TFLite and regor do: scale in 2^30..2^31, shift
/// limited to 0..63. Bias is 0. Multipliers that are not positive or too small to represent: scale 0, shift
/// 0.
ScaleRecord quantizeScale(double multiplier);
/// The same with a 15-bit scale, for the 48-bit accumulator: the upper half, rounded half up, at most 32767.
/// For multipliers of 2^15 and more the scale exceeds 15 bits.
ScaleRecord quantizeReducedScale(double multiplier);

}  // namespace carina::npu
