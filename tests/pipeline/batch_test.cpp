// SPDX-License-Identifier: Apache-2.0
// Arrays into samples and results back into arrays.
#include "pipeline/batch.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "support/require.hpp"

namespace carina::pipeline {
namespace {

Tensor counting(Shape shape) {
  Tensor tensor = Tensor::uninitialized(DType::Float32, std::move(shape));
  for (size_t i = 0; i < static_cast<size_t>(tensor.numElements()); ++i)
    tensor.mutableAs<float>()[i] = static_cast<float>(i);
  return tensor;
}

const std::vector<Port> kImage{{"image", {DType::Float32, {1, 2, 3}}}};

Result<std::vector<Tensor>> identity(std::span<const Tensor> inputs) {
  return std::vector<Tensor>(inputs.begin(), inputs.end());
}

TEST(Batch, OneSampleStaysOne) {
  auto batch = require(makeBatch({{"in0", counting({1, 2, 3})}}, kImage));
  EXPECT_EQ(batch.stacking, Stacking::None);
  EXPECT_EQ((*runBatch(batch, identity))[0].second.shape(), (Shape{1, 2, 3}));
}

TEST(Batch, SamplesOnANewAxisOrOnTheBatchAxis) {
  for (const Shape& shape : {Shape{4, 1, 2, 3}, Shape{4, 2, 3}}) {
    const Tensor all = counting(shape);
    auto batch = require(makeBatch({{"in0", all}}, kImage));
    ASSERT_EQ(batch.samples.size(), 4u);
    EXPECT_EQ(batch.samples[2][0].shape(), (Shape{1, 2, 3}));
    EXPECT_EQ(batch.samples[2][0].realAt(0), 12.0);
    auto results = require(runBatch(batch, identity));
    EXPECT_EQ(results[0].first, "out0");
    EXPECT_EQ(results[0].second, all);
  }
}

TEST(Batch, AnInputWithoutSampleAxisServesEveryRun) {
  const std::vector<Port> ports{{"x", {DType::Float32, {2}}}, {"bias", {DType::Float32, {3}}}};
  auto batch = require(makeBatch({{"in0", counting({5, 2})}, {"in1", counting({3})}}, ports));
  ASSERT_EQ(batch.samples.size(), 5u);
  EXPECT_EQ(batch.samples[4][1], counting({3}));
}

TEST(Batch, ConvertsOnlyWithoutLoss) {
  const std::vector<Port> small{{"x", {DType::Int8, {2}}}};
  EXPECT_TRUE(makeBatch({{"in0", Tensor::from<int64_t>({2}, std::vector<int64_t>{-128, 127})}}, small).ok());
  auto tooLarge = makeBatch({{"in0", Tensor::from<int64_t>({2}, std::vector<int64_t>{0, 128})}}, small);
  ASSERT_FALSE(tooLarge.ok());
  EXPECT_EQ(tooLarge.error().message(), "value 128 does not fit i8");
  EXPECT_FALSE(makeBatch({{"in0", counting({2})}}, small).ok());
}

TEST(Batch, ReportsWhatDoesNotFit) {
  const auto message = [](const NamedTensors& arrays, std::span<const Port> ports) {
    auto batch = makeBatch(arrays, ports);
    return batch.ok() ? std::string() : batch.error().diagnostics()[0].str();
  };
  EXPECT_EQ(message({{"other", counting({1})}}, kImage),
            "array 'in0' is missing\n  it feeds program input 0 ('image', f32[1,2,3]); the file holds other "
            "f32[1]");
  EXPECT_EQ(message({{"in0", counting({3, 2, 4})}}, kImage),
            "in0: has shape [3,2,4], program input 0 ('image') takes [1,2,3]\n"
            "  give one sample of that shape, or several with an additional leading axis");
  EXPECT_EQ(
      message({{"in0", counting({2, 3, 1})}}, kImage),
      "in0: has shape [2,3,1], program input 0 ('image') takes [1,2,3]\n"
      "  the array looks channels-last (NHWC): transpose it, for example with numpy.moveaxis(x, -1, -3)");
  const std::vector<Port> two{{"a", {DType::Float32, {2}}}, {"b", {DType::Float32, {2}}}};
  EXPECT_EQ(message({{"in0", counting({3, 2})}, {"in1", counting({4, 2})}}, two),
            "in1: holds 4 samples, an earlier input 3\n  give the same number of samples for every input");
  EXPECT_EQ(message({{"in0", counting({0, 2})}, {"in1", counting({2})}}, two),
            "in0: holds no sample\n  give at least one");
}

RC_GTEST_PROP(Batch, StackAndSliceAreInverse, ()) {
  const auto samples = *rc::gen::inRange<int64_t>(1, 6);
  const Shape one =
      *rc::gen::container<Shape>(*rc::gen::inRange<size_t>(0, 4), rc::gen::inRange<int64_t>(1, 4));
  Shape all = one;
  all.insert(all.begin(), samples);
  const Tensor tensor = counting(all);
  std::vector<Tensor> slices;
  for (int64_t i = 0; i < samples; ++i) slices.push_back(slice(tensor, i));
  RC_ASSERT(stack(slices) == tensor);
}

}  // namespace
}  // namespace carina::pipeline
