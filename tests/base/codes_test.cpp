// SPDX-License-Identifier: Apache-2.0
#include "base/codes.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/result.hpp"

namespace carina {
namespace {

TEST(Codes, IdsAreUniqueAndSortedAndEveryRowHasAnExplanation) {
  std::string previous;
  std::set<std::string_view> titles;
  for (const CodeInfo& info : allCodes()) {
    const std::string id = codeId(info.code);
    EXPECT_EQ(id.size(), 5u);
    EXPECT_LT(previous, id);
    previous = id;
    EXPECT_TRUE(titles.insert(info.title).second) << info.title;
    EXPECT_EQ(info.explanation.back(), '.') << id;
    EXPECT_EQ(findCode(id), &info);
  }
}

TEST(Codes, LookupIgnoresCaseAndNeedsTheWholeId) {
  ASSERT_NE(findCode("e0104"), nullptr);
  EXPECT_EQ(findCode("e0104")->code, Code::Damaged);
  EXPECT_EQ(findCode("E01"), nullptr);
  EXPECT_EQ(findCode("E01044"), nullptr);
  EXPECT_EQ(findCode(""), nullptr);
  EXPECT_EQ(codeId(Code::None), "");
}

TEST(Codes, SurviveContextAddedToTheDiagnostic) {
  const Error error =
      fail(Code::TooLarge, "{} elements", 7).at("node").inFile("net.pt2").withRemedy("split it");
  EXPECT_EQ(error.code(), Code::TooLarge);
  EXPECT_EQ(error.str(), "net.pt2: node: 7 elements\n  split it");
}

}  // namespace
}  // namespace carina
