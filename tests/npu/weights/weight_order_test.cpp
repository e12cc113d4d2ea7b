// SPDX-License-Identifier: Apache-2.0
// Weight order, fast streams, and both combined with the codec, compared with recorded orders of all
// accelerators.
#include "npu/weights/weight_order.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>
#include <random>

#include "npu/weights/fwd.hpp"
#include "npu/weights/swd.hpp"
#include "npu/weights/weight_codec.hpp"
#include "npu/weights/weight_vectors.hpp"
#include "support/require.hpp"

namespace carina::npu {
namespace {

using nlohmann::json;
using test::byteSpan;
using test::fromHex;
using test::int16FromHex;
using test::weightVectors;

struct Case {
  WeightOrder order;
  WeightShape shape;
  DepthSlice slice;
  bool fast = false;
  std::vector<uint8_t> data;

  WeightView view() const {
    return order.traversal == WeightTraversal::Depthwise ? WeightView::hwc(data.data(), DType::Int8, shape)
                                                         : WeightView::ohwi(data.data(), DType::Int8, shape);
  }
  WeightShape sliceShape() const {
    WeightShape part = shape;
    part.ofmDepth = slice.depth;
    return part;
  }
  /// The slice's weights as a dense volume.
  std::vector<int16_t> volume() const {
    std::vector<int16_t> out;
    const auto at = [&](int64_t n) {
      return static_cast<int16_t>(static_cast<int8_t>(data[static_cast<size_t>(n)]));
    };
    if (order.traversal == WeightTraversal::Depthwise) {
      for (int64_t tap = 0; tap < int64_t{shape.height} * shape.width; ++tap) {
        for (int32_t c = 0; c < slice.depth; ++c) out.push_back(at(tap * shape.ofmDepth + slice.offset + c));
      }
    } else {
      const int64_t perChannel = int64_t{shape.height} * shape.width * shape.ifmDepth;
      for (int64_t n = 0; n < perChannel * slice.depth; ++n) out.push_back(at(perChannel * slice.offset + n));
    }
    return out;
  }
};

Case readCase(const json& v, bool u85) {
  Case c;
  const std::vector<int32_t> ohwi = v["ohwi"];
  const std::string traversal = v["traversal"];
  c.order.ethosU85 = u85;
  c.order.traversal = traversal == "dw"     ? WeightTraversal::Depthwise
                      : traversal == "part" ? WeightTraversal::PartKernelFirst
                                            : WeightTraversal::DepthFirst;
  c.shape = traversal == "dw" ? WeightShape{ohwi[3], ohwi[1], ohwi[2], 1}
                              : WeightShape{ohwi[0], ohwi[1], ohwi[2], ohwi[3]};
  c.order.streams = v[u85 ? "streams_in_hw" : "cores"];
  c.order.ofmUblockDepth = v["ofm_ublock_depth"];
  c.order.ofmBlockDepth = v["ofm_block_depth"];
  c.order.ifmBits = v["ifm_bits"];
  c.order.dilationX = v["dilation_xy"][0];
  c.order.dilationY = v["dilation_xy"][1];
  if (u85) {
    c.order.macs = v["macs"];
    c.order.strideX = v["stride_xy"][0];
    c.order.strideY = v["stride_xy"][1];
    c.order.sparse = v["sparse_2_4"] != 0;
    c.fast = v["fwd"] != 0;
    if (c.order.traversal == WeightTraversal::DepthFirst) {
      EXPECT_EQ(ifmBlockDepth(c.order), v["ifm_block_depth"].get<int32_t>());
    }
  }
  c.data = fromHex(v["weights_i8"]);
  c.slice = {v["depth_offset"], v["depth_length"]};
  return c;
}

void checkRecorded(const char* file, bool u85) {
  size_t own = 0, theirs = 0;
  for (const json& v : weightVectors(file)) {
    SCOPED_TRACE(v["name"].get<std::string>());
    const Case c = readCase(v, u85);
    if (c.order.sparse) {
      EXPECT_TRUE(checkSparseWeights(c.view(), c.order, c.slice).ok());
    }
    std::vector<std::vector<uint8_t>> recorded;
    for (const json& stream : v["streams"]) {
      recorded.push_back(fromHex(stream[u85 ? "bytes" : "bytes_regor"]));
      if (c.fast) continue;
      const auto ordered = require(orderWeights(c.view(), c.order, c.slice, stream[u85 ? "stream" : "core"]));
      ASSERT_EQ(ordered.size(), stream["n"].get<size_t>());
      if (stream.contains("expected_i16le")) {
        EXPECT_EQ(ordered, int16FromHex(stream["expected_i16le"]));
      }
      const auto decoded = require(decodeSwd(byteSpan(recorded.back()), ordered.size()));
      EXPECT_EQ(decoded, ordered);
      theirs += recorded.back().size();
    }
    const WeightEncoding encoding = c.fast ? WeightEncoding::Fast : WeightEncoding::Standard;
    const auto encoded = require(encodeWeights(c.view(), c.order, c.slice, encoding));
    if (!c.fast) own += static_cast<size_t>(encoded.bytes());
    for (const std::vector<std::vector<uint8_t>>* streams : {&std::as_const(recorded), &encoded.streams}) {
      std::vector<ByteSpan> spans;
      for (const auto& stream : *streams) spans.push_back(byteSpan(stream));
      const auto restored = require(decodeWeights(spans, c.sliceShape(), c.order, encoding));
      EXPECT_EQ(restored, c.volume());
    }
  }
  EXPECT_GT(theirs, 0u);
  EXPECT_LE(own, theirs);
}

TEST(WeightOrder, RecordedOrdersOfU55AndU65) {
  checkRecorded("reorder_u55_u65.json", false);
}
TEST(WeightOrder, RecordedOrdersOfU85) {
  checkRecorded("reorder_u85.json", true);
}

TEST(FastWeights, RecordedStreams) {
  for (const json& v : weightVectors("fwd.json")) {
    const std::vector<int16_t> weights = int16FromHex(v["weights_i16le"]);
    const auto decoded = require(decodeFwd(byteSpan(fromHex(v["bytes"])), weights.size()));
    EXPECT_EQ(decoded, weights) << v["name"];
    const auto encoded = require(encodeFwd(weights));
    EXPECT_LE(encoded.size(), fromHex(v["bytes"]).size());
    const auto again = require(decodeFwd(byteSpan(encoded), weights.size()));
    EXPECT_EQ(again, weights);
  }
}

TEST(FastWeights, RefusesWideRanges) {
  const std::vector<int16_t> wide = {-200, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 200};
  EXPECT_FALSE(encodeFwd(wide).ok());
  const std::vector<uint8_t> small(32, 0);
  EXPECT_FALSE(decodeFwd(byteSpan(small), 1).ok());
}

WeightOrder arbitraryOrder(WeightShape& shape) {
  WeightOrder order;
  order.ethosU85 = *rc::gen::arbitrary<bool>();
  order.traversal = static_cast<WeightTraversal>(*rc::gen::inRange(0, 3));
  order.ifmBits = *rc::gen::element(8, 16);
  order.dilationX = *rc::gen::inRange(1, 3);
  order.dilationY = *rc::gen::inRange(1, 3);
  order.strideX = *rc::gen::inRange(1, 4);
  order.strideY = *rc::gen::inRange(1, 4);
  if (order.ethosU85) {
    const struct {
      int macs, streams, ublock;
    } variants[] = {{128, 1, 8},   {128, 1, 16},  {256, 1, 8},   {256, 1, 16}, {512, 2, 16},
                    {1024, 4, 16}, {1024, 4, 32}, {2048, 4, 16}, {2048, 4, 64}};
    const auto& variant = variants[*rc::gen::inRange(0, 9)];
    order.macs = variant.macs;
    order.streams = variant.streams;
    order.ofmUblockDepth = variant.ublock;
    order.ofmBlockDepth = variant.ublock * *rc::gen::inRange(1, 4);
  } else {
    order.streams = *rc::gen::inRange(1, 3);
    order.ofmUblockDepth = order.streams == 2 ? 8 : *rc::gen::element(4, 8);
    order.ofmBlockDepth = 16 * *rc::gen::inRange(1, 4);
  }
  shape = {*rc::gen::inRange(1, 70), *rc::gen::inRange(1, 11), *rc::gen::inRange(1, 11),
           *rc::gen::inRange(1, 80)};
  if (order.traversal == WeightTraversal::Depthwise) shape.ifmDepth = 1;
  return order;
}

// For any order and any layout of the view, every weight is restored and counts match the emitted weights.
RC_GTEST_PROP(WeightOrder, RestoresEveryWeight, ()) {
  WeightShape shape;
  const WeightOrder order = arbitraryOrder(shape);
  RC_PRE(shape.elements() < 60000);
  std::mt19937 random(static_cast<unsigned>(*rc::gen::inRange(0, 1 << 30)));
  std::vector<int8_t> data(static_cast<size_t>(shape.elements()));
  for (int8_t& w : data) w = static_cast<int8_t>(random());
  const bool depthwise = order.traversal == WeightTraversal::Depthwise;
  const int32_t zeroPoint = *rc::gen::inRange(-100, 100);
  const std::vector<int32_t> zeroPoints = {zeroPoint};
  const WeightView view = depthwise ? WeightView::hwc(data.data(), DType::Int8, shape, zeroPoints)
                                    : WeightView::ohwi(data.data(), DType::Int8, shape, zeroPoints);
  std::vector<std::vector<int16_t>> streams;
  for (int s = 0; s < activeStreams(shape, order); ++s) {
    const auto ordered = require(orderWeights(view, order, {0, shape.ofmDepth}, s));
    RC_ASSERT(static_cast<int64_t>(ordered.size()) == streamWeightCount(shape, order, s));
    streams.push_back(ordered);
  }
  const auto restored = require(restoreWeights(streams, shape, order));
  for (size_t n = 0; n < data.size(); ++n) RC_ASSERT(restored[n] == data[n] - zeroPoint);
}

// A depth slice equals the whole of a smaller operator.
RC_GTEST_PROP(WeightOrder, SlicesAreOperators, ()) {
  WeightShape shape;
  const WeightOrder order = arbitraryOrder(shape);
  RC_PRE(shape.elements() < 30000);
  RC_PRE(order.traversal != WeightTraversal::Depthwise);
  std::vector<int8_t> data(static_cast<size_t>(shape.elements()));
  std::mt19937 random(static_cast<unsigned>(*rc::gen::inRange(0, 1 << 30)));
  for (int8_t& w : data) w = static_cast<int8_t>(random());
  const int32_t offset = *rc::gen::inRange(0, shape.ofmDepth);
  WeightShape part = shape;
  part.ofmDepth = shape.ofmDepth - offset;
  const int64_t perChannel = shape.elements() / shape.ofmDepth;
  const auto a = require(
      orderWeights(WeightView::ohwi(data.data(), DType::Int8, shape), order, {offset, part.ofmDepth}, 0));
  const auto b = require(orderWeights(WeightView::ohwi(data.data() + offset * perChannel, DType::Int8, part),
                                      order, {0, part.ofmDepth}, 0));
  RC_ASSERT(a == b);
}

TEST(WeightOrder, FlippedViewTurnsTheKernel) {
  std::vector<int8_t> data(2 * 3 * 3 * 5), flipped(data.size());
  std::iota(data.begin(), data.end(), int8_t{-40});
  const WeightShape shape{2, 3, 3, 5};
  for (size_t o = 0; o < 2; ++o) {
    for (size_t tap = 0; tap < 9; ++tap) {
      for (size_t i = 0; i < 5; ++i) flipped[(o * 9 + tap) * 5 + i] = data[(o * 9 + 8 - tap) * 5 + i];
    }
  }
  WeightView turned = WeightView::ohwi(data.data() + 8 * 5, DType::Int8, shape);
  turned.strideY = -turned.strideY;
  turned.strideX = -turned.strideX;
  const WeightOrder order;
  EXPECT_EQ(require(orderWeights(turned, order, {0, 2}, 0)),
            require(orderWeights(WeightView::ohwi(flipped.data(), DType::Int8, shape), order, {0, 2}, 0)));
}

TEST(WeightOrder, PerChannelZeroPoints) {
  const std::vector<uint8_t> data = {10, 20, 30, 40};
  const std::vector<int32_t> zeroPoints = {1, 5};
  const auto ordered = require(orderWeights(
      WeightView::ohwi(data.data(), DType::UInt8, {2, 1, 1, 2}, zeroPoints), WeightOrder{}, {0, 2}, 0));
  EXPECT_EQ(ordered[0], 9);
  EXPECT_EQ(ordered[1], 19);
  EXPECT_EQ(ordered[8], 25);
  EXPECT_EQ(ordered[9], 35);
}

TEST(WeightOrder, RefusesWhatHardwareCannotDo) {
  const std::vector<int16_t> wide = {300};
  EXPECT_FALSE(
      orderWeights(WeightView::ohwi(wide.data(), DType::Int16, {1, 1, 1, 1}), WeightOrder{}, {0, 1}, 0).ok());
  WeightOrder order;
  order.dilationX = 3;
  EXPECT_FALSE(checkWeightOrder({1, 1, 1, 1}, order).ok());
  order = {};
  order.sparse = true;
  EXPECT_FALSE(checkWeightOrder({1, 1, 1, 1}, order).ok());
  EXPECT_FALSE(checkWeightOrder({65536, 65536, 65536, 65536}, WeightOrder{}).ok());
  const std::vector<int8_t> dense(16 * 16, 1);
  order = {};
  order.ethosU85 = true;
  EXPECT_FALSE(
      checkSparseWeights(WeightView::ohwi(dense.data(), DType::Int8, {16, 1, 1, 16}), order, {0, 16}).ok());
}

TEST(WeightOrder, ChoosesTheTraversalThatPadsLess) {
  EXPECT_EQ(preferredTraversal({16, 10, 4, 1}, **findTarget("ethos-u55-128"), 8),
            WeightTraversal::PartKernelFirst);
  EXPECT_EQ(preferredTraversal({48, 1, 1, 276}, **findTarget("ethos-u55-128"), 8),
            WeightTraversal::DepthFirst);
  EXPECT_EQ(preferredTraversal({16, 3, 3, 3}, **findTarget("ethos-u85-256"), 8),
            WeightTraversal::PartKernelFirst);
  EXPECT_EQ(preferredTraversal({64, 1, 1, 128}, **findTarget("ethos-u85-256"), 8),
            WeightTraversal::DepthFirst);
}

}  // namespace
}  // namespace carina::npu
