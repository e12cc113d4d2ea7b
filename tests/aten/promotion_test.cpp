// SPDX-License-Identifier: Apache-2.0
#include "aten/promotion.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace carina::aten {
namespace {

const Shape kVector{1}, kScalar{};

DType promoted(const std::vector<ir::Type>& tensors, const std::vector<ir::Attribute>& numbers = {}) {
  Promotion promotion;
  for (const ir::Type& type : tensors) promotion.add(type);
  for (const ir::Attribute& number : numbers) promotion.add(number);
  auto type = promotion.type();
  EXPECT_TRUE(type.ok());
  return type.ok() ? *type : DType::Bool;
}

TEST(Promotion, TensorsOutrankScalarsAndScalarsNumbers) {
  EXPECT_EQ(promoted({{DType::Int32, kVector}}, {1.5}), DType::Float32);
  EXPECT_EQ(promoted({{DType::UInt8, kVector}, {DType::Int8, kVector}}), DType::Int16);
  EXPECT_EQ(promoted({{DType::Float16, kVector}}, {1.5}), DType::Float16);
  EXPECT_EQ(promoted({{DType::Float16, kVector}, {DType::Float64, kScalar}}), DType::Float16);
  EXPECT_EQ(promoted({{DType::Int32, kVector}, {DType::Float64, kScalar}}), DType::Float64);
  EXPECT_EQ(promoted({{DType::Int64, kScalar}, {DType::Int8, kVector}}), DType::Int8);
  EXPECT_EQ(promoted({{DType::Bool, kVector}, {DType::Bool, kVector}}), DType::Bool);
  EXPECT_EQ(promoted({{DType::Bool, kVector}}, {int64_t{1}}), DType::Int64);
  EXPECT_EQ(promoted({{DType::Bool, kVector}}, {2.0}), DType::Float32);
  EXPECT_EQ(promoted({{DType::Float16, kVector}, {DType::BFloat16, kVector}}), DType::Float32);
  EXPECT_EQ(promoted({{DType::Int8, kVector}}, {int64_t{300}}), DType::Int8);
}

TEST(Promotion, WideUnsignedTypesMixWithNothing) {
  Promotion promotion;
  promotion.add(ir::Type{DType::UInt16, kVector}).add(ir::Type{DType::Int32, kVector});
  EXPECT_FALSE(promotion.type().ok());
  EXPECT_EQ(promoted({{DType::UInt16, kVector}, {DType::UInt16, kVector}}), DType::UInt16);
}

RC_GTEST_PROP(Promotion, JoinIsCommutativeAndAbsorbs, ()) {
  const std::vector<DType> types{DType::Bool,    DType::Int8,   DType::UInt8,   DType::Int16,
                                 DType::Int32,   DType::Int64,  DType::Float16, DType::BFloat16,
                                 DType::Float32, DType::Float64};
  const DType a = *rc::gen::elementOf(types), b = *rc::gen::elementOf(types);
  const auto joined = joinTypes(a, b);
  RC_ASSERT(joined.has_value());
  RC_ASSERT(joinTypes(b, a) == joined);
  RC_ASSERT(joinTypes(a, *joined) == joined);
}

}  // namespace
}  // namespace carina::aten
