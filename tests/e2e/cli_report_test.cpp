// SPDX-License-Identifier: Apache-2.0
// carina report: the page holds what carina profile says, and refuses reports of other kinds beside it. How
// it looks is tested in a browser (tests/browser).
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "cli.hpp"

namespace carina {
namespace {

using testing::HasSubstr;

class CliReport : public test::Cli {
 protected:
  std::string network(const std::string& more = "") const {
    return test::model("residual.pt2") + " --target ethos-u85-256" + calibrate("residual") + " " + more;
  }
  /// What stands between the tags of the page's data.
  static nlohmann::json dataOf(const std::string& page) {
    const std::string begin = "id=\"data\">", end = "</script>";
    const size_t at = page.find(begin) + begin.size();
    return nlohmann::json::parse(page.substr(at, page.find(end, at) - at));
  }
};

TEST_F(CliReport, ThePageHoldsTheProfileAndTheNetwork) {
  ASSERT_EQ(run("profile " + network("--json " + path("profile.json"))).status, 0);
  ASSERT_EQ(run("report " + network("-o " + path("page.html") + " --against " + path("profile.json"))).status,
            0);
  const std::string page = test::contents(path("page.html"));
  const nlohmann::json data = dataOf(page);
  const nlohmann::json profile = nlohmann::json::parse(test::contents(path("profile.json")));
  EXPECT_EQ(data["against"], profile);
  EXPECT_EQ(data["profile"]["parts"][0]["layers"], profile["parts"][0]["layers"]);
  EXPECT_EQ(data["profile"]["parts"][0]["cycles"], profile["parts"][0]["cycles"]);
  ASSERT_FALSE(data["graph"].empty());
  for (size_t i = 0; i < data["graph"].size(); ++i) {
    for (const nlohmann::json& input : data["graph"][i]["inputs"]) EXPECT_LT(input.get<size_t>(), i);
    EXPECT_NE(data["graph"][i]["place"], "cpu");
  }
  // Nothing is loaded from elsewhere.
  for (const char* word : {"http:", "https:", " src=", "<link", "@import"})
    EXPECT_EQ(page.find(word), std::string::npos) << word;
}

TEST_F(CliReport, OperatorsOnTheCpuAreInTheGraphWithTheReason) {
  ASSERT_EQ(run("report " + network("--cpu-op add -o " + path("page.html"))).status, 0);
  const nlohmann::json data = dataOf(test::contents(path("page.html")));
  size_t onCpu = 0;
  for (const nlohmann::json& node : data["graph"]) {
    if (node["place"] != "cpu") continue;
    ++onCpu;
    EXPECT_THAT(node["reason"].get<std::string>(), HasSubstr("kept off the NPU on request"));
  }
  EXPECT_GT(onCpu, 0u);
}

TEST_F(CliReport, AttachmentsOfAnotherKindAreRefused) {
  writeText("odd.json", "{\"rows\": []}\n");
  for (const char* option : {"--sweep ", "--against "}) {
    const Outcome refused =
        run("report " + network("-o " + path("page.html") + " " + option + path("odd.json")));
    EXPECT_EQ(refused.status, 1);
    EXPECT_THAT(refused.err, HasSubstr("error[E0103]: " + path("odd.json") + ": is not the JSON of carina"));
  }
  EXPECT_FALSE(std::filesystem::exists(path("page.html")));
  EXPECT_EQ(run("report " + test::model("residual.pt2") + " --target cpu -o " + path("page.html")).status, 1);
}

}  // namespace
}  // namespace carina
