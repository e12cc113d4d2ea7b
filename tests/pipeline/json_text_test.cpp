// SPDX-License-Identifier: Apache-2.0
// JSON that is written piece by piece: what a parser reads back, and where lines break.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/document.hpp"

namespace carina::report {
namespace {

using Json = nlohmann::ordered_json;

TEST(JsonText, RowsAreLinesAndTheRestIsIndented) {
  JsonText text;
  text.open('{');
  text.members({{"schema", "carina.x/1"}, {"bytes", {{"arena", 3}}}});
  text.open('[', "parts");
  text.open('{');
  text.rows("rows", std::vector{1, 2}, [](int i) { return Json{{"i", i}}; });
  text.members({{"last", Json::array()}});
  text.close('}');
  text.close(']');
  text.close('}');
  EXPECT_EQ(std::move(text).str(), R"({
  "schema": "carina.x/1",
  "bytes": {
    "arena": 3
  },
  "parts": [
    {
      "rows": [
        {"i":1},
        {"i":2}
      ],
      "last": []
    }
  ]
}
)");
}

TEST(JsonText, EmptyRowsAndInvalidUtf8) {
  JsonText text;
  text.open('{');
  text.rows("none", std::vector<int>(), [](int) { return Json(); });
  text.members({{"name\n\"", "a\nb\xff"}});
  text.close('}');
  const Json read = Json::parse(std::move(text).str());
  EXPECT_EQ(read.at("none"), Json::array());
  EXPECT_EQ(read.at("name\n\""), "a\nb\xef\xbf\xbd");
}

}  // namespace
}  // namespace carina::report
