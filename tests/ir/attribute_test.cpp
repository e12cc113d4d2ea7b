// SPDX-License-Identifier: Apache-2.0
// Attribute values round-trip through text and are rejected if they do not fit.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "ir/op_def.hpp"

namespace carina::ir {
namespace {

constexpr std::string_view kModes[] = {"PLAIN", "FANCY"};

AttributeDef def(AttributeKind kind, bool optional = false) {
  return {"x", kind, optional, "", kModes};
}

TEST(Attribute, ReadsSchemaDefaults) {
  EXPECT_EQ(*parseAttribute(def(AttributeKind::Int), "-3"), Attribute(int64_t{-3}));
  EXPECT_EQ(*parseAttribute(def(AttributeKind::Bool), "True"), Attribute(true));
  EXPECT_EQ(*parseAttribute(def(AttributeKind::Real), "1e-05"), Attribute(1e-5));
  EXPECT_EQ(*parseAttribute(def(AttributeKind::Scalar), "1"), Attribute(int64_t{1}));
  EXPECT_EQ(*parseAttribute(def(AttributeKind::Scalar), "1.5"), Attribute(1.5));
  EXPECT_EQ(*parseAttribute(def(AttributeKind::Ints), "[1, 1]"), Attribute(Ints{1, 1}));
  EXPECT_EQ(*parseAttribute(def(AttributeKind::Ints), "0"), Attribute(Ints{0}));
  EXPECT_EQ(*parseAttribute(def(AttributeKind::Ints), "[]"), Attribute(Ints{}));
  EXPECT_EQ(*parseAttribute(def(AttributeKind::Ints, true), "None"), Attribute(std::monostate{}));
  EXPECT_EQ(*parseAttribute(def(AttributeKind::Enum), "FANCY"), Attribute(int64_t{1}));
  EXPECT_EQ(*parseAttribute(def(AttributeKind::Type), "i48"), Attribute(DType::Int48));
  EXPECT_EQ(*parseAttribute(def(AttributeKind::String), "'none'"), Attribute(std::string("none")));
}

TEST(Attribute, RefusesInvalidValues) {
  EXPECT_FALSE(parseAttribute(def(AttributeKind::Int), "1.5").ok());
  EXPECT_FALSE(parseAttribute(def(AttributeKind::Int), "None").ok());
  EXPECT_FALSE(parseAttribute(def(AttributeKind::Int), "99999999999999999999").ok());
  EXPECT_FALSE(parseAttribute(def(AttributeKind::Ints), "[1, x]").ok());
  EXPECT_FALSE(parseAttribute(def(AttributeKind::Enum), "PURPLE").ok());
  EXPECT_FALSE(attributeFits(def(AttributeKind::Enum), Attribute(int64_t{2})));
  EXPECT_FALSE(attributeFits(def(AttributeKind::Int), Attribute(1.0)));
}

RC_GTEST_PROP(Attribute, TextRoundTrips,
              (const std::vector<int64_t>& ints, double real, int64_t integer, const std::string& text,
               const std::vector<std::string>& texts)) {
  for (const auto& [kind, value] :
       {std::pair(AttributeKind::Ints, Attribute(ints)), std::pair(AttributeKind::Int, Attribute(integer)),
        std::pair(AttributeKind::Real, Attribute(real)), std::pair(AttributeKind::String, Attribute(text)),
        std::pair(AttributeKind::Strings, Attribute(texts))}) {
    const AttributeDef d = def(kind);
    auto read = parseAttribute(d, attributeText(d, value));
    RC_ASSERT(read.ok());
    RC_ASSERT(*read == value);
  }
}

}  // namespace
}  // namespace carina::ir
