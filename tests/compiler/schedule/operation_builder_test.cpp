// SPDX-License-Identifier: Apache-2.0
#include "compiler/schedule/operation_builder.hpp"

#include <gtest/gtest.h>

namespace carina::compiler {
namespace {

npu::KernelOperation copyOf(const npu::Target& target, npu::ElementType from, npu::ElementType to) {
  npu::KernelOperation op;
  op.kind = npu::OperationKind::Pool;
  op.pool = target.isU85() ? npu::PoolMode::Sum : npu::PoolMode::Average;
  op.ifm.type = from;
  op.ofm.type = to;
  op.ofmScale = {1 << 30, 31, 0, npu::Rounding::Natural};
  return op;
}

TEST(AsProduct, TakesCopiesWithTheirScalesAndTables) {
  for (const char* name : {"ethos-u55-128", "ethos-u65-512", "ethos-u85-256"}) {
    const npu::Target& target = **npu::findTarget(name);
    npu::KernelOperation copy = copyOf(target, npu::ElementType::Int16, npu::ElementType::Int8);
    copy.ifm.zeroPoint = 3;
    copy.activation.table = npu::Table::Lut8;
    const auto product = asProduct(copy, target);
    ASSERT_TRUE(product) << name;
    EXPECT_EQ(product->kind, npu::OperationKind::Elementwise);
    EXPECT_EQ(product->elementwise.mode, npu::ElementwiseMode::Mul);
    EXPECT_EQ(product->elementwise.scalar, 1);
    EXPECT_EQ(product->ifm, copy.ifm);
    EXPECT_EQ(product->ofmScale, copy.ofmScale);
    EXPECT_EQ(product->activation, copy.activation);
  }
}

TEST(AsProduct, LeavesWhatMovesOrIsShiftedOnly) {
  const npu::Target &u55 = **npu::findTarget("ethos-u55-128"), &u85 = **npu::findTarget("ethos-u85-256");
  using npu::ElementType;
  npu::KernelOperation op = copyOf(u85, ElementType::Int8, ElementType::Int8);
  op.transpose = npu::Transpose::CHW;
  EXPECT_FALSE(asProduct(op, u85));
  op = copyOf(u85, ElementType::Int8, ElementType::Int8);
  op.kernel.strideX = 2;
  EXPECT_FALSE(asProduct(op, u85));
  op = copyOf(u85, ElementType::Int8, ElementType::Int8);
  op.upscale = npu::Upscale::Nearest;
  EXPECT_FALSE(asProduct(op, u85));
  op = copyOf(u85, ElementType::Int8, ElementType::Int8);
  op.pool = npu::PoolMode::Max;
  EXPECT_FALSE(asProduct(op, u85));
  EXPECT_FALSE(asProduct(copyOf(u85, ElementType::Int32, ElementType::Int8), u85));
  EXPECT_TRUE(asProduct(copyOf(u85, ElementType::Int8, ElementType::Int32), u85));
  EXPECT_FALSE(asProduct(copyOf(u55, ElementType::Int8, ElementType::Int32), u55));
}

}  // namespace
}  // namespace carina::compiler
