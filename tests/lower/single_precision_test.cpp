// SPDX-License-Identifier: Apache-2.0
#include "lower/single_precision.hpp"

#include <gtest/gtest.h>

#include "aten/executor.hpp"
#include "aten/ops.hpp"
#include "fake_quant.hpp"
#include "ir/verifier.hpp"
#include "support/require.hpp"

namespace carina::lower::test {
namespace {

TEST(SinglePrecision, ANetworkInHalfIsComputedInFloat32) {
  for (const DType type : {DType::Float16, DType::BFloat16, DType::Float64}) {
    ir::Graph graph;
    ir::Builder b(graph);
    ir::Value* x = graph.addInput({type, {2, 3}}, "x");
    ir::Value* weight = graph.addConstant(convert(randomFloats({4, 3}, 1), type));
    ir::Value* wide = aten::ToDtype::create(b, x, DType::Float32, false, false, std::nullopt).output();
    ir::Value* back = aten::ToDtype::create(b, wide, type, false, false, std::nullopt).output();
    graph.setOutputs({aten::Linear::create(b, back, weight, nullptr).output()});
    EXPECT_EQ(toSinglePrecision(graph), std::vector<DType>{type});
    EXPECT_EQ(graph.inputs()[0]->dtype(), DType::Float32);
    EXPECT_EQ(graph.outputs()[0]->dtype(), DType::Float32);
    const auto result = require(aten::execute(graph, {{randomFloats({2, 3}, 2)}}));
    EXPECT_EQ(result[0].dtype(), DType::Float32);
  }
}

TEST(SinglePrecision, ResultsInHalfBecomeFloat32) {
  for (const DType type : {DType::Float16, DType::BFloat16}) {
    ir::Graph graph;
    ir::Builder b(graph);
    ir::Value* x = graph.addInput({DType::Float32, {2}}, "x");
    graph.setOutputs({aten::ToDtype::create(b, x, type, false, false, std::nullopt).output()});
    EXPECT_EQ(toSinglePrecision(graph), std::vector<DType>{type});
    EXPECT_EQ(graph.outputs()[0]->dtype(), DType::Float32);
  }
}

TEST(SinglePrecision, SoftmaxFromHalfToFloatHasNothingLeftToWiden) {
  ir::Graph graph;
  ir::Builder b(graph);
  ir::Value* x = graph.addInput({DType::Float16, {2, 3}}, "x");
  graph.setOutputs({aten::PrivateSoftmax::create(b, x, 1, true).output()});
  toSinglePrecision(graph);
  EXPECT_TRUE(ir::verify(graph).ok());
  EXPECT_TRUE(aten::execute(graph, {{randomFloats({2, 3}, 2)}}).ok());
}

TEST(SinglePrecision, AConversionToDoubleInAFloat32NetworkStays) {
  ir::Graph graph;
  ir::Builder b(graph);
  ir::Value* x = graph.addInput({DType::Float32, {2}}, "x");
  graph.setOutputs({aten::ToDtype::create(b, x, DType::Float64, false, false, std::nullopt).output()});
  EXPECT_TRUE(toSinglePrecision(graph).empty());
  EXPECT_EQ(graph.outputs()[0]->dtype(), DType::Float64);
}

}  // namespace
}  // namespace carina::lower::test
