// SPDX-License-Identifier: Apache-2.0
// Calibration samples: types that are refused, signs of unsuitable samples, and accuracy on them compared
// with float.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "aten/executor.hpp"
#include "quantize/accuracy.hpp"
#include "quantize/sample_doubts.hpp"
#include "small_network.hpp"
#include "support/require.hpp"

namespace carina::quantize {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class SampleData : public testing::Test {
 protected:
  SampleData() { n_.done(n_.relu(n_.input({1, 4}))); }
  std::string problem(const Tensor& array) {
    return errorOf(samplesFromArrays(n_.graph, {{"calib0", array}}));
  }
  std::vector<Diagnostic> doubts(const Tensor& array, std::vector<Tensor> examples = {}) {
    const auto samples = samplesFromArrays(n_.graph, {{"calib0", array}});
    return sampleWarnings(n_.graph, *samples, examples);
  }
  Network n_;
};

/// Values of a ramp, rounded.
Tensor whole(const Shape& shape, float low, float high) {
  Tensor tensor = ramp(shape, low, high);
  for (float& value : tensor.mutableAs<float>()) value = std::nearbyint(value);
  return tensor;
}

TEST_F(SampleData, TypesOfAnotherKindAreRefused) {
  const Tensor floats = ramp({5, 1, 4}, 0, 1);
  EXPECT_EQ(problem(floats), "");
  EXPECT_EQ(problem(convert(floats, DType::Float64)), "");
  for (DType type : {DType::UInt8, DType::Int64, DType::Bool})
    EXPECT_THAT(problem(convert(floats, type)), HasSubstr("but input 0 ('x0') is f32"));

  Network whole;
  ir::Value* indices = whole.graph.addInput({DType::Int8, {1, 4}}, "indices");
  whole.done(indices);
  const auto read = [&](const Tensor& array) { return samplesFromArrays(whole.graph, {{"calib0", array}}); };
  EXPECT_FALSE(read(floats).ok());
  EXPECT_TRUE(read(convert(floats, DType::Int64)).ok());
  Tensor large = Tensor::zeros(DType::Int64, {1, 1, 4});
  large.setIntegerAt(2, 128);
  EXPECT_THAT(errorOf(read(large)), HasSubstr("calib0: value 128 does not fit i8"));
}

TEST_F(SampleData, SamplesOfOtherSizesAreRefused) {
  for (const Shape& shape : {Shape{5, 1, 3}, Shape{5, 3}}) {
    const std::string stacked = problem(ramp(shape, 0, 1));
    EXPECT_THAT(stacked, HasSubstr("calib0 holds samples of shape"));
    EXPECT_THAT(stacked, HasSubstr("give samples of the input's sizes"));
  }
  EXPECT_THAT(problem(ramp({4}, 0, 1)), HasSubstr("stack the samples along a leading axis"));
}

TEST_F(SampleData, ConstantSamplesAreDoubted) {
  const auto found = doubts(Tensor::zeros(DType::Float32, {5, 1, 4}));
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].place, "input 0 ('x0')");
  EXPECT_THAT(found[0].message, HasSubstr("is 0 everywhere"));
  const auto negative = doubts(Tensor::from<float>({2, 1, 4}, std::vector<float>(8, -0.0f)));
  ASSERT_THAT(negative, SizeIs(1));
  EXPECT_THAT(negative[0].message, HasSubstr("is 0 everywhere"));
  EXPECT_THAT(doubts(ramp({5, 1, 4}, 0, 1)), IsEmpty());
}

TEST_F(SampleData, BytesAreDoubtedIfTheExampleDiffers) {
  const Tensor bytes = whole({5, 1, 4}, 0, 255);
  const auto found = doubts(bytes, {ramp({1, 4}, -2, 2.5f)});
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].message, HasSubstr("integers from 0 to 255"));
  EXPECT_THAT(found[0].message, HasSubstr("between -2 and 2.5"));
  EXPECT_THAT(doubts(bytes), IsEmpty());
  EXPECT_THAT(doubts(bytes, {whole({1, 4}, 0, 255)}), IsEmpty());
  EXPECT_THAT(doubts(bytes, {Tensor::zeros(DType::Float32, {1, 4})}), IsEmpty());  // no indication
  EXPECT_THAT(doubts(ramp({5, 1, 4}, 0, 254.5f), {ramp({1, 4}, -2, 2)}), IsEmpty());
  EXPECT_THAT(doubts(whole({5, 1, 4}, 0, 7), {ramp({1, 4}, 0, 0.5f)}), IsEmpty());  // classes, counts
}

