// SPDX-License-Identifier: Apache-2.0
// The rows of operators agree with each other and with the executor.
#include "aten/operator_facts.hpp"

#include <gtest/gtest.h>

#include "aten/executor.hpp"

namespace carina::aten {
namespace {

/// Whether the operator has an integer form for float operands, according to its row.
bool hasIntegerForm(const OperatorFacts& facts) {
  return facts.quantize != QuantizeRule::Float && facts.quantize != QuantizeRule::Conversion;
}

TEST(OperatorFacts, QuantizedOperatorsCanBeInferredAndExecuted) {
  for (const ir::OpDef& def : operators()) {
    const OperatorFacts& facts = factsOf(static_cast<OpId>(def.id));
    if (!hasIntegerForm(facts)) continue;
    EXPECT_TRUE(def.infer) << def.name;
    EXPECT_TRUE(canExecute(def)) << def.name;
  }
}

TEST(OperatorFacts, OperatorsWithoutARowHaveTheDefaults) {
  const ir::OpDef* def = findOperator("aten.matrix_exp.default");
  ASSERT_TRUE(def);
  const OperatorFacts& facts = factsOf(static_cast<OpId>(def->id));
  EXPECT_TRUE(facts.summary.empty());
  EXPECT_EQ(facts.quantize, QuantizeRule::Float);
  EXPECT_EQ(facts.cost, CostClass::Arithmetic);
}

TEST(OperatorFacts, RangesMatchTheFunctions) {
  EXPECT_EQ(factsOf(OpId::Sigmoid).range.min, 0);
  EXPECT_EQ(factsOf(OpId::Sigmoid).range.max, 1);
  EXPECT_EQ(factsOf(OpId::Tanh).range.min, -1);
  EXPECT_EQ(factsOf(OpId::Acos).domain.max, 1);
  EXPECT_GT(factsOf(OpId::Exp).range.max, 1e30f);
}

TEST(OperatorFacts, SamplesNameOperatorsThatHaveARow) {
  EXPECT_GT(operatorSamples().size(), 200u);
  for (const OperatorSample& sample : operatorSamples()) {
    const ir::OpDef* def = findOperator(sample.op);
    ASSERT_TRUE(def) << sample.op;
    EXPECT_FALSE(factsOf(static_cast<OpId>(def->id)).summary.empty()) << sample.op;
    EXPECT_TRUE(def->infer) << sample.op;
  }
}

}  // namespace
}  // namespace carina::aten
