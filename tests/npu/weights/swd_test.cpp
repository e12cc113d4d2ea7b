// SPDX-License-Identifier: Apache-2.0
// The standard weight stream: recorded streams of other encoders, sizes compared with theirs, round trips.
#include "npu/weights/swd.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <random>

#include "npu/weights/weight_vectors.hpp"
#include "support/require.hpp"

namespace carina::npu {
namespace {

using test::byteSpan;
using test::fromHex;
using test::int16FromHex;
using test::weightVectors;

void expectDecodes(const std::vector<uint8_t>& bytes, const std::vector<int16_t>& weights,
                   const std::string& name) {
  const auto decoded = decodeSwd(byteSpan(bytes), weights.size());
  ASSERT_TRUE(decoded.ok()) << name << ": " << decoded.error().message();
  EXPECT_EQ(*decoded, weights) << name;
}

struct Sizes {
  size_t own = 0, theirs = 0;
};
/// Encodes, decodes, and adds up the sizes.
void compare(const std::vector<int16_t>& weights, size_t theirs, const std::string& name, Sizes& sizes) {
  const std::vector<uint8_t> bytes = encodeSwd(weights);
  EXPECT_EQ(bytes.size() % 16, 0u) << name;
  expectDecodes(bytes, weights, name);
  sizes.own += bytes.size();
  sizes.theirs += theirs;
}

TEST(Swd, RecordedStreamsDecodeAndOursAreNoLarger) {
  Sizes sizes;
  for (const auto& v : weightVectors("swd_streams.json")) {
    const std::vector<int16_t> weights = int16FromHex(v["weights_i16le"]);
    const auto vela = fromHex(v["bytes_vela3.11"]), regor = fromHex(v["bytes_regor"]);
    expectDecodes(vela, weights, v["name"]);
    expectDecodes(regor, weights, v["name"]);
    compare(weights, std::min(vela.size(), regor.size()), v["name"], sizes);
  }
  EXPECT_GT(sizes.theirs, 0u);
  EXPECT_LE(sizes.own, sizes.theirs);
}

TEST(Swd, ForcedHeadersDecode) {
  Sizes sizes;
  for (const auto& v : weightVectors("swd_forced.json")) {
    const auto bytes = fromHex(v["bytes"]);
    expectDecodes(bytes, int16FromHex(v["weights_i16le"]), v["name"]);
    compare(int16FromHex(v["weights_i16le"]), bytes.size(), v["name"], sizes);
    const auto slices = require(swdSlices(byteSpan(bytes)));
    size_t n = 0;
    for (const auto& expected : v["slices"]) {
      if (expected.is_string()) continue;  // end of stream
      ASSERT_LT(n, slices.size());
      const SwdSlice& slice = slices[n++];
      EXPECT_EQ(slice.zdiv, expected[0]);
      EXPECT_EQ(slice.weights, expected[1]);
      EXPECT_EQ(slice.wdiv, expected[2]);
      EXPECT_EQ(slice.truncated, expected[3] == 1);
      EXPECT_EQ(slice.newPalette, expected[4] == 1);
      EXPECT_EQ(slice.directOffset, expected[5]);
      EXPECT_EQ(slice.paletteEntries, expected[6]);
    }
    EXPECT_EQ(n, slices.size());
  }
  EXPECT_LE(sizes.own, sizes.theirs);
}

TEST(Swd, TinyStreams) {
  Sizes sizes;
  for (const auto& v : weightVectors("swd_tiny.json")) {
    const std::vector<int16_t> weights = v["weights"];
    const auto bytes = fromHex(v["bytes"]);
    expectDecodes(bytes, weights, v["name"]);
    compare(weights, bytes.size(), v["name"], sizes);
  }
  EXPECT_LE(sizes.own, sizes.theirs);
}

TEST(Swd, EmptyStreamIsAnEndMark) {
  const std::vector<uint8_t> bytes = encodeSwd({});
  EXPECT_EQ(bytes.size(), 16u);
  expectDecodes(bytes, {}, "empty");
}

TEST(Swd, ExtremesAndLongRuns) {
  Sizes sizes;
  compare({255, -255, 0, 255}, 0, "extremes", sizes);
  compare(std::vector<int16_t>(100000, 0), 0, "zeros", sizes);
  std::vector<int16_t> lone(70000, 0);
  lone[35000] = -255;
  compare(lone, 0, "one weight among zeros", sizes);
  compare(std::vector<int16_t>(70000, 17), 0, "constant over the slice limit", sizes);
}

// Many kinds of data: distributions, sparsity, few values, changing statistics.
RC_GTEST_PROP(Swd, RoundTrips, ()) {
  const int segments = *rc::gen::inRange(1, 5);
  std::vector<int16_t> weights;
  for (int s = 0; s < segments; ++s) {
    const int length = *rc::gen::inRange(1, 1500), kind = *rc::gen::inRange(0, 5),
              spread = *rc::gen::inRange(1, 256);
    const int zeros = *rc::gen::inRange(0, 100);
    std::mt19937 random(static_cast<unsigned>(*rc::gen::inRange(0, 1 << 30)));
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    std::vector<int16_t> few(static_cast<size_t>(1 + below(40)));
    for (int16_t& value : few) value = static_cast<int16_t>(below(2 * spread + 1) - spread);
    for (int n = 0; n < length; ++n) {
      int w = 0;
      switch (kind) {
        case 0:
          w = below(2 * spread - 1) - spread + 1;
          break;
        case 1:
          w = few[static_cast<size_t>(below(static_cast<int>(few.size())))];
          break;
        case 2:
          w = below(spread);
          w -= below(spread);
          break;
        case 3:
          w = below(100) < zeros ? 0 : below(2 * spread - 1) - spread + 1;
          break;
        default:
          w = few[0];
          break;
      }
      weights.push_back(static_cast<int16_t>(std::clamp(w, -255, 255)));
    }
  }
  const std::vector<uint8_t> bytes = encodeSwd(weights);
  const auto decoded = require(decodeSwd(byteSpan(bytes), weights.size()));
  RC_ASSERT(decoded == weights);
  const std::vector<uint8_t> quick = encodeSwd(weights, CodingEffort::Low);
  const std::vector<uint8_t> thorough = encodeSwd(weights, CodingEffort::High);
  RC_ASSERT(*decodeSwd(byteSpan(quick), weights.size()) == weights);
  RC_ASSERT(*decodeSwd(byteSpan(thorough), weights.size()) == weights);
  RC_ASSERT(thorough.size() <= bytes.size());
}

RC_GTEST_PROP(Swd, DamagedStreamsAreRefusedOrBounded, ()) {
  std::mt19937 random(static_cast<unsigned>(*rc::gen::inRange(0, 1 << 30)));
  std::vector<int16_t> weights(500);
  for (int16_t& w : weights) w = static_cast<int16_t>(random() % 61) - 30;
  std::vector<uint8_t> bytes = encodeSwd(weights);
  for (int n = 0; n < 4; ++n) bytes[random() % bytes.size()] ^= static_cast<uint8_t>(1u << random() % 8);
  const auto decoded = decodeSwd(byteSpan(bytes), weights.size());
  const bool bounded = !decoded.ok() || decoded->size() <= weights.size();
  RC_ASSERT(bounded);
}

TEST(Swd, ErrorsNameTheBit) {
  const std::vector<uint8_t> illegal = {0x04, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  auto decoded = decodeSwd(byteSpan(illegal), 100);
  ASSERT_FALSE(decoded.ok());
  EXPECT_NE(decoded.error().message().find("bit 0"), std::string::npos);
  const std::vector<uint8_t> cut = {0x06, 0xff, 0x07, 0x40};  // a long slice that stops after its header
  EXPECT_FALSE(decodeSwd(byteSpan(cut), 100000).ok());
  const std::vector<int16_t> weights(100, 3);
  EXPECT_FALSE(decodeSwd(byteSpan(encodeSwd(weights)), 99).ok());
}

TEST(Swd, EffortReducesSize) {
  // Channels with a few values each: the best encoding has a palette for each channel.
  std::mt19937 random(11);
  std::vector<int16_t> weights;
  for (int channel = 0; channel < 12; ++channel) {
    std::array<int16_t, 4> values;
    for (int16_t& value : values) value = static_cast<int16_t>(static_cast<int>(random() % 255) - 127);
    for (int n = 0; n < 300; ++n) weights.push_back(values[random() % values.size()]);
  }
  const size_t low = encodeSwd(weights, CodingEffort::Low).size(), normal = encodeSwd(weights).size(),
               high = encodeSwd(weights, CodingEffort::High).size();
  EXPECT_LT(normal, low);
  EXPECT_LE(high, normal);
}

TEST(Swd, GaussianWeightsCloseToTheirEntropy) {
  // Zero-order entropies of clipped gaussians: 5.05, 6.37, 7.36 bits.
  const struct { double sigma, entropy; } cases[] = {{8, 5.05}, {20, 6.37}, {40, 7.36}};
  for (const auto& c : cases) {
    std::mt19937 random(7);
    std::normal_distribution<double> gaussian(0, c.sigma);
    std::vector<int16_t> weights(65536);
    for (int16_t& w : weights)
      w = static_cast<int16_t>(std::clamp(std::lround(gaussian(random)), -127L, 127L));
    const double bits =
        static_cast<double>(encodeSwd(weights).size()) * 8 / static_cast<double>(weights.size());
    EXPECT_LT(bits, c.entropy * 1.03);
  }
}

TEST(Swd, RunsOfFillersAreCodedSeparately) {
  // 3x3 kernels in the order of U55: of every 96 weights, the last 24 are zero.
  std::mt19937 random(5);
  for (const size_t blocks : {8, 120}) {
    std::vector<int16_t> weights;
    for (size_t n = 0; n < 96 * blocks; ++n) {
      const int value = static_cast<int>(random() % 255) - 127;
      weights.push_back(static_cast<int16_t>(n % 96 < 72 ? value : 0));
    }
    const std::vector<uint8_t> bytes = encodeSwd(weights);
    expectDecodes(bytes, weights, "fillers");
    // One byte per weight; for the fillers of a block, one bit each and two headers.
    EXPECT_LE(bytes.size(), blocks * (72 + 9) + 16);
  }
}

TEST(Swd, DirectValuesSkipAbsentCodes) {
  // Laplacian weights need Golomb-Rice codes of 5 or more bits. With a palette of 0 and 1, -0, which never
  // occurs, needs no index, and some quotients become one less.
  std::mt19937 random(3);
  std::exponential_distribution<double> laplacian(1 / 30.0);
  std::vector<int16_t> weights(65536);
  uint64_t plain = 0;
  for (int16_t& w : weights) {
    const auto magnitude = std::min(std::lround(laplacian(random)), 127L);
    w = static_cast<int16_t>(random() % 2 == 0 ? magnitude : -magnitude);
    plain += static_cast<uint64_t>((2 * magnitude + (w < 0 ? 1 : 0)) / 32 + 6);
  }
  const std::vector<uint8_t> bytes = encodeSwd(weights);
  expectDecodes(bytes, weights, "laplacian");
  EXPECT_LT(static_cast<double>(bytes.size()) * 8, static_cast<double>(plain) * 0.997);
}

}  // namespace
}  // namespace carina::npu
