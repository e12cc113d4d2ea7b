// SPDX-License-Identifier: Apache-2.0
#include "pt2/stored_tensor.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>

#include "support/require.hpp"

namespace carina::pt2 {
namespace {

/// A view of the values 0..n-1.
StoredTensor viewOf(int64_t n, Shape sizes, Shape strides, int64_t offset) {
  auto numbers = std::make_shared<std::vector<int32_t>>(static_cast<size_t>(n));
  std::iota(numbers->begin(), numbers->end(), 0);
  StoredTensor stored;
  stored.type = scalarTypeByName("int32");
  stored.sizes = std::move(sizes);
  stored.strides = std::move(strides);
  stored.offset = offset;
  stored.storage = std::as_bytes(std::span<const int32_t>(*numbers));
  stored.owner = numbers;
  return stored;
}

Result<Tensor> denseTensor(const StoredTensor& stored) {
  Budget budget = viewBudget(stored.storage.size());
  return pt2::denseTensor(stored, budget);
}

std::string errorOf(const StoredTensor& stored) {
  return errorOf(denseTensor(stored));
}

TEST(DenseTensor, DenseViewsBorrow) {
  const StoredTensor stored = viewOf(10, {2, 1, 3}, {3, 99, 1}, 4);
  const auto tensor = require(denseTensor(stored));
  EXPECT_EQ(tensor.bytes().data(), stored.storage.data() + 16);
  EXPECT_EQ(tensor.integerAt(5), 9);
}

RC_GTEST_PROP(DenseTensor, ElementsFollowTheStrides, ()) {
  const auto rank = *rc::gen::inRange<size_t>(0, 4);
  Shape sizes, strides;
  int64_t last = *rc::gen::inRange<int64_t>(0, 5);
  const int64_t offset = last;
  for (size_t d = 0; d < rank; ++d) {
    sizes.push_back(*rc::gen::inRange<int64_t>(1, 5));
    strides.push_back(*rc::gen::inRange<int64_t>(0, 9));
    last += (sizes[d] - 1) * strides[d];
  }
  const auto tensor = require(denseTensor(viewOf(last + 1, sizes, strides, offset)));
  const Shape dense = rowMajorStrides(sizes);
  for (int64_t i = 0; i < tensor.numElements(); ++i) {
    int64_t at = offset;
    for (size_t d = 0; d < rank; ++d) at += i / dense[d] % sizes[d] * strides[d];
    RC_ASSERT(tensor.integerAt(i) == at);
  }
  RC_ASSERT(!denseTensor(viewOf(last, sizes, strides, offset)).ok());
}

TEST(DenseTensor, ViewsOfOneStorageShareABudget) {
  Budget budget(100);
  const StoredTensor expanded = viewOf(1, {3, 5}, {0, 0}, 0);  // 60 bytes
  EXPECT_TRUE(pt2::denseTensor(expanded, budget).ok());
  EXPECT_FALSE(pt2::denseTensor(expanded, budget).ok());
  EXPECT_EQ(budget.left(), 40u);
  EXPECT_TRUE(pt2::denseTensor(viewOf(1000, {1000}, {1}, 0), budget).ok()) << "borrowed tensors cost nothing";
  EXPECT_NE(errorOf(viewOf(1, {1 << 30}, {0}, 0)).find("too much memory"), std::string::npos);
}

TEST(DenseTensor, ImpossibleViewsAreRefused) {
  constexpr int64_t kHuge = int64_t{1} << 62;
  EXPECT_NE(errorOf(viewOf(6, {7}, {1}, 0)).find("outside its storage of 6"), std::string::npos);
  EXPECT_NE(errorOf(viewOf(6, {1}, {1}, 6)).find("outside"), std::string::npos);
  EXPECT_NE(errorOf(viewOf(6, {2}, {-1}, 3)).find("negative stride"), std::string::npos);
  EXPECT_NE(errorOf(viewOf(6, {2}, {1}, -1)).find("negative offset"), std::string::npos);
  EXPECT_NE(errorOf(viewOf(6, {-2}, {1}, 0)).find("impossible shape"), std::string::npos);
  EXPECT_NE(errorOf(viewOf(6, {kHuge, kHuge}, {0, 0}, 0)).find("impossible shape"), std::string::npos);
  EXPECT_NE(errorOf(viewOf(6, {3}, {kHuge}, 0)).find("outside"), std::string::npos);
  EXPECT_NE(errorOf(viewOf(6, {kHuge}, {0}, 0)).find("too much memory"), std::string::npos);
  EXPECT_NE(errorOf(viewOf(6, {2, 3}, {1}, 0)).find("2 sizes but 1 strides"), std::string::npos);
  EXPECT_NE(errorOf(viewOf(0, {2}, {1}, 0)).find("fake tensors"), std::string::npos);
}

TEST(DenseTensor, EmptyTensorsNeedNoStorage) {
  const auto tensor = require(denseTensor(viewOf(0, {0, 6}, {6, 1}, 0)));
  EXPECT_EQ(tensor.shape(), (Shape{0, 6}));
}

TEST(DenseTensor, UnsupportedTypesAndBadBoolsAreRefused) {
  StoredTensor stored = viewOf(4, {2}, {1}, 0);
  stored.type = scalarTypeByName("complex64");
  EXPECT_NE(errorOf(stored).find("complex64, which is not supported"), std::string::npos);
  stored = viewOf(4, {4}, {1}, 4);
  stored.type = scalarTypeByName("bool");
  EXPECT_EQ(errorOf(stored), "");  // bytes 4..7 are 1 0 0 0
  stored.offset = 5;               // bytes 5..8 are 0 0 0 2
  EXPECT_NE(errorOf(stored).find("neither 0 nor 1"), std::string::npos);
}

TEST(ScalarType, NumbersAndNamesAgree) {
  for (int64_t number = 0; number < 40; ++number) {
    const ScalarType* type = scalarTypeByNumber(number);
    if (!type) continue;
    EXPECT_EQ(scalarTypeByName(type->name), type);
    if (!type->dtype) continue;
    EXPECT_EQ(dtypeSize(*type->dtype), type->size) << type->name;
  }
  EXPECT_EQ(scalarTypeByNumber(7)->dtype, DType::Float32);
  EXPECT_EQ(scalarTypeByStorage("HalfStorage")->dtype, DType::Float16);
  EXPECT_EQ(scalarTypeByNumber(14), nullptr);
}

}  // namespace
}  // namespace carina::pt2
