// SPDX-License-Identifier: Apache-2.0
#include "base/npy.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>

#include "base/file.hpp"
#include "base/zip.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"
#include "support/temp_dir.hpp"

namespace carina {
namespace {

/// A handmade .npy file: a header of the given version around `dict`, then `data`.
std::string npy(const std::string& dict, const std::string& data, int version = 1) {
  std::string text = "\x93NUMPY";
  text += static_cast<char>(version);
  text += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
    text += static_cast<char>((dict.size() >> (8 * i)) & 0xffu);
  return text + dict + data;
}

std::string dictOf(const std::string& descr, const std::string& shape, const std::string& order = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}

Result<Tensor> parse(const std::string& text) {
  return parseNpy(asBytes(text));
}

std::string errorOf(const std::string& text) {
  return errorOf(parse(text));
}

constexpr DType kStorable[] = {DType::Bool,    DType::Int8,    DType::UInt8,  DType::Int16,
                               DType::UInt16,  DType::Int32,   DType::UInt32, DType::Int64,
                               DType::Float16, DType::Float32, DType::Float64};

Tensor randomTensor(DType dtype) {
  const Shape shape = *rc::gen::container<Shape>(rc::gen::inRange<int64_t>(0, 5));
  RC_PRE(shape.size() <= 8);
  Tensor tensor = Tensor::uninitialized(dtype, shape);
  for (std::byte& b : tensor.mutableBytes()) {
    b = static_cast<std::byte>(*rc::gen::inRange(0, dtype == DType::Bool ? 2 : 256));
  }
  return tensor;
}

RC_GTEST_PROP(Npy, EveryStorableTypeRoundTrips, ()) {
  const Tensor tensor =
      randomTensor(*rc::gen::elementOf(std::vector<DType>(std::begin(kStorable), std::end(kStorable))));
  const std::string text = formatNpy(tensor);
  RC_ASSERT(text.find('\n') % 64 == 63);
  const auto back = require(parse(text));
  RC_ASSERT(back == tensor);
}

TEST(Npy, TypesWithoutNumpyCounterpartBecomeTheNextLarger) {
  EXPECT_EQ(parse(formatNpy(Tensor::zeros(DType::Int4, {3})))->dtype(), DType::Int8);
  EXPECT_EQ(parse(formatNpy(Tensor::zeros(DType::Int48, {3})))->dtype(), DType::Int64);
  const Tensor brain = convert(Tensor::scalar(1.5f), DType::BFloat16);
  EXPECT_EQ(*parse(formatNpy(brain)), Tensor::scalar(1.5f));
}

TEST(Npy, WritesHeadersAsNumpyDoes) {
  EXPECT_EQ(formatNpy(Tensor::zeros(DType::Int8, {2, 3})).substr(10, 60),
            "{'descr': '|i1', 'fortran_order': False, 'shape': (2, 3), } ");
  EXPECT_EQ(formatNpy(Tensor::zeros(DType::Float32, {4})).substr(10, 58),
            "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), } ");
  EXPECT_EQ(formatNpy(Tensor::scalar(1.0)).substr(10, 56),
            "{'descr': '<f8', 'fortran_order': False, 'shape': (), } ");
}

TEST(Npy, ReadsAllVersionsAndOrders) {
  for (int version : {1, 2, 3}) {
    const auto tensor = require(parse(npy(dictOf("|i1", "(2, 3)"), "\1\2\3\4\5\6", version)));
    EXPECT_EQ(tensor.as<int8_t>()[4], 5);
  }
  const auto fortran = require(parse(npy(dictOf("|i1", "(2, 3)", "True"), "\1\2\3\4\5\6")));
  EXPECT_EQ(fortran, Tensor::from<int8_t>({2, 3}, std::vector<int8_t>{1, 3, 5, 2, 4, 6}));
}

RC_GTEST_PROP(Npy, FortranOrderIsTheTransposedRowMajorOrder, ()) {
  const auto rows = *rc::gen::inRange<int64_t>(1, 6), columns = *rc::gen::inRange<int64_t>(1, 6);
  std::string data;
  for (int64_t i = 0; i < rows * columns; ++i) data += static_cast<char>(i);
  const auto tensor =
      require(parse(npy(dictOf("|u1", fmt::format("({}, {})", rows, columns), "True"), data)));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) RC_ASSERT(tensor.integerAt(r * columns + c) == c * rows + r);
  }
}

TEST(Npy, Unsigned64FitsOrIsRefused) {
  const auto small = require(parse(npy(dictOf("<u8", "(1,)"), std::string("\7\0\0\0\0\0\0\0", 8))));
  EXPECT_EQ(small.dtype(), DType::Int64);
  EXPECT_EQ(small.integerAt(0), 7);
  EXPECT_NE(errorOf(npy(dictOf("<u8", "(1,)"), std::string(8, '\xff'))).find("beyond the range"),
            std::string::npos);
}

