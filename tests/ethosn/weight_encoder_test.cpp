// SPDX-License-Identifier: Apache-2.0
#include "ethosn/weights/weight_encoder.hpp"

#include <gtest/gtest.h>

#include <random>

#include "ethosn/weights/layer_weights.hpp"
#include "support/require.hpp"

namespace carina::ethosn::test {
namespace {

enum class Data { Random, Sparse, Few, Constant, Zeros, Ternary, Gaussian, Wide };
constexpr Data kData[] = {Data::Random, Data::Sparse,  Data::Few,      Data::Constant,
                          Data::Zeros,  Data::Ternary, Data::Gaussian, Data::Wide};

std::vector<int16_t> makeWeights(Data data, size_t count, std::mt19937& random) {
  std::normal_distribution<double> normal(0, 6);
  std::vector<int16_t> out;
  for (size_t i = 0; i < count; ++i) {
    int value = 0;
    switch (data) {
      case Data::Random:
        value = static_cast<int>(random() % 256) - 128;
        break;
      case Data::Sparse:
        value = random() % 6 == 0 ? static_cast<int>(random() % 40) - 20 : 0;
        break;
      case Data::Few:
        value = std::array{3, -90, 17, 117}[random() % 4];
        break;
      case Data::Constant:
        value = -77;
        break;
      case Data::Zeros:
        break;
      case Data::Ternary:
        value = static_cast<int>(random() % 3) - 1;
        break;
      case Data::Gaussian:
        value = static_cast<int>(normal(random));
        break;
      case Data::Wide:
        value = static_cast<int>(random() % 511) - 255;
        break;
    }
    out.push_back(static_cast<int16_t>(value));
  }
  return out;
}

// Encoded weights decode to the originals. Several channels share a stream, with different kinds of data, so
// that coding parameters both change and persist.
TEST(EthosNWeightEncoder, StreamsDecodeToTheirWeights) {
  std::mt19937 random(5);
  for (const Variant& variant : allVariants()) {
    for (size_t count : {size_t{1}, size_t{9}, size_t{30}, size_t{288}, size_t{4608}}) {
      for (Data first : kData) {
        WeightEncoder encoder(variant.igs());
        std::vector<OfmWeights> ofms;
        for (Data data : {first, first, kData[random() % std::size(kData)], first}) {
          OfmWeights ofm;
          ofm.bias = static_cast<int32_t>(random());
          ofm.scale = ofmScale(random() % 2 == 0 ? 0.0123 : 0.5, 17);
          ofm.weights = makeWeights(data, count, random);
          ASSERT_TRUE(encoder.append(ofm));
          ofms.push_back(ofm);
        }
        OgState state;
        std::vector<uint8_t> padded = encoder.bytes();
        padded.resize((padded.size() + 15) / 16 * 16);
        WeightDecoder decoder(padded, variant.igs(), state);
        for (const OfmWeights& ofm : ofms) {
          const DecodedOfm decoded = require(decoder.next(count));
          EXPECT_EQ(decoded.bias, ofm.bias);
          EXPECT_EQ(decoded.scale, ofm.scale);
          ASSERT_EQ(decoded.weights, ofm.weights)
              << variant.name << " " << count << " " << static_cast<int>(first);
        }
        EXPECT_EQ((decoder.bitOffset() + 7) / 8, encoder.bytes().size());
      }
    }
  }
}

size_t bytesOf(Data data) {
  std::mt19937 random(9);
  WeightEncoder encoder(16);
  EXPECT_TRUE(encoder.append({0, ofmScale(0.5, 0), makeWeights(data, 4608, random)}));
  return encoder.bytes().size();
}

// Near the entropy: 8 bits per random weight, 2 for one of four values, 1 for a constant, log2(3) for one of
// three values.
TEST(EthosNWeightEncoder, SizesAreNearTheEntropy) {
  EXPECT_LT(bytesOf(Data::Random), 4608U * 102 / 100);
  EXPECT_LT(bytesOf(Data::Few), 4608U * 2 / 8 + 40);
  EXPECT_LT(bytesOf(Data::Constant), 4608U / 8 + 40);
  EXPECT_LT(bytesOf(Data::Ternary), 4608U * 17 / 80 + 40);
  EXPECT_LT(bytesOf(Data::Gaussian), 4608U * 5 / 8);
  EXPECT_LT(bytesOf(Data::Sparse), 4608U * 19 / 80);
  EXPECT_LT(bytesOf(Data::Zeros), 600U);
}

TEST(EthosNWeightEncoder, ScalesHaveSixteenBits) {
  EXPECT_EQ(ofmScale(0.125, 3), (OfmScale{32768, 18, 3}));
  EXPECT_EQ(ofmScale(0, 0), (OfmScale{0, 0, 0}));
  EXPECT_EQ(ofmScale(1.0 - 1e-9, 0), (OfmScale{32768, 15, 0}));
  EXPECT_EQ(ofmScale(65535.9, 0), (OfmScale{65535, 0, 0}));
  EXPECT_EQ(ofmScale(40000, -5), (OfmScale{40000, 0, -5}));
}

TEST(EthosNWeightEncoder, TooManyWeightsAreRefused) {
  WeightEncoder encoder(16);
  EXPECT_FALSE(encoder.append({0, {}, std::vector<int16_t>(131072, 5)}));
  EXPECT_TRUE(WeightEncoder(16).append({0, {}, std::vector<int16_t>(131072, 0)}));
}

/// The bytes of one OG of one stripe, extracted from the banks.
std::vector<uint8_t> streamOf(const EncodedWeights& encoded, const Variant& variant, int64_t stripeOffset,
                              int32_t og, int32_t ogs) {
  const auto banks = static_cast<size_t>(variant.banks());
  const size_t length = static_cast<size_t>(encoded.bankBytes) / (static_cast<size_t>(ogs) / banks);
  std::vector<uint8_t> out;
  for (size_t at = 0; at < length; ++at) {
    const size_t inBank = static_cast<size_t>(og) / banks * length + at;
    out.push_back(encoded.bytes[static_cast<size_t>(stripeOffset) + inBank / 16 * 16 * banks +
                                static_cast<size_t>(og) % banks * 16 + inBank % 16]);
  }
  return out;
}

void expectLayerDecodes(LayerWeights layer, const Variant& variant, const WeightSplit& split) {
  std::mt19937 random(3);
  const int32_t perTap =
      layer.operation == MceOperation::Depthwise ? layer.inputs : layer.inputs * layer.outputs;
  layer.weights =
      makeWeights(Data::Gaussian, static_cast<size_t>(layer.height * layer.width * perTap), random);
  for (int32_t i = 0; i < layer.outputs; ++i) {
    layer.biases.push_back(i * 1000 - 7);
    layer.scales.push_back(ofmScale(0.01 + 0.001 * (i % 3), 4));
  }
  const EncodedWeights encoded = require(encodeWeights(layer, variant, split));
  const int32_t ogs = ogsInUse(variant, layer.operation, split.stripeOutputs);
  const int32_t inputs =
      layer.operation == MceOperation::FullyConnected ? (layer.inputs + 1023) / 1024 * 1024 : layer.inputs;
  for (int32_t first = 0, stripe = 0; first < layer.outputs; first += split.stripeOutputs, ++stripe) {
    for (int32_t iteration = 0; iteration < encoded.iterations; ++iteration) {
      for (int32_t og = 0; og < ogs; ++og) {
        OgState state;
        const std::vector<uint8_t> bytes =
            streamOf(encoded, variant, encoded.offset(stripe, iteration), og, ogs);
        WeightDecoder decoder(bytes, variant.igs(), state);
        for (int32_t o = first + og; o < std::min(first + split.stripeOutputs, layer.outputs); o += ogs) {
          const int32_t from = iteration * split.iterationInputs;
          const std::vector<int16_t> expected =
              streamOrder(layer, variant, o, from, std::min(split.iterationInputs, inputs - from));
          const DecodedOfm decoded = require(decoder.next(expected.size()));
          ASSERT_EQ(decoded.weights, expected);
          ASSERT_EQ(decoded.bias, layer.biases[static_cast<size_t>(o)]);
        }
      }
    }
  }
}

TEST(EthosNLayerWeights, EveryStripeDecodes) {
  for (const Variant& variant : allVariants()) {
    const int32_t igs = variant.igs();
    expectLayerDecodes(
        {MceOperation::Convolution, MceAlgorithm::Direct, 3, 3, 40, 70, 1, 1, 1, 1, {}, {}, {}}, variant,
        {32, 40});
    expectLayerDecodes(
        {MceOperation::Convolution, MceAlgorithm::Direct, 3, 3, 70, 20, 1, 1, 1, 1, {}, {}, {}}, variant,
        {32, 2 * igs});
    expectLayerDecodes(
        {MceOperation::Convolution, MceAlgorithm::Direct, 3, 3, 20, 20, 2, 2, 0, 0, {}, {}, {}}, variant,
        {32, 20});
    expectLayerDecodes(
        {MceOperation::Convolution, MceAlgorithm::Direct, 9, 9, 20, 20, 1, 1, 4, 4, {}, {}, {}}, variant,
        {32, 20});
    expectLayerDecodes(
        {MceOperation::Convolution, MceAlgorithm::Winograd, 3, 3, 20, 20, 1, 1, 1, 1, {}, {}, {}}, variant,
        {32, 20});
    expectLayerDecodes({MceOperation::Depthwise, MceAlgorithm::Direct, 3, 3, 40, 40, 2, 2, 1, 1, {}, {}, {}},
                       variant, {16, 40});
    expectLayerDecodes(
        {MceOperation::FullyConnected, MceAlgorithm::Direct, 1, 1, 1500, 33, 1, 1, 0, 0, {}, {}, {}}, variant,
        {32, 1024});
  }
}

TEST(EthosNLayerWeights, StridedFiltersSplitIntoSubFilters) {
  LayerWeights layer;
  layer.height = layer.width = 3;
  layer.strideY = layer.strideX = 2;
  layer.padTop = 1;
  const std::vector<SubFilter> subs = subFilters(layer);
  ASSERT_EQ(subs.size(), 4U);
  EXPECT_EQ(subs[0].offsetY, 1);  // padding of one row: the first sub-map aligns with the filter's second row
  EXPECT_EQ(subs[0].height, 1);
  EXPECT_EQ(subs[0].width, 2);
  EXPECT_EQ(subs[3].offsetY, 0);
  EXPECT_EQ(subs[3].height, 2);
  EXPECT_EQ(subs[3].width, 1);
}

TEST(EthosNLayerWeights, LargeFiltersSplitIntoPieces) {
  EXPECT_EQ(filterPieces(7, 7, MceAlgorithm::Direct).size(), 1U);
  EXPECT_EQ(filterPieces(9, 9, MceAlgorithm::Direct).size(), 9U);
  EXPECT_EQ(filterPieces(9, 1, MceAlgorithm::Direct).size(), 3U);
  EXPECT_EQ(filterPieces(3, 3, MceAlgorithm::Winograd).size(), 1U);
  EXPECT_EQ(filterPieces(5, 5, MceAlgorithm::Winograd).size(), 4U);
}

}  // namespace
}  // namespace carina::ethosn::test
