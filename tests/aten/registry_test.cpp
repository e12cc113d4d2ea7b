// SPDX-License-Identifier: Apache-2.0
// The operator table, type inference and the kernels agree on which operators are supported.
#include <gtest/gtest.h>

#include "aten/executor.hpp"
#include "aten/ops.hpp"

namespace carina::aten {
namespace {

TEST(AtenTable, HoldsTheSchemas) {
  EXPECT_GT(operators().size(), 1300u);
  const ir::OpDef* conv = findOperator("aten.conv2d.default");
  ASSERT_NE(conv, nullptr);
  EXPECT_EQ(conv->operands.size(), 3u);
  EXPECT_EQ(conv->operands[2].arity, ir::Arity::Optional);
  EXPECT_EQ(conv->attributes[static_cast<size_t>(conv->attributeIndex("stride"))].defaultText, "[1, 1]");
  EXPECT_TRUE(findOperator("aten.add.Tensor")->has(ir::kCoreAten));
  EXPECT_TRUE(findOperator("aten.add.Tensor")->has(ir::kPointwise));
  EXPECT_TRUE(findOperator("aten.hardtanh_.default")->has(ir::kInPlace));
  EXPECT_FALSE(findOperator("aten.hardtanh_.default")->has(ir::kPure));
  EXPECT_EQ(findOperator("aten.nonsense.default"), nullptr);
}

TEST(AtenTable, EveryDefaultCanBeRead) {
  for (const ir::OpDef& def : operators()) {
    for (const ir::AttributeDef& attribute : def.attributes) {
      if (attribute.defaultText.empty()) continue;
      EXPECT_TRUE(ir::parseAttribute(attribute, attribute.defaultText).ok())
          << def.name << " " << attribute.name << "=" << attribute.defaultText;
    }
  }
}

TEST(AtenTable, OperatorsWithAnInferenceRuleHaveAKernel) {
  size_t supported = 0;
  for (const ir::OpDef& def : operators()) {
    if (!def.infer || def.has(ir::kInPlace)) continue;
    EXPECT_TRUE(canExecute(def)) << def.name << " has an inference rule but no kernel";
    ++supported;
  }
  EXPECT_GT(supported, 380u);
}

TEST(AtenTable, OperatorsWithAKernelHaveAnInferenceRule) {
  for (const ir::OpDef& def : operators()) {
    if (!canExecute(def)) continue;
    EXPECT_NE(def.infer, nullptr) << def.name << " has a kernel but no inference rule";
  }
}

}  // namespace
}  // namespace carina::aten