TEST(Npy, RefusalsSayWhy) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "is not a .npy array"},
      {"\x93NUMPY", "truncated"},
      {npy(dictOf("<f4", "(2,)"), "1234567"), "does not fit shape [2]"},
      {npy(dictOf("<f4", "(2,)"), "123456789"), "does not fit shape [2]"},
      {npy(dictOf("<f4", "(4611686018427387904, 4)"), ""), "does not fit shape"},
      {npy(dictOf("<f4", "(-1,)"), ""), "malformed"},
      {npy(dictOf("<f4", "(99999999999999999999,)"), ""), "malformed"},
      {npy(dictOf(">f4", "(1,)"), "1234"), "big-endian"},
      {npy(dictOf("|O", "(1,)"), "12345678"), "element type '|O'"},
      {npy(dictOf("|O8", "(1,)"), "12345678"), "Python objects"},
      {npy(dictOf("<c8", "(1,)"), "12345678"), "element type '<c8'"},
      {npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "1234"), "records"},
      {npy("{'descr': '<f4', 'shape': (1,), }", "1234"), "malformed"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", "1234"), "malformed"},
      {npy("{'descr': '<f4'", "1234"), "malformed"},
      {npy(dictOf("|b1", "(1,)"), "\7"), "neither 0 nor 1"},
      {npy(dictOf("|i1", "(1,)"), "\1", 9), "version 9"},
  };
  for (const auto& [text, reason] : cases) {
    EXPECT_NE(errorOf(text).find(reason), std::string::npos) << reason << " / " << errorOf(text);
  }
}

TEST(Npy, EveryTruncationIsRefused) {
  const std::string text = formatNpy(Tensor::from<float>({3}, std::vector<float>{1, 2, 3}));
  for (size_t n = 0; n < text.size(); ++n) EXPECT_FALSE(parse(text.substr(0, n)).ok()) << n;
}

TEST(Npz, RoundTripKeepsOrderAndNames) {
  const test::TempDir folder;
  const NamedTensors tensors{{"out1", Tensor::scalar(2.0f)},
                             {"in0", Tensor::from<int8_t>({3}, std::vector<int8_t>{1, 2, 3})},
                             {"a/b", Tensor::zeros(DType::Bool, {0, 4})}};
  ASSERT_TRUE(writeFile(folder / "x.npz", formatNpz(tensors)).ok());
  const auto back = require(readNpz(folder / "x.npz"));
  EXPECT_EQ(back, tensors);
  EXPECT_EQ(*readArrays(folder / "x.npz"), tensors);
}

TEST(Npz, StoredArraysAreBorrowedFromTheFile) {
  const test::TempDir folder;
  ASSERT_TRUE(writeFile(folder / "x.npz", formatNpz({{"a", Tensor::zeros(DType::Float64, {1000})}})).ok());
  auto tensors = require(readNpz(folder / "x.npz"));
  const std::byte* before = tensors[0].second.bytes().data();
  tensors[0].second.mutableAs<double>()[0] = 1;
  EXPECT_NE(tensors[0].second.bytes().data(), before);
}

TEST(ReadArrays, ReadsSingleArrays) {
  const test::TempDir folder;
  ASSERT_TRUE(writeFile(folder / "x.npy", formatNpy(Tensor::scalar(7))).ok());
  const auto arrays = require(readArrays(folder / "x.npy"));
  ASSERT_EQ(arrays.size(), 1u);
  EXPECT_EQ(arrays[0].first, "");
  EXPECT_EQ(arrays[0].second.integerAt(0), 7);
}

TEST(ReadArrays, OtherFilesAreRefused) {
  const test::TempDir folder;
  ASSERT_TRUE(writeFile(folder / "x.txt", "just text").ok());
  EXPECT_NE(errorOf(readArrays(folder / "x.txt")).find("x.txt: is not a zip archive"), std::string::npos);
  const std::pair<std::string, std::string> member{"readme.txt", "hello"};
  ASSERT_TRUE(writeFile(folder / "x.zip", writeZip(std::span(&member, 1))).ok());
  EXPECT_NE(errorOf(readArrays(folder / "x.zip")).find("'readme.txt' is not an array"), std::string::npos);
}

TEST(Npz, ReadsArchivesWrittenByNumpy) {
  CARINA_NEED_FIXTURES(fixtures);
  const auto files = test::filesIn(fixtures / "fixtures", ".npz");
  ASSERT_GT(files.size(), 100u);
  for (const auto& file : files) {
    if (file.generic_string().find("/hostile/") != std::string::npos) continue;
    const auto tensors = require(readNpz(file));
    EXPECT_FALSE(tensors.empty());
  }
}

}  // namespace
}  // namespace carina
