// SPDX-License-Identifier: Apache-2.0
#include "pt2/json.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace carina::pt2 {
namespace {

std::string errorOf(const std::string& text) {
  const auto json = JsonText::parse(text);
  return json.ok() ? "" : json.error().str();
}

TEST(Json, BareNonFiniteNumbersAreTreatedAsStrings) {
  const auto json = JsonText::parse(
      R"({"a": Infinity, "b": [-Infinity, NaN, 1.5, "NaN"], "c": "Infinity \" NaN", "d": 3})");
  ASSERT_TRUE(json.ok()) << json.error().str();
  const auto object = JsonObject::of(json->root(), "test");
  EXPECT_EQ(*jsonReal(*object->get("a"), "a"), INFINITY);
  std::vector<double> numbers;
  const auto list = object->getArray("b");
  for (JsonValue item : *list) numbers.push_back(*jsonReal(item, "b"));
  EXPECT_EQ(numbers[0], -INFINITY);
  EXPECT_TRUE(std::isnan(numbers[1]));
  EXPECT_EQ(numbers[2], 1.5);
  EXPECT_TRUE(std::isnan(numbers[3]));
  EXPECT_EQ(*object->getName("c"), "Infinity \" NaN");
  EXPECT_EQ(*jsonReal(*object->get("d"), "d"), 3.0);
}

TEST(Json, NestingIsLimited) {
  const auto nested = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(errorOf(nested(90)), "");
  EXPECT_NE(errorOf(nested(101)).find("nested more than 100"), std::string::npos);
  EXPECT_NE(errorOf(nested(1000000)).find("nested more than 100"), std::string::npos);
}

TEST(Json, RepeatedKeysAreRefused) {
  EXPECT_NE(errorOf(R"({"x": {"a": 1, "b": 2, "a": 3}})").find("the key 'a' twice"), std::string::npos);
  std::string many = "{";
  for (int i = 0; i < 100; ++i) many += fmt::format("\"k{}\": {}, ", i, i);
  EXPECT_EQ(errorOf(many + "\"last\": 0}"), "");
  EXPECT_NE(errorOf(many + "\"k3\": 0}").find("the key 'k3' twice"), std::string::npos);
  EXPECT_NE(errorOf(many + "\"k77\": 0}").find("the key 'k77' twice"), std::string::npos);
}

TEST(Json, MalformedTextsAreRefused) {
  for (const char* text :
       {"", "{", "{\"a\": }", "{\"a\": 1,}", "[1 2]", "\"\\u12\"", "{\"a\": Infinit}", "\xff"}) {
    EXPECT_NE(errorOf(text), "") << text;
  }
}

TEST(Json, AccessSaysWhatIsMissing) {
  const auto json = JsonText::parse(R"({"n": "text", "big": 9223372036854775807, "nothing": null})");
  const auto object = JsonObject::of(json->root(), "the node");
  EXPECT_EQ(object->getInt("absent").error().message(), "the node has no 'absent'");
  EXPECT_EQ(object->getInt("n").error().message(), "'n' of the node is not a 64-bit integer");
  EXPECT_EQ(*object->getInt("big"), INT64_MAX);
  EXPECT_FALSE(object->find("nothing"));
  EXPECT_TRUE(object->find("n"));
}

TEST(Json, UnionsHaveOneKey) {
  const auto json = JsonText::parse(R"([{"as_int": 3}, {}, {"a": 1, "b": 2}, 7])");
  std::vector<bool> ok;
  const auto list = jsonArray(json->root(), "list");
  for (JsonValue item : *list) ok.push_back(jsonTagged(item, "a union").ok());
  EXPECT_EQ(ok, (std::vector<bool>{true, false, false, false}));
}

}  // namespace
}  // namespace carina::pt2
