// SPDX-License-Identifier: Apache-2.0
// carina report: the page contains the data of carina profile, and attached reports of other kinds are
// refused. tests/browser tests its appearance in a browser.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cli.hpp"

namespace carina {
namespace {

using testing::HasSubstr;

class CliReport : public test::Cli {
 protected:
  std::string network(const std::string& more = "") const {
    return test::model("residual.pt2") + " --target ethos-u85-256" + calibrate("residual") + " " + more;
  }
  /// The JSON between the tags of the page's data.
  static nlohmann::json dataOf(const std::string& page) {
    const std::string begin = "id=\"data\">", end = "</script>";
    const size_t at = page.find(begin) + begin.size();
    return nlohmann::json::parse(page.substr(at, page.find(end, at) - at));
  }
};

/// Estimated cycles of a program, from the summary of compile.
int64_t cyclesIn(const std::string& summary) {
  const size_t at = summary.find("\n  cycles  ") + 11;
  std::string number = summary.substr(at, summary.find(' ', at) - at);
  number.erase(std::remove(number.begin(), number.end(), ','), number.end());
  return std::stoll(number);
}

TEST_F(CliReport, ArenaAgainstCycles) {
  const std::string network = test::model("digits8.pt2") + calibrate("digits8");
  const std::string sweep = "sweep " + network + " --targets ethos-u55-128,ethos-u85-256 --pareto";
  const Outcome result = run(sweep + " --json " + path("frontier.json"));
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("every choice of cascades needs an arena of at least"));
  const nlohmann::json rows = nlohmann::json::parse(test::contentsOf(path("frontier.json")))["rows"];
  // Each row has a larger arena and fewer cycles than the one above, and its options reproduce it.
  std::map<std::string, int> picks;
  for (size_t i = 0; i < rows.size(); ++i) {
    const nlohmann::json& row = rows[i];
    picks[row["target"]] += row["pick"].get<bool>() ? 1 : 0;
    EXPECT_GE(row["bytes"]["arena"], row["arena_bound"]);
    if (i > 0 && rows[i - 1]["target"] == row["target"]) {
      EXPECT_GT(row["bytes"]["arena"], rows[i - 1]["bytes"]["arena"]);
      EXPECT_LT(row["cycles"], rows[i - 1]["cycles"]);
    }
    const Outcome again = run("compile " + network + " --target " + row["target"].get<std::string>() + " " +
                              row["options"].get<std::string>() + " -o " + path("again.pte"));
    EXPECT_EQ(cyclesIn(again.out), row["cycles"].get<int64_t>()) << row["options"];
  }
  EXPECT_GE(rows.size(), 6u);
  EXPECT_EQ(picks, (std::map<std::string, int>{{"ethos-u55-128", 1}, {"ethos-u85-256", 1}}));
  EXPECT_EQ(run(sweep + " --arena-size 4K").status, 1);
}

TEST_F(CliReport, MoreArenaDoesNotCostCycles) {
  const std::string compile = "compile " + test::model("digits8.pt2") + calibrate("digits8") +
                              " --target ethos-u55-128 -o " + path("p.pte") + " --arena-size ";
  int64_t best = 1000000;
  for (int arena = 1792; arena <= 3584; arena += 112) {
    const Outcome result = run(compile + std::to_string(arena));
    ASSERT_EQ(result.status, 0) << result.err;
    // Weights that arrive earlier compete with kernels for accesses.
    EXPECT_LE(cyclesIn(result.out), best / 100 * 104) << arena;
    best = std::min(best, cyclesIn(result.out));
  }
}

TEST_F(CliReport, ThePageContainsTheProfileAndTheNetwork) {
  ASSERT_EQ(run("profile " + network("--json " + path("profile.json"))).status, 0);
  ASSERT_EQ(run("report " + network("-o " + path("page.html") + " --against " + path("profile.json"))).status,
            0);
  const std::string page = test::contentsOf(path("page.html"));
  const nlohmann::json data = dataOf(page);
  const nlohmann::json profile = nlohmann::json::parse(test::contentsOf(path("profile.json")));
  EXPECT_EQ(data["against"], profile);
  nlohmann::json layers = data["profile"]["parts"][0]["layers"];
  for (nlohmann::json& layer : layers) layer.erase("sqnr_db");  // measured for the page only
  EXPECT_EQ(layers, profile["parts"][0]["layers"]);
  EXPECT_EQ(data["profile"]["parts"][0]["cycles"], profile["parts"][0]["cycles"]);
  ASSERT_FALSE(data["graph"].empty());
  for (size_t i = 0; i < data["graph"].size(); ++i) {
    for (const nlohmann::json& input : data["graph"][i]["inputs"]) EXPECT_LT(input.get<size_t>(), i);
    EXPECT_NE(data["graph"][i]["place"], "cpu");
  }
  // The page loads nothing from elsewhere.
  for (const char* word : {"http:", "https:", " src=", "<link", "@import"})
    EXPECT_EQ(page.find(word), std::string::npos) << word;
}

/// The timeline adds up to the figures of the whole inference, in the JSON, in the trace and in the page.
TEST_F(CliReport, TheTimelineIsThatOfTheWholeInference) {
  const std::string of = network("--cpu-op add ");
  ASSERT_EQ(run("profile " + of + "--json " + path("p.json") + " --trace " + path("t.json")).status, 0);
  ASSERT_EQ(run("report " + of + "-o " + path("page.html")).status, 0);
  ASSERT_EQ(run("compile " + of + "-o " + path("p.pte")).status, 0);
  ASSERT_EQ(run("profile " + path("p.pte") + " --json " + path("finished.json")).status, 0);
  const auto read = [&](const char* file) { return nlohmann::json::parse(test::contentsOf(path(file))); };
  const nlohmann::json profile = read("p.json"), &inference = profile["inference"];
  EXPECT_EQ(dataOf(test::contentsOf(path("page.html")))["profile"]["inference"], inference);
  EXPECT_EQ(read("finished.json")["inference"], inference);
  ASSERT_GT(profile["parts"].size(), 1u);
  std::map<std::string, int64_t> cycles;
  int64_t now = 0;
  for (const nlohmann::json& step : inference["steps"]) {
    EXPECT_EQ(step["start"], now) << step;
    now += step["cycles"].get<int64_t>();
    cycles[step["kind"]] += step["cycles"].get<int64_t>();
    if (step["kind"] == "npu") {
      EXPECT_EQ(step["cycles"], profile["parts"][step["part"].get<size_t>()]["cycles"]);
    }
  }
  EXPECT_EQ(now, inference["cycles"]);
  EXPECT_EQ(cycles["npu"], inference["npu_cycles"]);
  EXPECT_EQ(cycles["kernel"], inference["cpu_cycles"]);
  EXPECT_EQ(cycles["call"], inference["call_cycles"]);
  std::map<std::string, int64_t> lanes;
  int64_t end = 0;
  const nlohmann::json trace = read("t.json");
  for (const nlohmann::json& event : trace["traceEvents"]) {
    lanes[event["tid"]] += event["dur"].get<int64_t>();
    end = std::max(end, event["ts"].get<int64_t>() + event["dur"].get<int64_t>());
  }
  EXPECT_EQ(lanes["CPU"], cycles["kernel"] + cycles["call"]);
  EXPECT_GT(lanes["NPU"], 0);
  EXPECT_EQ(end, now) << "the CPU dequantizes last";
  EXPECT_THAT(trace["otherData"]["inference"].get<std::string>(), HasSubstr("inference "));
}

TEST_F(CliReport, LayersAndOperatorsReportTheirAccuracy) {
  ASSERT_EQ(run("report " + network("-o " + path("page.html"))).status, 0);
  ASSERT_EQ(run("compile " + network("-o " + path("p.pte") + " --json " + path("r.json"))).status, 0);
  const nlohmann::json data = dataOf(test::contentsOf(path("page.html")));
  const nlohmann::json report = nlohmann::json::parse(test::contentsOf(path("r.json")));
  std::map<std::string, double> exact;
  for (const nlohmann::json& layer : report["parts"][0]["layers"]) {
    if (!layer["sqnr_db"].is_null()) exact[layer["name"]] = layer["sqnr_db"];
  }
  ASSERT_GT(exact.size(), 3u);
  size_t nodes = 0;
  for (const nlohmann::json& layer : data["profile"]["parts"][0]["layers"]) {
    EXPECT_EQ(layer.contains("sqnr_db"), exact.count(layer["name"]) != 0);
    if (layer.contains("sqnr_db")) {
      EXPECT_EQ(layer["sqnr_db"], exact[layer["name"]]);
    }
  }
  for (const nlohmann::json& node : data["graph"]) {
    if (!node.contains("sqnr_db")) continue;
    ++nodes;
    EXPECT_GT(node["sqnr_db"], 10.0);
    EXPECT_LT(node["sqnr_db"], 80.0);
  }
  EXPECT_GE(nodes, exact.size());
}

TEST_F(CliReport, OperatorsOnTheCpuAreInTheGraphWithTheReason) {
  ASSERT_EQ(run("report " + network("--cpu-op add -o " + path("page.html"))).status, 0);
  const nlohmann::json data = dataOf(test::contentsOf(path("page.html")));
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

/// Model Explorer's format: a collection of graphs, edges by the ids of nodes.
TEST_F(CliReport, TheNetworkForModelExplorer) {
  const Outcome outcome =
      run("report " + network() + "-o " + path("r.html") + " --model-explorer " + path("g.json"));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = nlohmann::json::parse(test::contentsOf(path("g.json")));
  EXPECT_EQ(json.at("label"), "residual.pt2");
  const auto& nodes = json.at("graphs").at(0).at("nodes");
  std::set<std::string> ids;
  size_t withCycles = 0;
  for (const auto& node : nodes) {
    for (const auto& edge : node.at("incomingEdges"))
      EXPECT_EQ(ids.count(edge.at("sourceNodeId").get<std::string>()), 1u) << "inputs come first";
    EXPECT_TRUE(ids.insert(node.at("id").get<std::string>()).second);
    for (const auto& attribute : node.at("attrs")) withCycles += attribute.at("key") == "NPU cycles" ? 1 : 0;
  }
  EXPECT_GT(withCycles, 3u);
  const Outcome finished = run("compile " + network() + "-o " + path("p.pte"));
  ASSERT_EQ(finished.status, 0);
  const Outcome refused =
      run("report " + path("p.pte") + " -o " + path("p.html") + " --model-explorer " + path("p.json"));
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, testing::HasSubstr("does not say which network it came from"));
  EXPECT_FALSE(std::filesystem::exists(path("p.html")));
}

// For an Ethos-N: a network, its program, a network compiled by another compiler.
TEST_F(CliReport, PagesOfAnEthosN) {
  const std::string of =
      test::model("residual.pt2") + calibrate("residual") + " --target ethos-n78-4tops-4ple ";
  ASSERT_EQ(run("compile " + of + "-o " + path("p.pte")).status, 0);
  const std::string other = (test::dataDir() / "ethosn/conv3x3.encn").string();
  for (const std::string& source : {of, path("p.pte") + " ", other + " "}) {
    SCOPED_TRACE(source);
    const Outcome made = run("report " + source + "-o " + path("n.html"));
    ASSERT_EQ(made.status, 0) << made.err;
    const std::string page = test::contentsOf(path("n.html"));
    EXPECT_THAT(page, testing::HasSubstr(" on ethos-n78-4tops-4ple</h1>"));
    EXPECT_THAT(page, testing::HasSubstr("<td>convolution</td><td>PASSTHROUGH</td>"));
    EXPECT_THAT(page, testing::HasSubstr("with overlapping passes"));
  }
  const Outcome refused =
      run("report " + of + "-o " + path("m.html") + " --model-explorer " + path("g.json"));
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, testing::HasSubstr("--model-explorer"));
  EXPECT_FALSE(std::filesystem::exists(path("m.html")));
}

}  // namespace
}  // namespace carina
