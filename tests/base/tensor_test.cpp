// SPDX-License-Identifier: Apache-2.0
#include "base/tensor.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/float16.hpp"

namespace carina {
namespace {

TEST(Tensor, OwnedBytesAreAlignedAndZero) {
  const Tensor tensor = Tensor::zeros(DType::Int16, {3, 5});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.bytes().data()) % 64, 0u);
  EXPECT_EQ(tensor.numElements(), 15);
  EXPECT_EQ(tensor.numBytes(), 30);
  for (int16_t value : tensor.as<int16_t>()) EXPECT_EQ(value, 0);
}

TEST(Tensor, ScalarsAndEmptyTensors) {
  const Tensor scalar = Tensor::scalar(2.5f);
  EXPECT_EQ(scalar.rank(), 0);
  EXPECT_EQ(scalar.numElements(), 1);
  EXPECT_EQ(scalar.realAt(0), 2.5);
  const Tensor empty = Tensor::zeros(DType::Float32, {4, 0, 2});
  EXPECT_EQ(empty.numElements(), 0);
  EXPECT_TRUE(empty.bytes().empty());
  EXPECT_EQ(Tensor().numElements(), 0);
}

RC_GTEST_PROP(Tensor, WritingACopyLeavesTheOthersUnchanged, (const std::vector<int32_t>& values)) {
  RC_PRE(!values.empty());
  const Shape shape{static_cast<int64_t>(values.size())};
  const Tensor original = Tensor::from(shape, values);
  Tensor copy = original;
  RC_ASSERT(copy.bytes().data() == original.bytes().data());
  const size_t at = *rc::gen::inRange<size_t>(0, values.size());
  copy.mutableAs<int32_t>()[at] = ~values[at];
  RC_ASSERT(original == Tensor::from(shape, values));
  RC_ASSERT(copy.as<int32_t>()[at] == ~values[at]);
  RC_ASSERT(!(copy == original));
}

TEST(Tensor, UniqueTensorsAreWrittenInPlace) {
  Tensor tensor = Tensor::zeros(DType::Float32, {8});
  const std::byte* before = tensor.bytes().data();
  tensor.mutableAs<float>()[0] = 1.0f;
  EXPECT_EQ(tensor.bytes().data(), before);
}

TEST(Tensor, BorrowedBytesAreNeverWritten) {
  auto memory = std::make_shared<std::array<int32_t, 4>>(std::array<int32_t, 4>{1, 2, 3, 4});
  const ByteSpan bytes(reinterpret_cast<const std::byte*>(memory->data()), 16);
  Tensor tensor = Tensor::borrow(DType::Int32, {4}, bytes, memory);
  EXPECT_EQ(tensor.bytes().data(), bytes.data());
  tensor.mutableAs<int32_t>()[0] = 9;
  EXPECT_EQ((*memory)[0], 1);
  EXPECT_EQ(tensor.integerAt(0), 9);
}

TEST(Tensor, BorrowingKeepsTheOwnerAlive) {
  std::weak_ptr<std::array<float, 2>> watch;
  Tensor tensor;
  {
    auto memory = std::make_shared<std::array<float, 2>>(std::array<float, 2>{3.0f, 4.0f});
    watch = memory;
    const ByteSpan bytes(reinterpret_cast<const std::byte*>(memory->data()), 8);
    tensor = Tensor::borrow(DType::Float32, {2}, bytes, memory);
  }
  EXPECT_FALSE(watch.expired());
  EXPECT_EQ(tensor.realAt(1), 4.0);
  tensor = Tensor();
  EXPECT_TRUE(watch.expired());
}

TEST(Tensor, MisalignedBytesAreCopied) {
  auto memory = std::make_shared<std::vector<std::byte>>(4 * 3 + 1);
  const std::array<float, 3> values{1.0f, -2.0f, 0.5f};
  std::memcpy(memory->data() + 1, values.data(), 12);
  const Tensor tensor = Tensor::borrow(DType::Float32, {3}, ByteSpan(memory->data() + 1, 12), memory);
  EXPECT_NE(tensor.bytes().data(), memory->data() + 1);
  EXPECT_EQ(tensor.as<float>()[1], -2.0f);
}

