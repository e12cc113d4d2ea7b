// SPDX-License-Identifier: Apache-2.0
// Masks in front of a softmax, as networks write them: the decomposed graph computes the same, everything
// runs on the NPU, and eight-bit scores keep their resolution.
#include <gtest/gtest.h>

#include <limits>

#include "aten/executor.hpp"
#include "aten/ops.hpp"
#include "decompose/decompose.hpp"
#include "fake_quant.hpp"
#include "quantize/sqnr.hpp"

namespace carina::lower::test {
namespace {

using ir::Ints;
using ir::Value;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int64_t kLength = 12, kHeads = 2;

struct Network {
  ir::Graph graph;
  ir::Builder b{graph};
  std::vector<Tensor> inputs;

  Value* input(Tensor tensor) {
    Value* value = graph.addInput({tensor.dtype(), tensor.shape()}, "x" + std::to_string(inputs.size()));
    inputs.push_back(std::move(tensor));
    return value;
  }
  /// Scores as trained attention has them: some units wide.
  Value* scores() { return input(randomFloats({1, kHeads, kLength, kLength}, 3, 3.0f)); }
  Value* rows(uint32_t seed) { return input(randomFloats({1, kHeads, kLength, 8}, seed, 2.0f)); }
  Value* real(float x) { return b.constant(Tensor::scalar(x)); }
  Value* softmax(Value* x) { return aten::SoftmaxInt::create(b, x, int64_t{-1}, std::nullopt).output(); }
  Value* add(Value* x, Value* y) { return aten::AddTensor::create(b, x, y, int64_t{1}).output(); }
  /// `value` above the diagonal, else 0; or true and false.
  Value* future(float value) {
    Tensor mask = Tensor::zeros(DType::Float32, {kLength, kLength});
    for (int64_t i = 0; i < kLength; ++i) {
      for (int64_t j = i + 1; j < kLength; ++j)
        mask.mutableAs<float>()[static_cast<size_t>(i * kLength + j)] = value;
    }
    return b.constant(std::move(mask));
  }
  Value* isFuture() { return b.constant(convert(future(1)->constant(), DType::Bool)); }
  /// The last three keys are padding.
  Tensor padding(DType type, float value) {
    Tensor mask = Tensor::zeros(DType::Float32, {1, 1, 1, kLength});
    for (size_t j = kLength - 3; j < kLength; ++j) mask.mutableAs<float>()[j] = value;
    return convert(mask, type);
  }
  Value* attention(Value* mask, bool causal = false) {
    Value *q = rows(5), *k = rows(6), *v = rows(7);
    return aten::ScaledDotProductAttention::create(b, q, k, v, mask, 0.0, causal, std::nullopt, false)
        .output();
  }
};

struct Case {
  const char* name;
  std::function<Value*(Network&)> build;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

const Case kCases[] = {
    {"add_infinities", [](Network& n) { return n.softmax(n.add(n.scores(), n.future(-kInfinity))); }},
    {"add_hundreds_and_a_bias",
     [](Network& n) {
       Tensor mask = n.future(-100)->constant();
       mask.mutableAs<float>()[kLength] = 1.5f;
       return n.softmax(n.add(n.b.constant(mask), n.scores()));
     }},
    {"add_through_views",  // windows, as in Swin
     [](Network& n) {
       Value* windows = aten::View::create(n.b, n.scores(), Ints{1, 1, kHeads, kLength, kLength}).output();
       Value* sum = n.add(windows, n.future(-100));
       return n.softmax(aten::View::create(n.b, sum, Ints{kHeads, kLength, kLength}).output());
     }},
    {"masked_fill",
     [](Network& n) {
       return n.softmax(aten::MaskedFillScalar::create(n.b, n.scores(), n.isFuture(), -1e9).output());
     }},
    {"where_decomposed",
     [](Network& n) {
       return n.softmax(aten::WhereSelf::create(n.b, n.isFuture(), n.real(-kInfinity), n.scores()).output());
     }},
    {"where_computed",  // graphs: an edge or not
     [](Network& n) {
       Value* edges = n.input(convert(n.isFuture()->constant(), DType::Float32));
       Value* none = aten::LeScalar::create(n.b, edges, 0.5).output();
       return n.softmax(aten::WhereSelf::create(n.b, none, n.scores(), n.real(-9e15f)).output());
     }},
    {"filled_zeros_expanded",  // key_padding_mask of nn.MultiheadAttention
     [](Network& n) {
       Value* pad = n.input(n.padding(DType::Bool, 1));
       Value* zeros = n.b.constant(Tensor::zeros(DType::Float32, {1, 1, 1, kLength}));
       Value* mask =
           aten::MaskedFillScalar::create(n.b, zeros, pad, -static_cast<double>(kInfinity)).output();
       Value* wide = aten::Expand::create(n.b, mask, Ints{1, kHeads, 1, kLength}, false).output();
       return n.softmax(n.add(n.scores(), wide));
     }},
    {"one_less_keep",  // (1 - keep) * -10000
     [](Network& n) {
       Value* keep = n.input(n.padding(DType::Float32, 1));
       Value* hide = aten::RsubScalar::create(n.b, keep, 1.0, int64_t{1}).output();
       return n.softmax(n.add(n.scores(), aten::MulScalar::create(n.b, hide, -10000.0).output()));
     }},
    {"attention_causal", [](Network& n) { return n.attention(nullptr, true); }},
    {"attention_bool_constant",
     [](Network& n) { return n.attention(aten::LogicalNot::create(n.b, n.isFuture()).output()); }},
    {"attention_bool_input",
     [](Network& n) {
       return n.attention(aten::LogicalNot::create(n.b, n.input(n.padding(DType::Bool, 1))).output());
     }},
    {"attention_float_input",
     [](Network& n) { return n.attention(n.input(n.padding(DType::Float32, -kInfinity))); }},
    {"add_input",  // a mask that is made elsewhere, without scaled_dot_product_attention
     [](Network& n) {
       Value* mask = n.input(n.padding(DType::Float32, -1e9f));
       Value* scores =
           aten::Matmul::create(n.b, n.rows(5), n.input(randomFloats({1, kHeads, 8, kLength}, 8, 2.0f)))
               .output();
       return n.softmax(n.add(scores, mask));
     }},
    {"add_input_through_views",
     [](Network& n) {
       Value* mask = n.input(Tensor(n.padding(DType::Float32, -kInfinity)));
       Value* flat = aten::View::create(n.b, mask, Ints{1, kLength}).output();
       Value* wide = aten::Unsqueeze::create(n.b, flat, int64_t{0}).output();
       Value* scores =
           aten::Matmul::create(n.b, n.rows(5), n.input(randomFloats({1, kHeads, 8, kLength}, 8, 2.0f)))
               .output();
       return n.softmax(n.add(wide, scores));
     }},
    {"attention_safe",  // what run_decompositions() leaves
     [](Network& n) {
       Value* scores = n.add(n.scores(), n.future(-kInfinity));
       Value* weights = aten::PrivateSoftmax::create(n.b, scores, int64_t{-1}, false).output();
       Value* hidden = aten::EqScalar::create(n.b, scores, -static_cast<double>(kInfinity)).output();
       Value* any =
           aten::AnyDim::create(n.b, aten::LogicalNot::create(n.b, hidden).output(), int64_t{-1}, true)
               .output();
       Value* zeros = aten::FullLike::create(n.b, weights, int64_t{0}, std::nullopt, std::nullopt,
                                             std::nullopt, std::nullopt, std::nullopt)
                          .output();
       return aten::WhereSelf::create(n.b, aten::LogicalNot::create(n.b, any).output(), zeros, weights)
           .output();
     }},
};

class Mask : public testing::TestWithParam<Case> {};

TEST_P(Mask, KeepsTheFunction) {
  Network n;
  n.graph.setOutputs({GetParam().build(n)});
  const auto before = aten::execute(n.graph, n.inputs);
  ASSERT_TRUE(before.ok()) << before.error().str();
  ASSERT_TRUE(decompose::forNpu(n.graph).ok());
  const auto after = aten::execute(n.graph, n.inputs);
  ASSERT_TRUE(after.ok()) << after.error().str();
  for (int64_t i = 0; i < (*before)[0].numElements(); ++i)
    ASSERT_NEAR((*before)[0].realAt(i), (*after)[0].realAt(i), 1e-5) << i;
}

TEST_P(Mask, LeavesEightBitScoresTheirRange) {
  Network n;
  n.graph.setOutputs({GetParam().build(n)});
  const auto real = aten::execute(n.graph, n.inputs);
  ASSERT_TRUE(real.ok()) << real.error().str();
  ASSERT_TRUE(decompose::forNpu(n.graph).ok());
  const std::vector<quantize::Sample> samples{n.inputs};
  auto quantized = quantize::quantize(std::move(n.graph), {}, samples);
  ASSERT_TRUE(quantized.ok()) << quantized.error().str();
  const auto simulated = aten::execute(quantized->graph, n.inputs);
  ASSERT_TRUE(simulated.ok()) << simulated.error().str();
  quantize::Sqnr sqnr;
  sqnr.add((*real)[0], (*simulated)[0]);
  EXPECT_GT(sqnr.decibels(), 20.0);

  auto partitioned = partition::partition(std::move(quantized->graph), {});
  ASSERT_TRUE(partitioned.ok()) << partitioned.error().str();
  std::string why;
  for (const auto& refusal : partitioned->refusals) why += refusal.op + ": " + refusal.reason + "\n";
  EXPECT_TRUE(why.empty()) << why;
  const auto comparison = compareDelegates(*partitioned);
  ASSERT_TRUE(comparison.ok()) << comparison.error().str();
  EXPECT_LE(comparison->largest, 1);
}

INSTANTIATE_TEST_SUITE_P(Softmax, Mask, testing::ValuesIn(kCases),
                         [](const auto& param) { return std::string(param.param.name); });

TEST(Mask, RowsWithoutAnyScoreGiveZero) {
  Network n;
  Tensor mask = Tensor::zeros(DType::Bool, {kLength, kLength});  // nothing may be seen
  n.graph.setOutputs({n.attention(n.b.constant(std::move(mask)))});
  ASSERT_TRUE(decompose::forNpu(n.graph).ok());
  const auto result = aten::execute(n.graph, n.inputs);
  ASSERT_TRUE(result.ok()) << result.error().str();
  for (const float x : (*result)[0].as<float>()) ASSERT_EQ(x, 0.0f);
}

TEST(Mask, ScoresThatAreOnlyAddedStay) {
  Network n;
  n.graph.setOutputs({n.add(n.scores(), n.future(-50))});
  ASSERT_TRUE(decompose::forNpu(n.graph).ok());
  EXPECT_EQ(n.graph.numNodes(), 1u);
}

}  // namespace
}  // namespace carina::lower::test