TEST(SampleNorms, SamplesOutsideTheTrainingDistributionAreDoubted) {
  // A convolution that sums three channels, and a norm trained on sums with deviation 1.5 around 0.5.
  const auto doubts = [](float most, float deviation) {
    Network n;
    Value* x = n.input({1, 3, 4, 4});
    Value* weight = n.graph.addConstant(Tensor::from<float>({2, 3, 1, 1}, {1, 1, 1, 1, 1, 1}));
    Value* y = n.make<aten::Conv2d>(x, weight, nullptr, Ints{1, 1}, Ints{0, 0}, Ints{1, 1}, 1);
    const auto both = [&](float value) {
      return n.graph.addConstant(Tensor::from<float>({2}, {value, value}));
    };
    const float mean = deviation == 1 ? 0 : 0.5f;
    n.done(n.make<aten::BatchNorm>(y, both(2), both(1), both(mean), both(deviation * deviation), false, 0.1,
                                   1e-5, false));
    const auto samples = samplesFromArrays(n.graph, {{"calib0", ramp({5, 1, 3, 4, 4}, 0, most)}});
    return sampleWarnings(n.graph, *samples, {});
  };
  EXPECT_THAT(doubts(1, 1.5f), IsEmpty());
  EXPECT_THAT(doubts(5, 1.5f), IsEmpty());
  const auto found = doubts(255, 1.5f);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].place, "input 0 ('x0')");
  EXPECT_THAT(found[0].message, HasSubstr("the first batch norm"));
  const auto far = doubts(1e30f, 1.5f);
  ASSERT_THAT(far, SizeIs(1));
  EXPECT_THAT(far[0].message, HasSubstr("e+30 standard deviations"));
  EXPECT_THAT(doubts(255, 1), IsEmpty()) << "an untrained norm indicates nothing";
}

TEST_F(SampleData, AccuracyMatchesTheSimulation) {
  const auto samples = samplesFromArrays(n_.graph, {{"calib0", ramp({6, 1, 4}, -1, 1)}});
  const auto quantized = require(quantize(std::move(n_.graph), {}, *samples));
  const auto accuracy = estimateAccuracy(quantized, *samples, 4);
  ASSERT_TRUE(accuracy.ok() && accuracy->has_value());
  EXPECT_EQ((*accuracy)->samples, 4u);
  EXPECT_EQ((*accuracy)->outputs, 1u);
  EXPECT_GT((*accuracy)->decibels, 30);
  EXPECT_LT((*accuracy)->decibels, 80);
  EXPECT_FALSE(estimateAccuracy(quantized, {}, 4)->has_value());
}

TEST_F(SampleData, AccuracyIsThatOfAGivenSimulation) {
  const auto samples = require(samplesFromArrays(n_.graph, {{"calib0", ramp({2, 1, 4}, -1, 1)}}));
  const auto quantized = require(quantize(std::move(n_.graph), {}, samples));
  const auto accuracy = require(estimateAccuracy(quantized, samples, 1, nullptr, &*quantized.reference));
  EXPECT_EQ(accuracy->decibels, std::numeric_limits<double>::infinity());
}

TEST_F(SampleData, FloatOutputsOfComparedSamplesAreKept) {
  const auto samples = require(samplesFromArrays(n_.graph, {{"calib0", ramp({6, 1, 4}, -1, 1)}}));
  const auto alone = require(quantize(n_.graph.clone(), {}, samples));
  EXPECT_THAT(alone.floatOutputs, IsEmpty());
  Options options;
  options.compared = 2;
  auto quantized = require(quantize(std::move(n_.graph), options, samples));
  ASSERT_THAT(quantized.floatOutputs, SizeIs(2));
  for (const auto& [sample, outputs] : quantized.floatOutputs) {
    EXPECT_THAT(sample, AnyOf(0u, 3u));
    EXPECT_EQ(outputs[0], (*aten::execute(*quantized.reference, samples[sample]))[0]);
  }
  EXPECT_EQ((*estimateAccuracy(quantized, samples, 2))->decibels,
            (*estimateAccuracy(alone, samples, 2))->decibels);
}

TEST(Accuracy, OfLayersWithManyWeightsMatchesTheSimulation) {
  Network n;
  Value* x = n.input({2, 2050});
  n.done(aten::Linear::create(n.b, x, n.constant({2100, 2050}, -1, 1), n.constant({2100}, -1, 1)).output());
  const auto samples = require(samplesFromArrays(n.graph, {{"calib0", ramp({1, 2, 2050}, -1, 1)}}));
  const auto quantized = require(quantize(std::move(n.graph), {}, samples));
  Sqnr sqnr;
  sqnr.add((*aten::execute(*quantized.reference, samples[0]))[0],
           (*aten::execute(quantized.graph, samples[0]))[0]);
  const auto accuracy = estimateAccuracy(quantized, samples, 1);
  ASSERT_TRUE(accuracy.ok() && accuracy->has_value());
  EXPECT_NEAR((*accuracy)->decibels, sqnr.decibels(), 1e-3);
}

}  // namespace
}  // namespace carina::quantize
