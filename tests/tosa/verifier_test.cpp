// SPDX-License-Identifier: Apache-2.0
// Profiles, extensions, levels, and that inference refuses wrong operands at creation.
#include <gtest/gtest.h>

#include "support/require.hpp"
#include "tosa/graph_helpers.hpp"

namespace carina::test {
namespace {

ir::Graph floatAdd() {
  return binaryGraph<tosa::Add>(DType::Float32, 4);
}

TEST(TosaVerifier, ProfilesAndExtensions) {
  const ir::Graph graph = floatAdd();
  EXPECT_EQ(errorOf(tosa::verify(graph)), "");
  const std::string error = errorOf(tosa::verify(graph, {tosa::kIntegerExtensions, &tosa::kLevel8K}));
  EXPECT_NE(error.find("needs PRO-FP"), std::string::npos) << error;
  EXPECT_NE(error.find("(ProfileOrExtension)"), std::string::npos) << error;

  const ir::Graph rounded = rescaleGraph({.mode = tosa::RoundingMode::DOUBLE_ROUND}, 1);
  EXPECT_EQ(errorOf(tosa::verify(rounded)), "");
  EXPECT_NE(errorOf(tosa::verify(rounded, {tosa::kProInt, &tosa::kLevel8K})).find("EXT-DOUBLEROUND"),
            std::string::npos);

  const ir::Graph wide = rescaleGraph({.from = DType::Int48, .multiplier = 1 << 14, .scale32 = false}, 1);
  EXPECT_NE(errorOf(tosa::verify(wide, {tosa::kProInt, &tosa::kLevel8K})).find("EXT-INT16"),
            std::string::npos);
}

TEST(TosaVerifier, LevelsBoundSizes) {
  GraphMaker wide;
  wide.graph.setOutputs(
      {wide.make<tosa::MaxPool2d>(wide.input({1, 9000, 1, 1}, DType::Int8), ir::Ints{9000, 1}, ir::Ints{1, 1},
                                  ir::Ints{0, 0, 0, 0}, tosa::NanMode::PROPAGATE)});
  EXPECT_NE(errorOf(tosa::verify(wide.graph)).find("kernel size 9000 exceeds 8192"), std::string::npos);
  EXPECT_EQ(errorOf(tosa::verify(wide.graph, {tosa::kAllExtensions, &tosa::kLevelNone})), "");

  GraphMaker deep;
  deep.graph.setOutputs({deep.make<tosa::Identity>(deep.input({1, 1, 1, 1, 1, 1, 2}, DType::Int32))});
  EXPECT_NE(errorOf(tosa::verify(deep.graph)).find("rank 7"), std::string::npos);
}

TEST(TosaVerifier, InferenceGivesTypesAndRefusesWrongOperands) {
  ir::Graph graph;
  ir::Builder b(graph);
  ir::Value* x = graph.addInput({DType::Int16, {1, 4, 4, 3}}, "x");
  const auto conv = [&](int64_t inputZero, DType acc) {
    ir::NodeSpec spec;
    spec.def = &tosa::Conv2d::def();
    spec.operands = {{x},
                     {b.constant(Tensor::zeros(DType::Int8, {8, 3, 3, 3}))},
                     {b.constant(Tensor::zeros(DType::Int48, {8}))},
                     {b.constant(list(DType::Int16, {inputZero}))},
                     {b.constant(list(DType::Int8, {0}))}};
    spec.attributes = {ir::Ints{1, 1, 1, 1}, ir::Ints{1, 1}, ir::Ints{1, 1}, false, acc};
    return b.tryCreate(std::move(spec));
  };
  const auto good = require(conv(0, DType::Int48));
  EXPECT_EQ(ir::typeText(good->result()->type), "i48[1,4,4,8]");
  EXPECT_NE(errorOf(conv(1, DType::Int48)).find("(InputZeroPointNotZero)"), std::string::npos);
  EXPECT_NE(errorOf(conv(0, DType::Int32)).find("(WrongAccumulatorType)"), std::string::npos);
}

TEST(TosaVerifier, CastNeedsItsResultType) {
  ir::Graph graph;
  ir::Builder b(graph);
  ir::NodeSpec spec;
  spec.def = &tosa::Cast::def();
  spec.operands = {{graph.addInput({DType::Int8, {2}}, "x")}};
  EXPECT_FALSE(b.tryCreate(spec).ok());
  spec.types = {{DType::Int32, {2}}};
  EXPECT_TRUE(b.tryCreate(spec).ok());
  EXPECT_EQ(errorOf(tosa::verify(graph)), "");
  spec.types = {{DType::Int8, {2}}};
  EXPECT_TRUE(b.tryCreate(spec).ok());
  EXPECT_NE(errorOf(tosa::verify(graph)).find("(WrongOutputType)"), std::string::npos);
}

TEST(TosaTable, EveryOperatorIsFoundByName) {
  EXPECT_EQ(tosa::operators().size(), 73u);  // 75 opcodes without CONST and CONST_SHAPE
  for (const ir::OpDef& def : tosa::operators()) EXPECT_EQ(tosa::findOperator(def.name), &def);
  EXPECT_EQ(tosa::findOperator("tosa.FULLY_CONNECTED"), nullptr);
}

}  // namespace
}  // namespace carina::test
