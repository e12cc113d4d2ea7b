// SPDX-License-Identifier: Apache-2.0
#include "lower/single_precision.hpp"

#include <gtest/gtest.h>

#include "aten/executor.hpp"
#include "aten/ops.hpp"
#include "fake_quant.hpp"
#include "ir/verifier.hpp"
#include "support/graph_maker.hpp"
#include "support/require.hpp"

namespace carina::lower::test {
namespace {

TEST(SinglePrecision, ANetworkInHalfIsComputedInFloat32) {
  for (const DType type : {DType::Float16, DType::BFloat16, DType::Float64}) {
    carina::test::GraphMaker n;
    ir::Value* x = n.input({2, 3}, type);
    ir::Value* weight = n.graph.addConstant(convert(randomFloats({4, 3}, 1), type));
    ir::Value* wide = n.make<aten::ToDtype>(x, DType::Float32, false, false, std::nullopt);
    ir::Value* back = n.make<aten::ToDtype>(wide, type, false, false, std::nullopt);
    n.graph.setOutputs({n.make<aten::Linear>(back, weight, nullptr)});
    EXPECT_EQ(toSinglePrecision(n.graph), std::vector<DType>{type});
    EXPECT_EQ(n.graph.inputs()[0]->dtype(), DType::Float32);
    EXPECT_EQ(n.graph.outputs()[0]->dtype(), DType::Float32);
    const auto result = require(aten::execute(n.graph, {{randomFloats({2, 3}, 2)}}));
    EXPECT_EQ(result[0].dtype(), DType::Float32);
  }
}

TEST(SinglePrecision, ResultsInHalfBecomeFloat32) {
  for (const DType type : {DType::Float16, DType::BFloat16}) {
    carina::test::GraphMaker n;
    ir::Value* x = n.input({2});
    n.graph.setOutputs({n.make<aten::ToDtype>(x, type, false, false, std::nullopt)});
    EXPECT_EQ(toSinglePrecision(n.graph), std::vector<DType>{type});
    EXPECT_EQ(n.graph.outputs()[0]->dtype(), DType::Float32);
  }
}

TEST(SinglePrecision, SoftmaxFromHalfToFloatHasNothingLeftToWiden) {
  carina::test::GraphMaker n;
  ir::Value* x = n.input({2, 3}, DType::Float16);
  n.graph.setOutputs({n.make<aten::PrivateSoftmax>(x, int64_t{1}, true)});
  toSinglePrecision(n.graph);
  EXPECT_TRUE(ir::verify(n.graph).ok());
  EXPECT_TRUE(aten::execute(n.graph, {{randomFloats({2, 3}, 2)}}).ok());
}

/// There are no kernels for double either.
TEST(SinglePrecision, DoubleBetweenFloat32ValuesBecomesFloat32) {
  carina::test::GraphMaker n;
  ir::Value* x = n.input({2});
  ir::Value* wide = n.make<aten::ToDtype>(x, DType::Float64, false, false, std::nullopt);
  ir::Value* doubled = n.make<aten::MulScalar>(wide, 2.0);
  ir::Value* back = n.make<aten::ToDtype>(doubled, DType::Float32, false, false, std::nullopt);
  n.graph.setOutputs({back, wide});
  EXPECT_EQ(toSinglePrecision(n.graph), std::vector<DType>{DType::Float64});
  EXPECT_EQ(doubled->dtype(), DType::Float32);
  EXPECT_EQ(wide->dtype(), DType::Float32);
  EXPECT_TRUE(ir::verify(n.graph).ok());
}

TEST(SinglePrecision, ConstantsComputedInDoubleStay) {
  carina::test::GraphMaker n;
  ir::Value* x = n.input({2});
  ir::Value* constant = n.graph.addConstant(randomFloats({2}, 1));
  ir::Value* wide = n.make<aten::ToDtype>(constant, DType::Float64, false, false, std::nullopt);
  ir::Value* rounded =
      n.make<aten::ToDtype>(n.make<aten::MulScalar>(wide, 0.1), DType::Float32, false, false, std::nullopt);
  n.graph.setOutputs({n.make<aten::AddTensor>(x, rounded)});
  EXPECT_TRUE(toSinglePrecision(n.graph).empty());
  EXPECT_EQ(wide->dtype(), DType::Float64);
}

}  // namespace
}  // namespace carina::lower::test
