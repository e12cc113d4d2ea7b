// SPDX-License-Identifier: Apache-2.0
// A token that is much smaller than the others of its sequence has 16-bit codes up to the norm that magnifies
// it, if the network's result depends on it.
#include "quantize/fine_sums.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "small_network.hpp"
#include "support/require.hpp"

namespace carina::quantize {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::FloatNear;

constexpr DType k8Bits = DType::Int8, k16Bits = DType::Int16;

/// layer_norm(cat(token, patches) + positions)[row], or its mean over all rows for a row of -1. The token is
/// a hundredth of the patches.
Network tokenNetwork(int64_t row) {
  Network n;
  Value* token = n.input({1, 1, 16});
  Value* patches = n.input({1, 8, 16});
  Value* sequence = n.make<aten::Cat>(std::vector<Value*>{token, patches}, int64_t{1});
  Value* sum = n.make<aten::AddTensor>(sequence, n.constant({1, 9, 16}, -0.01f, 0.01f), int64_t{1});
  Value* norm = n.make<aten::LayerNorm>(sum, nullptr, nullptr, Ints{16}, 1e-5, false);
  n.done(row < 0 ? n.make<aten::MeanDim>(norm, Ints{1}, false) : n.make<aten::SelectInt>(norm, 1, row));
  return n;
}

const Sample kTokens = {ramp({1, 1, 16}, -0.02f, 0.03f), ramp({1, 8, 16}, -2, 3)};

/// The types of the codes that are computed for these operators, in order.
std::vector<DType> typesOf(const ir::Graph& graph, std::initializer_list<const ir::OpDef*> ops) {
  std::vector<DType> types;
  for (const aten::QuantizePerTensor& codes : quantizes(graph)) {
    const ir::Node* node = codes.input()->producer();
    if (node && std::any_of(ops.begin(), ops.end(), [&](const ir::OpDef* op) { return node->is(*op); }))
      types.push_back(codes.dtype());
  }
  return types;
}

std::vector<DType> typesWithToken(int64_t row, const Options& options = {}) {
  const Quantized quantized =
      require(quantize(std::move(tokenNetwork(row).graph), options, std::array{kTokens}));
  return typesOf(quantized.graph, {&aten::Cat::def(), &aten::AddTensor::def(), &aten::LayerNorm::def()});
}

TEST(FineSums, OfARowThatIsTheResultHave16Bits) {
  EXPECT_THAT(typesWithToken(0), ElementsAre(k16Bits, k16Bits, k16Bits));
}

TEST(FineSums, OfARowOnWhichNoResultDependsHave8Bits) {
  EXPECT_THAT(typesWithToken(3), Each(k8Bits));
}

TEST(FineSums, AreLeftToRulesThatNameThem) {
  Options options;
  Rule& rule = options.rules.emplace_back();
  rule.pattern = "*";
  rule.overrides.precision = Precision::Int8;
  EXPECT_THAT(typesWithToken(0, options), Each(k8Bits));
}

TEST(FineSums, DoNotIncludeLayers) {
  // 16-bit codes of the norm would not make the layer's own codes finer.
  Network n;
  Value* x = n.input({1, 9, 16});
  Value* layer = n.make<aten::Linear>(x, n.constant({16, 16}, -1, 1), nullptr);
  Value* norm = n.make<aten::LayerNorm>(layer, nullptr, nullptr, Ints{16}, 1e-5, false);
  n.done(n.make<aten::SelectInt>(norm, 1, 0));
  Tensor rows = ramp({1, 9, 16}, -2, 3);
  for (float& first : rows.mutableAs<float>().first(16)) first *= 0.01f;
  const Quantized quantized = require(quantize(std::move(n.graph), {}, std::array{Sample{rows}}));
  EXPECT_THAT(typesOf(quantized.graph, {&aten::Linear::def(), &aten::LayerNorm::def()}), Each(k8Bits));
}

TEST(FineSums, OfADeepStreamHave16Bits) {
  // One sum leaves most rows 25 dB, thirty of them 10.
  Network n;
  n.in("stream", "");
  Value* sum = n.make<aten::AddTensor>(n.input({1, 4, 16}), n.input({1, 4, 16}), int64_t{1});
  Sample values = {ramp({1, 4, 16}, -1, 1), ramp({1, 4, 16}, -1, 1)};
  values[1].mutableAs<float>()[5] = 50;
  for (int i = 0; i < 30; ++i) {
    sum = n.make<aten::AddTensor>(sum, n.input({1, 4, 16}), int64_t{1});
    Tensor& added = values.emplace_back(ramp({1, 4, 16}, -0.2f, 0.2f));
    const auto elements = added.mutableAs<float>();
    std::rotate(elements.begin(), elements.begin() + i, elements.end());
  }
  n.done(n.make<aten::LayerNorm>(sum, nullptr, nullptr, Ints{16}, 1e-5, false));
  const Quantized quantized = require(quantize(std::move(n.graph), {}, std::array{values}));
  EXPECT_THAT(typesOf(quantized.graph, {&aten::AddTensor::def()}), Each(k16Bits));
  EXPECT_THAT(quantized.report.fineSums, ElementsAre("stream"));
}

TEST(NormRows, HaveTheLargestPowerOfAllSamples) {
  NormRows all{2, true, 0, {}}, mean{2, false, 0, {}};
  for (NormRows* rows : {&all, &mean}) {
    for (const std::vector<float>& sample : {std::vector<float>{1, 3, 5, 5}, {0, 0, 2, 8}}) {
      NormRows one{rows->length, rows->centred, 0, {}};
      one.add(sample);
      rows->add(one);
    }
  }
  EXPECT_THAT(all.power, ElementsAre(FloatNear(1, 1e-6f), FloatNear(9, 1e-6f)));
  EXPECT_THAT(mean.power, ElementsAre(FloatNear(5, 1e-6f), FloatNear(34, 1e-6f)));
}

}  // namespace
}  // namespace carina::quantize
