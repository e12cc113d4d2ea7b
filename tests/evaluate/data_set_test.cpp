// SPDX-License-Identifier: Apache-2.0
#include "evaluate/data_set.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/file.hpp"
#include "base/npy.hpp"
#include "support/require.hpp"
#include "support/temp_dir.hpp"

namespace carina::evaluate {
namespace {

using testing::HasSubstr;

class Data : public testing::Test {
 protected:
  std::filesystem::path path(const std::string& name) const { return folder_ / name; }

  void write(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories(path(name).parent_path());
    std::ofstream(path(name), std::ios::binary) << bytes;
  }

  /// `count` samples of [1, 2], counting up from `first`, with labels.
  static std::string shard(float first, int64_t count) {
    std::vector<float> values;
    std::vector<int64_t> labels;
    for (int64_t i = 0; i < count; ++i) {
      values.insert(values.end(), {first + static_cast<float>(i), 0.5F});
      labels.push_back(i);
    }
    return formatNpz({{"in0", Tensor::from<float>({count, 2}, values)},
                      {"labels", Tensor::from<int64_t>({count}, labels)}});
  }

  Result<DataSet> open(const std::string& name, const Shape& shape = {1, 2}) const {
    const std::vector<pipeline::Port> ports{{"x", {DType::Float32, shape}}};
    return DataSet::open(path(name), ports, preprocessing_);
  }

  std::string refusal(const std::string& name, const Shape& shape = {1, 2}) const {
    return errorOf(open(name, shape));
  }

  test::TempDir folder_;
  Preprocessing preprocessing_;
};

TEST_F(Data, ShardsFollowEachOtherByName) {
  write("d/b.npz", shard(10, 2));
  write("d/a.npz", shard(0, 3));
  write("d/c.npz", shard(20, 1));
  write("d/readme.txt", "not a sample");
  const auto data = require(open("d"));
  ASSERT_EQ(data.size(), 6u);
  const std::vector<float> wanted{0, 1, 2, 10, 11, 20};
  for (const size_t i : {size_t{5}, size_t{0}, size_t{3}, size_t{2}, size_t{4}, size_t{1}}) {
    const auto sample = require(data.sample(i));
    EXPECT_EQ(sample.inputs.front().shape(), (Shape{1, 2}));
    EXPECT_EQ(sample.inputs.front().as<float>()[0], wanted[i]);
  }
  EXPECT_EQ(data.sample(4)->name, "b.npz[1]");
  EXPECT_EQ(data.sample(4)->label->integerAt(0), 1);
}

TEST_F(Data, ClassesAreRanksOrNumbers) {
  const std::string one = formatNpy(Tensor::from<float>({1, 2}, std::vector<float>{1, 2}));
  write("words/cat/x.npy", one);
  write("words/dog/y.npy", one);
  write("words/dog/z.npy", one);
  const auto words = require(open("words"));
  ASSERT_EQ(words.size(), 3u);
  EXPECT_EQ(words.sample(0)->label->integerAt(0), 0);
  EXPECT_EQ(words.sample(2)->label->integerAt(0), 1);
  EXPECT_EQ(words.sample(2)->name, "dog/z.npy");
  write("numbers/3/x.npy", one);
  write("numbers/10/x.npy", one);
  const auto numbers = require(open("numbers"));
  EXPECT_EQ(numbers.sample(0)->label->integerAt(0), 10) << "in order of names, with the number in the name";
  EXPECT_EQ(numbers.sample(1)->label->integerAt(0), 3);
}

TEST_F(Data, RawFilesWithLabels) {
  const float values[2] = {1.5F, -2.0F};
  write("r/a.bin", std::string(reinterpret_cast<const char*>(values), sizeof values));
  write("r/labels.txt", "# comment\na.bin 7\r\n");
  const auto data = require(open("r"));
  EXPECT_EQ(data.sample(0)->label->integerAt(0), 7);
  EXPECT_EQ(data.sample(0)->inputs.front().as<float>()[1], -2.0F);
  write("r/a.bin", "short");
  EXPECT_THAT(data.sample(0).error().str(), HasSubstr("a.bin: has 5 bytes"));
}

TEST_F(Data, ImagesAreResizedAndNormalized) {
  // Binary PPM: a 2 x 2 image: red, green / blue, white.
  const unsigned char pixels[12] = {255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255};
  write("p/0/x.ppm", "P6\n2 2\n255\n" + std::string(reinterpret_cast<const char*>(pixels), 12));
  preprocessing_.mean = {0.5F};
  preprocessing_.std = {0.5F};
  const auto first = require(open("p", {1, 3, 2, 2}));
  const auto sample = require(first.sample(0));
  const std::vector<float> red{1, -1, -1, 1}, blue{-1, -1, 1, 1};
  const auto values = sample.inputs.front().as<float>();
  EXPECT_EQ(std::vector<float>(values.begin(), values.begin() + 4), red);
  EXPECT_EQ(std::vector<float>(values.begin() + 8, values.end()), blue);
  const auto last = open("p", {1, 2, 2, 3});
  const auto other = last->sample(0);
  EXPECT_EQ(other->inputs.front().as<float>()[0], 1.0F);
  EXPECT_EQ(other->inputs.front().as<float>()[1], -1.0F);
  EXPECT_EQ(open("p", {1, 3, 8, 4})->sample(0)->inputs.front().shape(), (Shape{1, 3, 8, 4}));
}

TEST_F(Data, InvalidDataIsReported) {
  EXPECT_THAT(refusal("none"), HasSubstr("does not exist"));
  std::filesystem::create_directories(path("empty"));
  EXPECT_THAT(refusal("empty"), HasSubstr("holds no samples"));
  write("mixed/a.npz", shard(0, 1));
  write("mixed/1/x.npy", "x");
  EXPECT_THAT(refusal("mixed"), HasSubstr("several kinds"));
  write("damaged/a.npz", shard(0, 3).substr(0, 60));
  EXPECT_THAT(refusal("damaged"), HasSubstr("a.npz"));
  write("shape/a.npz", shard(0, 3));
  EXPECT_THAT(refusal("shape", {1, 3}), HasSubstr("in0: has shape"));
  write("labels/a.npz", formatNpz({{"in0", Tensor::zeros(DType::Float32, {3, 2})},
                                   {"labels", Tensor::zeros(DType::Int64, {2})}}));
  EXPECT_THAT(refusal("labels"), HasSubstr("labels: has shape"));
  write("lines/a.npy", formatNpy(Tensor::zeros(DType::Float32, {1, 2})));
  EXPECT_THAT(refusal("lines"), HasSubstr("no labels.txt"));
  write("lines/labels.txt", "a.npy\n");
  EXPECT_THAT(refusal("lines"), HasSubstr("line 1"));
  write("lines/labels.txt", "../a.npy 1\n");
  EXPECT_THAT(refusal("lines"), HasSubstr("line 1"));
  write("lines/labels.txt", "b.npy 1\n");
  EXPECT_THAT(refusal("lines"), HasSubstr("b.npy"));
  write("picture/0/x.png", "no picture");
  const auto data = require(open("picture", {1, 3, 2, 2}));
  EXPECT_THAT(data.sample(0).error().str(), HasSubstr("is not a readable image"));
  EXPECT_THAT(refusal("picture", {1, 2}), HasSubstr("does not take images"));
}

}  // namespace
}  // namespace carina::evaluate
