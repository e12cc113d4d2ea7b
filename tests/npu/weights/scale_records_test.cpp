// SPDX-License-Identifier: Apache-2.0
// Bias and scale records compared with recorded ones, and the streams they form.
#include "npu/weights/scale_records.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdlib>

#include "npu/weights/weight_vectors.hpp"
#include "support/require.hpp"

namespace carina::npu {
namespace {

using test::byteSpan;
using test::fromHex;
using test::weightVectors;

const Target& target(std::string_view name) {
  return **findTarget(name);
}

TEST(ScaleRecords, RecordedRecords) {
  int records = 0;
  for (const auto& v : weightVectors("scales.json")) {
    if (v["kind"] != "record") continue;
    ++records;
    const std::string format = v["format"];
    const ScaleFormat f = format == "u55"      ? ScaleFormat::U55
                          : format == "u85_32" ? ScaleFormat::U85
                                               : ScaleFormat::U85Acc48;
    const ScaleRecord record{v["bias"], v["scale"], v["shift"]};
    std::array<uint8_t, kScaleRecordBytes> bytes;
    ASSERT_TRUE(encodeScaleRecord(record, f, bytes).ok());
    const std::vector<uint8_t> expected = fromHex(v["bytes"]);
    EXPECT_EQ(std::vector<uint8_t>(bytes.begin(), bytes.end()), expected);
    EXPECT_EQ(decodeScaleRecord(byteSpan(expected).first<kScaleRecordBytes>(), f), record);
  }
  EXPECT_GT(records, 0);
}

TEST(ScaleRecords, RecordedQuantisation) {
  int cases = 0;
  for (const auto& v : weightVectors("scales.json")) {
    if (v["kind"] != "quantise") continue;
    ++cases;
    const double multiplier = std::strtod(v["value_hex"].get<std::string>().c_str(), nullptr);
    const ScaleRecord record =
        v["reduced"] != 0 ? quantizeReducedScale(multiplier) : quantizeScale(multiplier);
    EXPECT_EQ(record.scale, v["scale_regor"].get<uint32_t>()) << v;
    EXPECT_EQ(record.shift, v["shift_regor"].get<int>()) << v;
  }
  EXPECT_GT(cases, 0);
}

TEST(ScaleRecords, QuantisationEdges) {
  EXPECT_EQ(quantizeScale(0.5), (ScaleRecord{0, 1u << 30, 31}));
  EXPECT_EQ(quantizeScale(1.0), (ScaleRecord{0, 1u << 30, 30}));
  EXPECT_EQ(quantizeScale(0.0), ScaleRecord{});
  EXPECT_EQ(quantizeScale(-1.0), ScaleRecord{});
  EXPECT_EQ(quantizeScale(1.0 - 0x1p-40), (ScaleRecord{0, 1u << 30, 30}));  // rounds up to 1.0
  EXPECT_EQ(quantizeReducedScale(0.5), (ScaleRecord{0, 16384, 15}));
}

TEST(ScaleRecords, RefusesWhatDoesNotFit) {
  std::array<uint8_t, kScaleRecordBytes> bytes;
  EXPECT_FALSE(encodeScaleRecord({int64_t{1} << 39, 1, 0}, ScaleFormat::U55, bytes).ok());
  EXPECT_TRUE(encodeScaleRecord({(int64_t{1} << 39) - 1, 1, 0}, ScaleFormat::U55, bytes).ok());
  EXPECT_FALSE(encodeScaleRecord({int64_t{1} << 31, 1, 0}, ScaleFormat::U85, bytes).ok());
  EXPECT_FALSE(encodeScaleRecord({0, 1u << 31, 0}, ScaleFormat::U85, bytes).ok());
  EXPECT_FALSE(encodeScaleRecord({0, 1u << 15, 0}, ScaleFormat::U85Acc48, bytes).ok());
  EXPECT_FALSE(encodeScaleRecord({0, 1, 64}, ScaleFormat::U55, bytes).ok());
}

RC_GTEST_PROP(ScaleRecords, StreamsRoundTrip, ()) {
  const Target& t = target(
      *rc::gen::element<std::string>("ethos-u55-128", "ethos-u65-256", "ethos-u65-512", "ethos-u85-256"));
  const auto accumulator = t.isU85() ? *rc::gen::element(AccumulatorFormat::Int32, AccumulatorFormat::Int48)
                                     : *rc::gen::element(AccumulatorFormat::Int32, AccumulatorFormat::Int40);
  const ScaleFormat format = scaleFormat(t, accumulator);
  const int channels = *rc::gen::inRange(1, 70), ublock = *rc::gen::element(8, 16, 32, 64);
  std::vector<ScaleRecord> records;
  for (int n = 0; n < channels; ++n) {
    const auto bias = int64_t{*rc::gen::inRange<int32_t>(INT32_MIN, INT32_MAX)};
    const auto scale =
        static_cast<uint32_t>(*rc::gen::inRange(0, format == ScaleFormat::U85Acc48 ? 32768 : INT32_MAX));
    records.push_back({bias, scale, static_cast<uint8_t>(*rc::gen::inRange(0, 64))});
  }
  const auto streams = require(encodeScales(records, t, format, ublock));
  RC_ASSERT(static_cast<int>(streams.size()) == t.cores);
  std::vector<ByteSpan> spans;
  for (const auto& stream : streams) {
    RC_ASSERT(stream.size() % 16 == 0);
    spans.push_back(byteSpan(stream));
  }
  if (t.isU85()) {
    const int group = std::max(16, ublock);
    RC_ASSERT(static_cast<int>(streams[0].size()) == (channels + group - 1) / group * group * 10);
  }
  const auto decoded = require(decodeScales(spans, channels, t, format));
  RC_ASSERT(decoded == records);
  RC_ASSERT(!decodeScales(spans, channels + 200, t, format).ok());
}

}  // namespace
}  // namespace carina::npu
