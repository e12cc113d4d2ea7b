// SPDX-License-Identifier: Apache-2.0
// The lowering rules match what the operators' rows say about TOSA.
#include "lower/rules.hpp"

#include <gtest/gtest.h>

#include "aten/operator_facts.hpp"

namespace carina::lower {
namespace {

TEST(Rules, MatchTheOperatorRows) {
  for (const ir::OpDef& def : aten::operators()) {
    const aten::TosaForm form = aten::factsOf(static_cast<aten::OpId>(def.id)).tosa;
    EXPECT_EQ(findRule(def) != nullptr, form != aten::TosaForm::None) << def.name;
  }
}

}  // namespace
}  // namespace carina::lower
