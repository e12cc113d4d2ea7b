// SPDX-License-Identifier: Apache-2.0
// Bias and scale records.
#include "npu/weights/scale_records.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace carina::npu {
namespace {

/// Layout of bias and scale in a record; the shift follows.
struct RecordLayout {
  int biasBytes, scaleBytes, scaleBits;
};
constexpr RecordLayout layoutOf(ScaleFormat format) {
  switch (format) {
    case ScaleFormat::U55:
      return {5, 4, 32};
    case ScaleFormat::U85:
      return {4, 4, 31};
    case ScaleFormat::U85Acc48:
      return {6, 2, 15};
  }
  return {};
}

constexpr size_t kStreamAlignment = 16;
constexpr int32_t kU85RecordGroup = 16;
constexpr int kMaxShift = 63;

/// multiplier = scale / 2^shift with scale in 2^30..2^31-1; 0 if `multiplier` is not positive and finite.
void normalise(double multiplier, int64_t& scale, int& shift) {
  if (!(multiplier > 0) || !std::isfinite(multiplier)) return;
  int exponent = 0;
  scale = std::llround(std::frexp(multiplier, &exponent) * 2147483648.0);
  shift = 31 - exponent;
  if (scale == int64_t{1} << 31) {  // rounded up to 1.0
    scale >>= 1;
    --shift;
  }
}

ScaleRecord bringIntoRange(int64_t scale, int shift) {
  if (shift > kMaxShift) {  // too small for the shift: drop low bits of the scale
    const int excess = shift - kMaxShift;
    scale = excess < 31 && scale > int64_t{1} << excess ? scale >> excess : 0;
    shift = scale == 0 ? 0 : kMaxShift;
  } else if (shift < 0) {
    scale = shift > -32 && scale < int64_t{1} << (shift + 32) ? scale << -shift : INT32_MAX;
    shift = 0;
  }
  return {0, static_cast<uint32_t>(scale), static_cast<uint8_t>(scale == 0 ? 0 : shift)};
}

}  // namespace

ScaleFormat scaleFormat(const Target& target, AccumulatorFormat accumulator) {
  if (!target.isU85()) return ScaleFormat::U55;
  return accumulator == AccumulatorFormat::Int48 ? ScaleFormat::U85Acc48 : ScaleFormat::U85;
}

Status encodeScaleRecord(const ScaleRecord& record, ScaleFormat format,
                         std::span<uint8_t, kScaleRecordBytes> bytes) {
  const RecordLayout layout = layoutOf(format);
  const int64_t biasLimit = int64_t{1} << (layout.biasBytes * 8 - 1);
  if (record.bias < -biasLimit || record.bias >= biasLimit) {
    return fail(Code::InvalidWeights, "bias {} exceeds the {} bits of a scale record", record.bias,
                layout.biasBytes * 8);
  }
  if (uint64_t{record.scale} >> layout.scaleBits != 0) {
    return fail(Code::InvalidWeights, "scale multiplier {} exceeds the {} bits of a scale record",
                record.scale, layout.scaleBits);
  }
  if (record.shift > kMaxShift)
    return fail(Code::InvalidWeights, "scale shift {} is outside 0..{}", record.shift, kMaxShift);
  std::fill(bytes.begin(), bytes.end(), uint8_t{0});
  size_t at = 0;
  for (int n = 0; n < layout.biasBytes; ++n)
    bytes[at++] = static_cast<uint8_t>(static_cast<uint64_t>(record.bias) >> (8 * n));
  for (int n = 0; n < layout.scaleBytes; ++n) bytes[at++] = static_cast<uint8_t>(record.scale >> (8 * n));
  bytes[at] = record.shift;
  return {};
}

ScaleRecord decodeScaleRecord(std::span<const std::byte, kScaleRecordBytes> bytes, ScaleFormat format) {
  const RecordLayout layout = layoutOf(format);
  uint64_t bias = 0, scale = 0;
  size_t at = 0;
  for (int n = 0; n < layout.biasBytes; ++n) bias |= static_cast<uint64_t>(bytes[at++]) << (8 * n);
  for (int n = 0; n < layout.scaleBytes; ++n) scale |= static_cast<uint64_t>(bytes[at++]) << (8 * n);
  const uint64_t sign = uint64_t{1} << (layout.biasBytes * 8 - 1);
  ScaleRecord record;
  record.bias = static_cast<int64_t>((bias ^ sign) - sign);
  record.scale = static_cast<uint32_t>(scale & ((uint64_t{1} << layout.scaleBits) - 1));
  record.shift = static_cast<uint8_t>(static_cast<uint8_t>(bytes[at]) & kMaxShift);
  return record;
}

Result<std::vector<std::vector<uint8_t>>> encodeScales(std::span<const ScaleRecord> channels,
                                                       const Target& target, ScaleFormat format,
                                                       int32_t ofmMicroblockDepth) {
  const auto cores = static_cast<size_t>(target.cores);
  std::vector<std::vector<uint8_t>> streams(cores);
  for (size_t core = 0; core < cores; ++core) {
    std::vector<uint8_t>& stream = streams[core];
    for (size_t channel = core; channel < channels.size(); channel += cores) {
      std::array<uint8_t, kScaleRecordBytes> bytes;
      Status status = encodeScaleRecord(channels[channel], format, bytes);
      if (!status.ok()) return std::move(status).error().at(fmt::format("output channel {}", channel));
      stream.insert(stream.end(), bytes.begin(), bytes.end());
    }
    if (target.isU85()) {
      const auto group = static_cast<size_t>(std::max(kU85RecordGroup, ofmMicroblockDepth));
      const size_t records = (channels.size() + group - 1) / group * group;
      stream.resize(records * static_cast<size_t>(kScaleRecordBytes), 0);
    }
    stream.resize((stream.size() + kStreamAlignment - 1) / kStreamAlignment * kStreamAlignment, 0);
  }
  return streams;
}

Result<std::vector<ScaleRecord>> decodeScales(std::span<const ByteSpan> streams, int32_t channels,
                                              const Target& target, ScaleFormat format) {
  const auto cores = static_cast<size_t>(target.cores);
  std::vector<ScaleRecord> records(static_cast<size_t>(std::max(channels, 0)));
  for (size_t channel = 0; channel < records.size(); ++channel) {
    const size_t core = channel % cores, at = channel / cores * static_cast<size_t>(kScaleRecordBytes);
    if (core >= streams.size() || streams[core].size() < at + static_cast<size_t>(kScaleRecordBytes)) {
      return fail(Code::InvalidWeights, "the scale stream of core {} ends before output channel {}", core,
                  channel);
    }
    records[channel] = decodeScaleRecord(streams[core].subspan(at).first<kScaleRecordBytes>(), format);
  }
  return records;
}

ScaleRecord quantizeScale(double multiplier) {
  int64_t scale = 0;
  int shift = 0;
  normalise(multiplier, scale, shift);
  return bringIntoRange(scale, shift);
}

ScaleRecord quantizeReducedScale(double multiplier) {
  int64_t scale = 0;
  int shift = 0;
  normalise(multiplier, scale, shift);
  scale = std::min<int64_t>((scale >> 16) + (scale >> 15 & 1), 32767);
  return bringIntoRange(scale, shift - 16);
}

}  // namespace carina::npu
