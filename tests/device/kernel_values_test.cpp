// SPDX-License-Identifier: Apache-2.0
// Results of kernel calls, stored as differences: every value is restored exactly, and a slice costs only its
// own bytes.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "device/run.hpp"

namespace carina::device {
namespace {

RC_GTEST_PROP(KernelValues, AreRestoredExactly, ()) {
  const auto size = *rc::gen::inRange<int64_t>(0, 40);
  Tensor now = Tensor::zeros(DType::Int16, {size});
  KernelValues recorder, reader;
  for (int call = 0; call < 10; ++call) {
    const auto value = *rc::gen::inRange<int32_t>(0, 3);
    for (const auto at : *rc::gen::container<std::vector<int64_t>>(rc::gen::inRange<int64_t>(0, 40))) {
      if (at < size) now.setIntegerAt(at, *rc::gen::arbitrary<int16_t>());
    }
    const KernelResult result = recorder.record(7, value, now);
    const Tensor& replayed = reader.replay(result);
    RC_ASSERT(replayed.dtype() == now.dtype());
    RC_ASSERT(replayed.shape() == now.shape());
    RC_ASSERT(std::ranges::equal(replayed.bytes(), now.bytes()));
  }
}

TEST(KernelValues, ASliceCostsOnlyItsOwnBytes) {
  Tensor now = Tensor::zeros(DType::Int8, {1000, 16});
  KernelValues values;
  EXPECT_TRUE(values.record(0, 1, now).contents.has_value());
  for (int64_t i = 0; i < 16; ++i) now.setIntegerAt(48 + i, 1 + i);
  const KernelResult slice = values.record(0, 1, now);
  EXPECT_FALSE(slice.contents.has_value());
  EXPECT_EQ(slice.offset, 48u);
  EXPECT_EQ(slice.changed.size(), 16u);
  EXPECT_TRUE(values.record(0, 1, now).changed.empty());
}

}  // namespace
}  // namespace carina::device
