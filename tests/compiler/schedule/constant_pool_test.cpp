// SPDX-License-Identifier: Apache-2.0
#include "compiler/schedule/constant_pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

namespace carina::compiler {
namespace {

std::vector<std::byte> repeated(int value, size_t count) {
  return std::vector<std::byte>(count, static_cast<std::byte>(value));
}

TEST(ConstantPool, EqualContentsAreStoredOnce) {
  ConstantPool pool;
  const auto a = repeated(1, 40), b = repeated(2, 40);
  EXPECT_EQ(pool.add(a), 0);
  EXPECT_EQ(pool.add(b), 48);
  EXPECT_EQ(pool.add(a), 0);
  EXPECT_EQ(pool.size(), 96);
}

TEST(ConstantPool, BytesAreKeptAliveUntilTheyAreCopied) {
  ConstantPool pool;
  auto shared = std::make_shared<const std::vector<std::byte>>(repeated(1, 40));
  const std::weak_ptr<const std::vector<std::byte>> alive = shared;
  EXPECT_EQ(pool.addShared(*shared, shared), 0);
  EXPECT_EQ(pool.addShared(ByteSpan(*shared).first(20), shared), 48);
  EXPECT_EQ(pool.addShared(repeated(1, 40), nullptr), 0) << "known: nothing is stored";
  shared.reset();
  EXPECT_FALSE(alive.expired());
  const std::vector<std::byte> bytes = pool.bytes();
  EXPECT_TRUE(alive.expired());
  ASSERT_EQ(bytes.size(), 80u);
  EXPECT_TRUE(std::equal(bytes.begin() + 48, bytes.begin() + 68, bytes.begin()));
  EXPECT_EQ(pool.add(repeated(1, 20)), 48);
}

TEST(ConstantPool, SmallConstantsShareALine) {
  ConstantPool pool;
  std::vector<std::vector<std::byte>> numbers;
  numbers.reserve(6);
  for (int n = 0; n < 6; ++n) numbers.push_back(repeated(n, n == 2 ? 1 : 4));
  const auto map = repeated(77, 20);
  const auto place = [&](const std::vector<std::byte>& bytes, int64_t alignment) {
    return pool.addLasting(bytes, ConstantPool::hashOf(bytes), alignment);
  };
  EXPECT_EQ(place(numbers[0], 4), 0);
  EXPECT_EQ(place(map, ConstantPool::kLine), 16);
  EXPECT_EQ(place(numbers[1], 4), 4);
  EXPECT_EQ(place(numbers[2], 1), 8);
  EXPECT_EQ(place(numbers[3], 4), 12);
  EXPECT_EQ(place(numbers[4], 4), 48);
  EXPECT_EQ(place(numbers[1], 4), 4);
  EXPECT_EQ(pool.size(), 64);
  // A constant that a transfer reads gets its own line.
  EXPECT_EQ(place(numbers[1], ConstantPool::kLine), 64);
  EXPECT_EQ(place(numbers[5], 4), 52);
  const std::vector<std::byte> bytes = std::move(pool).take();
  EXPECT_EQ(bytes.size(), 80u);
  EXPECT_TRUE(std::equal(numbers[1].begin(), numbers[1].end(), bytes.begin() + 4));
  EXPECT_TRUE(std::equal(numbers[5].begin(), numbers[5].end(), bytes.begin() + 52));
}

}  // namespace
}  // namespace carina::compiler
