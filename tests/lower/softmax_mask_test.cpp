// SPDX-License-Identifier: Apache-2.0
// Masks before a softmax, as networks write them: the decomposed graph computes the same, everything runs on
// the NPU, and eight-bit scores keep their resolution.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "aten/executor.hpp"
#include "aten/ops.hpp"
#include "decompose/decompose.hpp"
#include "fake_quant.hpp"
#include "quantize/sqnr.hpp"
#include "support/graph_maker.hpp"
#include "support/require.hpp"

namespace carina::lower::test {
namespace {

using ir::Ints;
using ir::Value;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int64_t kLength = 12, kHeads = 2;

struct MaskNetwork : carina::test::GraphMaker {
  std::vector<Tensor> inputs;

  Value* input(Tensor tensor) {
    Value* value = graph.addInput({tensor.dtype(), tensor.shape()}, "x" + std::to_string(inputs.size()));
    inputs.push_back(std::move(tensor));
    return value;
  }
  /// Scores with a range of a few units, as in trained attention.
  Value* scores() { return input(randomFloats({1, kHeads, kLength, kLength}, 3, 3.0f)); }
  Value* rows(uint32_t seed) { return input(randomFloats({1, kHeads, kLength, 8}, seed, 2.0f)); }
  Value* real(float x) { return b.constant(Tensor::scalar(x)); }
  Value* softmax(Value* x) { return make<aten::SoftmaxInt>(x, int64_t{-1}, std::nullopt); }
  Value* add(Value* x, Value* y) { return make<aten::AddTensor>(x, y, int64_t{1}); }
  /// `value` above the diagonal, else 0. isFuture(): true and false instead.
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
    return make<aten::ScaledDotProductAttention>(q, k, v, mask, 0.0, causal, std::nullopt, false);
  }
};

struct MaskCase {
  const char* name;
  std::function<Value*(MaskNetwork&)> build;
};
void PrintTo(const MaskCase& c, std::ostream* out) {
  *out << c.name;
}

const MaskCase kMaskCases[] = {
    {"add_infinities", [](MaskNetwork& n) { return n.softmax(n.add(n.scores(), n.future(-kInfinity))); }},
    {"add_hundreds_and_a_bias",
     [](MaskNetwork& n) {
       Tensor mask = n.future(-100)->constant();
       mask.mutableAs<float>()[kLength] = 1.5f;
       return n.softmax(n.add(n.b.constant(mask), n.scores()));
     }},
    {"add_through_views",  // windows, as in Swin
     [](MaskNetwork& n) {
       Value* windows = n.make<aten::View>(n.scores(), Ints{1, 1, kHeads, kLength, kLength});
       Value* sum = n.add(windows, n.future(-100));
       return n.softmax(n.make<aten::View>(sum, Ints{kHeads, kLength, kLength}));
     }},
    {"masked_fill",
     [](MaskNetwork& n) {
       return n.softmax(n.make<aten::MaskedFillScalar>(n.scores(), n.isFuture(), -1e9));
     }},
    {"where_decomposed",
     [](MaskNetwork& n) {
       return n.softmax(n.make<aten::WhereSelf>(n.isFuture(), n.real(-kInfinity), n.scores()));
     }},
    {"where_computed",  // graph attention: edge or no edge
     [](MaskNetwork& n) {
       Value* edges = n.input(convert(n.isFuture()->constant(), DType::Float32));
       Value* none = n.make<aten::LeScalar>(edges, 0.5);
       return n.softmax(n.make<aten::WhereSelf>(none, n.scores(), n.real(-9e15f)));
     }},
    {"filled_zeros_expanded",  // key_padding_mask of nn.MultiheadAttention
     [](MaskNetwork& n) {
       Value* pad = n.input(n.padding(DType::Bool, 1));
       Value* zeros = n.b.constant(Tensor::zeros(DType::Float32, {1, 1, 1, kLength}));
       Value* mask = n.make<aten::MaskedFillScalar>(zeros, pad, -static_cast<double>(kInfinity));
       Value* wide = n.make<aten::Expand>(mask, Ints{1, kHeads, 1, kLength}, false);
       return n.softmax(n.add(n.scores(), wide));
     }},
    {"one_less_keep",  // (1 - keep) * -10000
     [](MaskNetwork& n) {
       Value* keep = n.input(n.padding(DType::Float32, 1));
       Value* hide = n.make<aten::RsubScalar>(keep, 1.0, int64_t{1});
       return n.softmax(n.add(n.scores(), n.make<aten::MulScalar>(hide, -10000.0)));
     }},
    {"scaled_afterwards",  // GPT-J, CodeGen
     [](MaskNetwork& n) {
       Value* sum = n.add(n.scores(), n.future(std::numeric_limits<float>::lowest()));
       return n.softmax(n.make<aten::DivTensor>(sum, n.real(1.5f)));
     }},
    {"bounded_afterwards",  // XGLM, OPT
     [](MaskNetwork& n) {
       constexpr float kLowest = std::numeric_limits<float>::lowest();
       Value* sum = n.add(n.scores(), n.future(kLowest));
       Value* bounded = n.make<aten::Maximum>(sum, n.real(kLowest));
       return n.softmax(n.make<aten::View>(bounded, Ints{kHeads, kLength, kLength}));
     }},
    {"next_to_sinks",  // GPT-OSS
     [](MaskNetwork& n) {
       Value* sum = n.add(n.scores(), n.future(std::numeric_limits<float>::lowest()));
       Value* sinks = n.b.constant(randomFloats({1, kHeads, kLength, 1}, 9, 2.0f));
       Value* all = n.make<aten::Cat>(std::vector<Value*>{sum, sinks}, int64_t{-1});
       Value* largest = n.make<aten::Amax>(all, Ints{-1}, true);
       return n.softmax(n.make<aten::SubTensor>(all, largest, int64_t{1}));
     }},
    {"written_out",
     [](MaskNetwork& n) {
       Value* masked =
           n.make<aten::MaskedFillScalar>(n.scores(), n.isFuture(), -static_cast<double>(kInfinity));
       Value* largest = n.make<aten::Amax>(masked, Ints{-1}, true);
       Value* e = n.make<aten::Exp>(n.make<aten::SubTensor>(masked, largest, int64_t{1}));
       return n.make<aten::DivTensor>(e, n.make<aten::SumDimIntList>(e, Ints{-1}, true, std::nullopt));
     }},
    {"product_of_masked_exponentials",  // xLSTM: no sum, and not a softmax
     [](MaskNetwork& n) {
       Value* masked =
           n.make<aten::MaskedFillScalar>(n.scores(), n.isFuture(), -static_cast<double>(kInfinity));
       Value* shifted = n.add(masked, n.input(randomFloats({1, kHeads, 1, kLength}, 4, 1.0f)));
       Value* largest = n.make<aten::Amax>(shifted, Ints{-1}, true);
       Value* e = n.make<aten::Exp>(n.make<aten::SubTensor>(shifted, largest, int64_t{1}));
       return n.make<aten::Matmul>(e, n.rows(7));
     }},
    {"attention_causal", [](MaskNetwork& n) { return n.attention(nullptr, true); }},
    {"attention_bool_constant",
     [](MaskNetwork& n) { return n.attention(n.make<aten::LogicalNot>(n.isFuture())); }},
    {"attention_bool_input",
     [](MaskNetwork& n) {
       return n.attention(n.make<aten::LogicalNot>(n.input(n.padding(DType::Bool, 1))));
     }},
    {"attention_float_input",
     [](MaskNetwork& n) { return n.attention(n.input(n.padding(DType::Float32, -kInfinity))); }},
    {"add_input",  // a mask that is computed elsewhere, without scaled_dot_product_attention
     [](MaskNetwork& n) {
       Value* mask = n.input(n.padding(DType::Float32, -1e9f));
       Value* scores =
           n.make<aten::Matmul>(n.rows(5), n.input(randomFloats({1, kHeads, 8, kLength}, 8, 2.0f)));
       return n.softmax(n.add(scores, mask));
     }},
    {"add_input_through_views",
     [](MaskNetwork& n) {
       Value* mask = n.input(Tensor(n.padding(DType::Float32, -kInfinity)));
       Value* flat = n.make<aten::View>(mask, Ints{1, kLength});
       Value* wide = n.make<aten::Unsqueeze>(flat, int64_t{0});
       Value* scores =
           n.make<aten::Matmul>(n.rows(5), n.input(randomFloats({1, kHeads, 8, kLength}, 8, 2.0f)));
       return n.softmax(n.add(wide, scores));
     }},
    {"attention_safe",  // the form that run_decompositions() leaves
     [](MaskNetwork& n) {
       Value* scores = n.add(n.scores(), n.future(-kInfinity));
       Value* weights = n.make<aten::PrivateSoftmax>(scores, int64_t{-1}, false);
       Value* hidden = n.make<aten::EqScalar>(scores, -static_cast<double>(kInfinity));
       Value* any = n.make<aten::AnyDim>(n.make<aten::LogicalNot>(hidden), int64_t{-1}, true);
       Value* zeros = n.make<aten::FullLike>(weights, int64_t{0}, std::nullopt, std::nullopt, std::nullopt,
                                             std::nullopt, std::nullopt);
       return n.make<aten::WhereSelf>(n.make<aten::LogicalNot>(any), zeros, weights);
     }},
};

class Mask : public testing::TestWithParam<MaskCase> {};

TEST_P(Mask, KeepsTheFunction) {
  MaskNetwork n;
  n.graph.setOutputs({GetParam().build(n)});
  const auto before = require(aten::execute(n.graph, n.inputs));
  ASSERT_TRUE(decompose::forNpu(n.graph).ok());
  const auto after = require(aten::execute(n.graph, n.inputs));
  for (int64_t i = 0; i < before[0].numElements(); ++i)
    ASSERT_NEAR(before[0].realAt(i), after[0].realAt(i), 1e-5) << i;
}

TEST_P(Mask, KeepsTheResolutionOfEightBitScores) {
  MaskNetwork n;
  n.graph.setOutputs({GetParam().build(n)});
  const auto real = require(aten::execute(n.graph, n.inputs));
  ASSERT_TRUE(decompose::forNpu(n.graph).ok());
  const std::vector<quantize::Sample> samples{n.inputs};
  auto quantized = require(quantize::quantize(std::move(n.graph), {}, samples));
  const auto simulated = require(aten::execute(quantized.graph, n.inputs));
  quantize::Sqnr sqnr;
  sqnr.add(real[0], simulated[0]);
  EXPECT_GT(sqnr.decibels(), 20.0);

  auto partitioned = require(partition::partition(std::move(quantized.graph), {}));
  std::string why;
  for (const auto& refusal : partitioned.refusals) why += refusal.op + ": " + refusal.reason + "\n";
  EXPECT_TRUE(why.empty()) << why;
  const auto comparison = require(compareDelegates(partitioned));
  EXPECT_LE(comparison.largest, 1);
}

INSTANTIATE_TEST_SUITE_P(Softmax, Mask, testing::ValuesIn(kMaskCases),
                         [](const auto& param) { return std::string(param.param.name); });

TEST(Mask, FullyMaskedRowsAreZero) {
  MaskNetwork n;
  Tensor mask = Tensor::zeros(DType::Bool, {kLength, kLength});  // everything is masked
  n.graph.setOutputs({n.attention(n.b.constant(std::move(mask)))});
  ASSERT_TRUE(decompose::forNpu(n.graph).ok());
  const auto result = require(aten::execute(n.graph, n.inputs));
  for (const float x : result[0].as<float>()) ASSERT_EQ(x, 0.0f);
}

TEST(Mask, AdditionsWithoutASoftmaxStay) {
  MaskNetwork n;
  n.graph.setOutputs({n.add(n.scores(), n.future(-50))});
  ASSERT_TRUE(decompose::forNpu(n.graph).ok());
  EXPECT_EQ(n.graph.numNodes(), 1u);
}

/// The initial value of a running maximum (RWKV): exp(-1e38 - x) = 0 and max(-1e38, x) = x.
TEST(Mask, HugeConstantsAbsorbOtherOperands) {
  MaskNetwork n;
  Value *x = n.scores(), *least = n.b.constant(convert(Tensor::scalar(-1e38f), DType::Float32));
  Value* largest = n.make<aten::Maximum>(least, x);
  Value* before = n.make<aten::Exp>(n.make<aten::SubTensor>(least, largest, int64_t{1}));
  Value* now = n.make<aten::Exp>(n.make<aten::SubTensor>(x, largest, int64_t{1}));
  n.graph.setOutputs({n.add(before, now)});
  const auto real = require(aten::execute(n.graph, n.inputs));
  ASSERT_TRUE(decompose::forNpu(n.graph).ok());
  for (const ir::Node* node : n.graph.nodes()) {
    for (const Value* operand : node->operands()) {
      if (!operand || !operand->isConstant()) continue;
      for (const float number : operand->constant().as<float>()) EXPECT_LT(std::abs(number), 1e30f);
    }
  }
  const auto decomposed = require(aten::execute(n.graph, n.inputs));
  for (int64_t i = 0; i < real[0].numElements(); ++i) ASSERT_EQ(real[0].realAt(i), decomposed[0].realAt(i));
}

}  // namespace
}  // namespace carina::lower::test
