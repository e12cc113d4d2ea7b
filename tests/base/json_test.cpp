// SPDX-License-Identifier: Apache-2.0
#include "base/json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace carina {
namespace {

using testing::HasSubstr;

std::string errorOfJson(std::string_view text, const JsonRules& rules = {}) {
  const auto parsed = parseJson(text, Code::Damaged, rules);
  return parsed.ok() ? "" : parsed.error().str();
}

TEST(Json, ErrorsNameLineAndColumn) {
  EXPECT_THAT(errorOfJson("{\n  \"a\": }"), HasSubstr("is not valid JSON: parse error at line 2, column 8"));
  EXPECT_THAT(errorOfJson(""), HasSubstr("line 1, column 1"));
  EXPECT_THAT(errorOfJson("[1] [2]"), HasSubstr("line 1, column 5"));
  EXPECT_THAT(errorOfJson("\"\xff\""), HasSubstr("invalid string"));
}

TEST(Json, ErrorsHaveTheCallersCode) {
  EXPECT_EQ(parseJson("{", Code::BadConfiguration).error().diagnostics().front().code,
            Code::BadConfiguration);
}

TEST(Json, DepthIsLimited) {
  const auto nested = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(errorOfJson(nested(4), {.depth = 4}), "");
  EXPECT_THAT(errorOfJson(nested(6), {.depth = 4}), HasSubstr("is nested too deeply"));
  EXPECT_THAT(errorOfJson(std::string(1 << 20, '[')), HasSubstr("is nested too deeply"));
}

TEST(Json, CommentsAndRepeatedKeysAreAMatterOfTheRules) {
  constexpr const char* kComment = "// one\n{}";
  constexpr const char* kTwice = R"({"a": {"b": 1}, "c": {"b": 2, "b": 3}})";
  EXPECT_THAT(errorOfJson(kComment), HasSubstr("is not valid JSON"));
  EXPECT_EQ(errorOfJson(kComment, {.comments = true}), "");
  EXPECT_EQ((*parseJson(kTwice))["c"]["b"], 3);
  EXPECT_THAT(errorOfJson(kTwice, {.uniqueKeys = true}), HasSubstr("contains 'b' twice in one object"));
}

}  // namespace
}  // namespace carina
