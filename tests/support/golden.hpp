// SPDX-License-Identifier: Apache-2.0
// Golden files: expected texts under tests/golden. CARINA_UPDATE_GOLDENS=1 rewrites them; review the
// difference.
#pragma once

#include <gtest/gtest.h>

#include <string>

namespace carina::test {

/// Whether `text` equals tests/golden/NAME; otherwise reports the first line that differs.
/// EXPECT_TRUE(matchesGolden("pt2/linear.txt", ir::print(graph)));
::testing::AssertionResult matchesGolden(const std::string& name, const std::string& text);

}  // namespace carina::test