TEST(Tensor, ReshapeAndBitcastShareBytes) {
  const Tensor tensor = Tensor::from<int8_t>({2, 3}, std::vector<int8_t>{-1, 0, 1, 2, 3, 4});
  const Tensor flat = tensor.reshaped({6});
  EXPECT_EQ(flat.bytes().data(), tensor.bytes().data());
  EXPECT_EQ(flat.shape(), (Shape{6}));
  EXPECT_EQ(tensor.bitcast(DType::UInt8).integerAt(0), 255);
}

TEST(Tensor, ElementAccessCoversEveryType) {
  for (DType dtype : {DType::Bool, DType::Int4, DType::Int8, DType::UInt8, DType::Int16, DType::UInt16,
                      DType::Int32, DType::UInt32, DType::Int48, DType::Int64, DType::Shape}) {
    Tensor tensor = Tensor::zeros(dtype, {2});
    const int64_t low = dtype == DType::Shape ? INT64_MIN : integerMin(dtype);
    tensor.setIntegerAt(0, low);
    tensor.setIntegerAt(1, integerMax(dtype));
    EXPECT_EQ(tensor.integerAt(0), low) << dtypeName(dtype);
    EXPECT_EQ(tensor.integerAt(1), integerMax(dtype)) << dtypeName(dtype);
    EXPECT_EQ(tensor.integers(), (std::vector<int64_t>{low, integerMax(dtype)})) << dtypeName(dtype);
    EXPECT_EQ(tensor.integers(1, 1), (std::vector<int64_t>{integerMax(dtype)})) << dtypeName(dtype);
  }
}

TEST(DType, NamesRoundTrip) {
  for (int i = 0; i <= static_cast<int>(DType::Shape); ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(dtypeFromName(dtypeName(dtype)), dtype);
    EXPECT_GT(dtypeSize(dtype), 0);
  }
  EXPECT_FALSE(dtypeFromName("complex64"));
}

TEST(Convert, FloatsToIntegersTruncateAndSaturate) {
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor source = Tensor::from<float>(
      {8}, std::vector<float>{1.9f, -1.9f, 300.0f, -300.0f, inf, -inf, std::nanf(""), 0.0f});
  const Tensor bytes = convert(source, DType::Int8);
  EXPECT_EQ(std::vector<int8_t>(bytes.as<int8_t>().begin(), bytes.as<int8_t>().end()),
            (std::vector<int8_t>{1, -1, 127, -128, 127, -128, 0, 0}));
  const Tensor wide = convert(source, DType::Int64);
  EXPECT_EQ(wide.integerAt(4), INT64_MAX);
  EXPECT_EQ(wide.integerAt(5), INT64_MIN);
  const Tensor flags = convert(source, DType::Bool);
  EXPECT_EQ(flags.integerAt(0), 1);
  EXPECT_EQ(flags.integerAt(7), 0);
}

TEST(Convert, IntegersSaturateIntoNarrowerTypes) {
  const Tensor source = Tensor::from<int64_t>({3}, std::vector<int64_t>{INT64_MIN, 5, INT64_MAX});
  const Tensor narrow = convert(source, DType::UInt16);
  EXPECT_EQ(narrow.integerAt(0), 0);
  EXPECT_EQ(narrow.integerAt(1), 5);
  EXPECT_EQ(narrow.integerAt(2), 65535);
}

RC_GTEST_PROP(Convert, IntegersRoundTripThroughDouble, (const std::vector<int32_t>& values)) {
  const Tensor source = Tensor::from({static_cast<int64_t>(values.size())}, values);
  RC_ASSERT(convert(convert(source, DType::Float64), DType::Int32) == source);
}

TEST(Convert, HalvesRoundToNearestEven) {
  const Tensor source = Tensor::from<float>({2}, std::vector<float>{1.00048828125f, 1.00146484375f});
  const Tensor half = convert(source, DType::Float16);
  EXPECT_EQ(half.as<uint16_t>()[0], 0x3c00);
  EXPECT_EQ(half.as<uint16_t>()[1], 0x3c02);
  EXPECT_EQ(half.realAt(1), static_cast<double>(halfToFloat(0x3c02)));
}

TEST(NamedTensors, FindByName) {
  const NamedTensors tensors{{"in0", Tensor::scalar(1)}, {"in1", Tensor::scalar(2)}};
  ASSERT_NE(findTensor(tensors, "in1"), nullptr);
  EXPECT_EQ(findTensor(tensors, "in1")->integerAt(0), 2);
  EXPECT_EQ(findTensor(tensors, "in2"), nullptr);
}

}  // namespace
}  // namespace carina
