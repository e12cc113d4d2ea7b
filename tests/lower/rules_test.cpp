// SPDX-License-Identifier: Apache-2.0
// What the rows of operators say of TOSA is what the rules are.
#include "lower/rules.hpp"

#include <gtest/gtest.h>

#include "aten/operator_facts.hpp"

namespace carina::lower {
namespace {

TEST(Rules, AreThoseThatTheRowsName) {
  for (const ir::OpDef& def : aten::operators()) {
    const aten::TosaForm form = aten::factsOf(static_cast<aten::OpId>(def.id)).tosa;
    EXPECT_EQ(findRule(def) != nullptr, form != aten::TosaForm::None) << def.name;
  }
}

}  // namespace
}  // namespace carina::lower
