// SPDX-License-Identifier: Apache-2.0
// Bundled programs and tensor data files round-trip through values and bytes; damaged files are refused or
// harmless.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/file.hpp"
#include "pte/bundle.hpp"
#include "pte/tensor_data.hpp"
#include "support/require.hpp"

namespace carina::pte {
namespace {

using testing::HasSubstr;

ByteVector bytes(size_t count, int seed) {
  ByteVector result(count);
  for (size_t i = 0; i < count; ++i) result[i] = static_cast<std::byte>(i * 7 + static_cast<size_t>(seed));
  return result;
}

Bundle exampleBundle() {
  Bundle bundle;
  bundle.program = bytes(100, 1);
  const BundleTensor floats{ScalarType::Float32, {2, 3}, {0, 1}, bytes(24, 2)};
  const BundleTensor image{ScalarType::Int8, {1, 2, 3}, {0, 2, 1}, bytes(6, 3)};
  bundle.suites.push_back({"forward", {{{floats, int64_t{-5}, true, 2.5, None{}}, {image}}, {{image}, {}}}});
  bundle.suites.push_back({"other", {}});
  return bundle;
}

TensorData exampleData() {
  TensorData data;
  data.entries.push_back({"weight", TensorLayout{ScalarType::Float32, {2, 2}, {0, 1}}, bytes(16, 4)});
  data.entries.push_back({"blob", std::nullopt, bytes(33, 5)});
  data.entries.push_back({"again", std::nullopt, bytes(33, 5)});
  data.entries.push_back({"empty", TensorLayout{ScalarType::Int8, {0}, {0}}, {}});
  return data;
}

TEST(Bundle, RoundTrips) {
  const Bundle bundle = exampleBundle();
  const auto file = require(writeBundle(bundle));
  EXPECT_EQ(file.substr(4, 4), "BP08");
  const auto read = require(readBundle(asBytes(file)));
  EXPECT_EQ(read, bundle);
  EXPECT_EQ(*writeBundle(read), file);
  // The program is used in place, so it starts at a multiple of 32.
  const size_t at = file.find(asText(bundle.program));
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(at % 32, 0u);
  const std::string text = printBundle(bundle);
  EXPECT_THAT(text, HasSubstr("version 2, program of 100 bytes"));
  EXPECT_THAT(text, HasSubstr("  0: float32[2,3], int -5, bool true, double 2.5, none -> int8[1,2,3]\n"));
}

TEST(Bundle, TensorsAreInLogicalOrder) {
  BundleTensor tensor{ScalarType::Int8, {2, 3}, {1, 0}, {}};  // stored column by column
  for (const int value : {1, 4, 2, 5, 3, 6}) tensor.bytes.push_back(static_cast<std::byte>(value));
  const auto logical = require(toTensor(tensor));
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(logical.integerAt(i), i + 1);
  const BundleTensor back = fromTensor(logical);
  EXPECT_EQ(back.dimOrder, (std::vector<uint8_t>{0, 1}));
  EXPECT_EQ(*toTensor(back)->bytes().data(), std::byte{1});
  EXPECT_FALSE(toTensor({ScalarType::UInt64, {1}, {0}, bytes(8, 0)}).ok());
}

TEST(Bundle, RefusesWhatContradictsItself) {
  Bundle bundle = exampleBundle();
  std::get<BundleTensor>(bundle.suites[0].cases[0].expected[0]).bytes.pop_back();
  EXPECT_THAT(writeBundle(bundle).error().str(), HasSubstr("holds 5 bytes"));
  bundle = exampleBundle();
  bundle.program.clear();
  EXPECT_FALSE(writeBundle(bundle).ok());
  EXPECT_THAT(readBundle(asBytes("PK\x03\x04 other")).error().str(), HasSubstr("BP08"));
  const std::string file = *writeBundle(exampleBundle());
  for (size_t length = 0; length < file.size(); ++length) {
    if (const auto read = readBundle(asBytes(std::string_view(file).substr(0, length)))) printBundle(*read);
  }
  for (size_t at = 0; at + 4 <= file.size(); ++at) {  // whatever happens, nothing is read outside the bytes
    for (const uint32_t value : {0u, 0xffffffffu, 0x7fffffffu}) {
      std::string damaged = file;
      std::memcpy(damaged.data() + at, &value, 4);
      if (const auto read = readBundle(asBytes(damaged))) printBundle(*read);
    }
  }
}

TEST(TensorData, RoundTrips) {
  const TensorData data = exampleData();
  const auto file = require(writeTensorData(data));
  EXPECT_EQ(file.substr(4, 4), "FT01");
  EXPECT_EQ(file.substr(8, 4), "FH01");
  const auto read = require(readTensorData(asBytes(file)));
  EXPECT_EQ(read, data);
  EXPECT_EQ(*writeTensorData(read), file);
  EXPECT_EQ(read.find("blob")->bytes.size(), 33u);
  EXPECT_EQ(read.find("nothing"), nullptr);
  EXPECT_EQ(file.find(asText(data.entries[1].bytes)) % 128, 0u);
  EXPECT_EQ(file.find(asText(data.entries[1].bytes)), file.rfind(asText(data.entries[1].bytes)))
      << "equal bytes are stored once";
  EXPECT_EQ(printTensorData(data),
            "tensor data: 4 entries\n  weight: float32[2,2], 16 bytes\n  blob: 33 bytes\n  again: 33 bytes\n "
            " empty: int8[0], 0 bytes\n");
}

TEST(TensorData, RefusesWhatContradictsItself) {
  TensorData data = exampleData();
  data.entries[1].key = "weight";
  EXPECT_THAT(writeTensorData(data).error().str(), HasSubstr("appears twice"));
  data = exampleData();
  data.entries[0].bytes.pop_back();
  EXPECT_THAT(writeTensorData(data).error().str(), HasSubstr("does not fit its 15 bytes"));
  EXPECT_THAT(readTensorData(asBytes("PK\x03\x04 other")).error().str(), HasSubstr("FT01"));
  const std::string file = *writeTensorData(exampleData());
  for (size_t length = 0; length < file.size(); ++length) {
    EXPECT_FALSE(readTensorData(asBytes(std::string_view(file).substr(0, length))).ok()) << length;
  }
  for (size_t at = 0; at + 4 <= file.size(); ++at) {  // whatever happens, nothing is read outside the bytes
    for (const uint32_t value : {0u, 0xffffffffu, 0x7fffffffu}) {
      std::string damaged = file;
      std::memcpy(damaged.data() + at, &value, 4);
      if (const auto read = readTensorData(asBytes(damaged))) printTensorData(*read);
    }
  }
}

}  // namespace
}  // namespace carina::pte
