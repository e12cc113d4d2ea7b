// SPDX-License-Identifier: Apache-2.0
#include "evaluate/metrics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace carina::evaluate {
namespace {

using testing::HasSubstr;

Tensor floats(const Shape& shape, const std::vector<float>& values) {
  return Tensor::from<float>(shape, values);
}
Tensor labels(const Shape& shape, const std::vector<int64_t>& values) {
  return Tensor::from<int64_t>(shape, values);
}

SampleRecord recordOf(size_t index, EngineRecord npu) {
  SampleRecord record;
  record.index = index;
  record.engines.resize(kEngines.size());
  record.engines[static_cast<size_t>(Engine::Npu)] = std::move(npu);
  return record;
}

double figure(const Summary& summary, const std::string& name) {
  const std::vector<EngineSummary> engines = summary.engines();
  for (const Figure& one : engines.front().figures) {
    if (one.name == name) return one.value;
  }
  ADD_FAILURE() << "no figure " << name;
  return NAN;
}

TEST(Metrics, LabelsDetermineTheTask) {
  const Tensor label = labels({}, {3}), map = labels({4, 5}, std::vector<int64_t>(20)),
               line = labels({7}, {0, 1, 2, 3, 4, 5, 6});
  EXPECT_EQ(*taskOf(nullptr, {1, 10}), Task::Compare);
  EXPECT_EQ(*taskOf(&label, {1, 10}), Task::Classify);
  EXPECT_EQ(*taskOf(&map, {1, 3, 4, 5}), Task::Segment);
  EXPECT_EQ(*taskOf(&map, {1, 4, 5, 3}), Task::Segment);
  EXPECT_EQ(*taskOf(&line, {1, 7, 50}), Task::Tokens);
  const Tensor boxes = floats({2, 5}, std::vector<float>(10));
  EXPECT_EQ(*taskOf(&boxes, {1, 8, 6}), Task::Boxes);
  EXPECT_FALSE(taskOf(&map, {1, 10}).ok());
  EXPECT_FALSE(taskOf(&boxes, {1, 10}).ok());
}

TEST(Metrics, TopFiveCountsLargerValues) {
  const Tensor output = floats({1, 7}, {1, 9, 8, 7, 6, 5, 9});
  const auto rank = [&](int64_t label) {
    const Tensor wanted = labels({}, {label});
    return judge(Task::Classify, output, &wanted, nullptr, 0.5)->counts;
  };
  EXPECT_EQ(rank(1), (std::vector<int64_t>{1, 1, 1})) << "the first of equal values";
  EXPECT_EQ(rank(6), (std::vector<int64_t>{1, 0, 1}));
  EXPECT_EQ(rank(4), (std::vector<int64_t>{1, 0, 1})) << "fifth";
  EXPECT_EQ(rank(5), (std::vector<int64_t>{1, 0, 0})) << "sixth";
}

TEST(Metrics, LabelsOutOfRangeAndNanAreErrors) {
  const Tensor output = floats({1, 3}, {1, 2, 3}), broken = floats({1, 3}, {1, NAN, 3});
  for (const int64_t label : {int64_t{-1}, int64_t{3}}) {
    const Tensor wanted = labels({}, {label});
    const auto result = judge(Task::Classify, output, &wanted, nullptr, 0.5);
    ASSERT_FALSE(result.ok());
    EXPECT_THAT(result.error().str(), HasSubstr("out of range: the output has 3 classes"));
  }
  const Tensor wanted = labels({}, {0});
  EXPECT_FALSE(judge(Task::Classify, broken, &wanted, nullptr, 0.5).ok());
}

TEST(Metrics, SegmentsInBothLayouts) {
  // Two classes, 2 x 3 pixels: predictions 0 1 1 / 0 0 0, labels 0 1 0 / ignored 1 0.
  const Tensor first = floats({1, 2, 2, 3}, {1, 0, 0, 1, 1, 1, 0, 1, 1, 0, 0, 0});
  const Tensor last = floats({1, 2, 3, 2}, {1, 0, 0, 1, 0, 1, 1, 0, 1, 0, 1, 0});
  const Tensor wanted = labels({2, 3}, {0, 1, 0, 255, 1, 0});
  for (const Tensor* output : {&first, &last}) {
    Summary summary(Task::Segment, {Engine::Npu});
    const auto record = judge(Task::Segment, *output, &wanted, nullptr, 0.5);
    ASSERT_TRUE(record.ok()) << record.error().str();
    summary.add(recordOf(0, *record));
    // Class 0: intersection 2, union 4; class 1: intersection 1, union 3.
    EXPECT_NEAR(figure(summary, "mIoU"), 100 * (0.5 + 1.0 / 3) / 2, 1e-12);
    EXPECT_DOUBLE_EQ(figure(summary, "pixel accuracy"), 60.0);
  }
}

TEST(Metrics, PerplexityOfUniformOutputsIsTheNumberOfClasses) {
  const Tensor output = floats({1, 3, 4}, std::vector<float>(12, 2.5F));
  const Tensor wanted = labels({3}, {0, 3, -100});
  Summary summary(Task::Tokens, {Engine::Npu});
  summary.add(recordOf(0, *judge(Task::Tokens, output, &wanted, nullptr, 0.5)));
  EXPECT_NEAR(figure(summary, "perplexity"), 4.0, 1e-12);
  EXPECT_DOUBLE_EQ(figure(summary, "token accuracy"), 50.0);
}

TEST(Metrics, EachLabelledBoxIsMatchedOnceAndByClass) {
  const Tensor wanted = floats({3, 5}, {0, 0, 10, 10, 1, 20, 20, 30, 30, 2, 0, 0, 0, 0, -1});
  const Tensor found = floats({4, 6}, {0,  0,  10, 10, 0.9F, 1,    // matches
                                       1,  1,  10, 10, 0.8F, 1,    // its box is already matched
                                       20, 20, 30, 30, 0.7F, 1,    // another class
                                       20, 20, 30, 30, 0.0F, 2});  // no box
  const auto record = judge(Task::Boxes, found, &wanted, nullptr, 0.5);
  ASSERT_TRUE(record.ok());
  EXPECT_EQ(record->counts, (std::vector<int64_t>{1, 2, 3}));
  Summary summary(Task::Boxes, {Engine::Npu});
  summary.add(recordOf(0, *record));
  EXPECT_DOUBLE_EQ(figure(summary, "box agreement"), 40.0);
  // Compared with the boxes of the float network, without labels.
  EXPECT_EQ(judge(Task::Boxes, found, nullptr, &found, 0.5)->counts, (std::vector<int64_t>{3, 3, 3}));
}

// Newcombe, "Two-sided confidence intervals for the single proportion" (1998), table I, method 3.
TEST(Metrics, WilsonIntervalsMatchPublishedValues) {
  const auto check = [](int64_t k, int64_t n, double low, double high) {
    const Interval interval = wilson(k, n);
    EXPECT_NEAR(interval.low, low, 5e-5) << k << "/" << n;
    EXPECT_NEAR(interval.high, high, 5e-5) << k << "/" << n;
  };
  check(81, 263, 0.2553, 0.3662);
  check(15, 148, 0.0624, 0.1605);
  check(0, 20, 0.0, 0.1611);
  check(1, 29, 0.0061, 0.1718);
}

TEST(Metrics, SqnrAndCosineCoverAllSamples) {
  Summary summary(Task::Compare, {Engine::Npu});
  for (const float found : {3.0F, 4.0F}) {
    EngineRecord record;
    const std::vector<Tensor> outputs{floats({1}, {found})}, references{floats({1}, {4.0F})};
    addEnergies(record, outputs, references);
    summary.add(recordOf(summary.samples(), record));
  }
  EXPECT_NEAR(figure(summary, "SQNR out0"), 10 * std::log10(32.0), 1e-12);
  EXPECT_NEAR(figure(summary, "cosine out0"), 1.0, 1e-12);
  EXPECT_NEAR(*summary.engines().front().worstSqnr, 10 * std::log10(32.0), 1e-12);
}

}  // namespace
}  // namespace carina::evaluate
