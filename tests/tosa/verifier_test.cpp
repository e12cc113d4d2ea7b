// SPDX-License-Identifier: Apache-2.0
// Profiles, extensions, levels, and that inference refuses wrong operands at creation.
#include <gtest/gtest.h>

#include "tosa/graph_helpers.hpp"

namespace carina::test {
namespace {

std::string complaint(const Status& status) {
  Status copy = status;
  return copy.ok() ? "" : copy.error().str();
}

ir::Graph floatAdd() {
  return binaryGraph(DType::Float32, 4, [](ir::Builder& b, ir::Value* x, ir::Value* y) {
    return tosa::Add::create(b, x, y).output();
  });
}

TEST(TosaVerifier, ProfilesAndExtensions) {
  const ir::Graph graph = floatAdd();
  EXPECT_EQ(complaint(tosa::verify(graph)), "");
  const std::string text = complaint(tosa::verify(graph, {tosa::kIntegerExtensions, &tosa::kLevel8K}));
  EXPECT_NE(text.find("needs PRO-FP"), std::string::npos) << text;
  EXPECT_NE(text.find("(ProfileOrExtension)"), std::string::npos) << text;

  const ir::Graph rounded = rescaleGraph({.mode = tosa::RoundingMode::DOUBLE_ROUND}, 1);
  EXPECT_EQ(complaint(tosa::verify(rounded)), "");
  EXPECT_NE(complaint(tosa::verify(rounded, {tosa::kProInt, &tosa::kLevel8K})).find("EXT-DOUBLEROUND"),
            std::string::npos);

  const ir::Graph wide = rescaleGraph({.from = DType::Int48, .multiplier = 1 << 14, .scale32 = false}, 1);
  EXPECT_NE(complaint(tosa::verify(wide, {tosa::kProInt, &tosa::kLevel8K})).find("EXT-INT16"),
            std::string::npos);
}

TEST(TosaVerifier, LevelsBoundSizes) {
  ir::Graph graph;
  ir::Builder b(graph);
  ir::Value* x = graph.addInput({DType::Int8, {1, 9000, 1, 1}}, "x");
  const auto pool = tosa::MaxPool2d::create(b, x, {9000, 1}, {1, 1}, {0, 0, 0, 0}, tosa::NanMode::PROPAGATE);
  graph.setOutputs({pool.output()});
  EXPECT_NE(complaint(tosa::verify(graph)).find("kernel size 9000 is beyond 8192"), std::string::npos);
  EXPECT_EQ(complaint(tosa::verify(graph, {tosa::kAllExtensions, &tosa::kLevelNone})), "");

  ir::Graph deep;
  ir::Builder d(deep);
  ir::Value* y = deep.addInput({DType::Int32, {1, 1, 1, 1, 1, 1, 2}}, "y");
  deep.setOutputs({tosa::Identity::create(d, y).output()});
  EXPECT_NE(complaint(tosa::verify(deep)).find("rank 7"), std::string::npos);
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
  const auto good = conv(0, DType::Int48);
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(ir::typeText((*good)->result()->type), "i48[1,4,4,8]");
  const auto zero = conv(1, DType::Int48);
  ASSERT_FALSE(zero.ok());
  EXPECT_NE(zero.error().str().find("(InputZeroPointNotZero)"), std::string::npos);
  const auto acc = conv(0, DType::Int32);
  ASSERT_FALSE(acc.ok());
  EXPECT_NE(acc.error().str().find("(WrongAccumulatorType)"), std::string::npos);
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
  EXPECT_EQ(complaint(tosa::verify(graph)), "");
  spec.types = {{DType::Int8, {2}}};
  EXPECT_TRUE(b.tryCreate(spec).ok());
  EXPECT_NE(complaint(tosa::verify(graph)).find("(WrongOutputType)"), std::string::npos);
}

TEST(TosaTable, EveryOperatorIsFoundByName) {
  EXPECT_EQ(tosa::operators().size(), 73u);  // 75 opcodes without CONST and CONST_SHAPE
  for (const ir::OpDef& def : tosa::operators()) EXPECT_EQ(tosa::findOperator(def.name), &def);
  EXPECT_EQ(tosa::findOperator("tosa.FULLY_CONNECTED"), nullptr);
}

}  // namespace
}  // namespace carina::test
