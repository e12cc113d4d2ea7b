// SPDX-License-Identifier: Apache-2.0
// All commands report the same figures of a network in tables, pages and JSON, and run and the virtual
// platform measure them.
#include <nlohmann/json.hpp>

#include "cli.hpp"

namespace carina {
namespace {

using nlohmann::json;
using namespace test;

class CliAgreement : public Cli, public testing::WithParamInterface<const char*> {
 protected:
  std::string network() const { return model("mobile.pt2") + calibrate("mobile"); }
  std::string target() const { return std::string(" --target ") + GetParam(); }

  json data(const std::string& command, const std::string& name) const {
    const Outcome result = run(command + " --json " + path(name));
    EXPECT_EQ(result.status, 0) << command << "\n" << result.err;
    return json::parse(contentsOf(path(name)), nullptr, false);
  }

  /// The data of a page of carina report.
  json page(const std::string& name) const {
    const std::string begin = "id=\"data\">", text = contentsOf(path(name));
    const size_t at = text.find(begin) + begin.size();
    return json::parse(text.substr(at, text.find("</script>", at) - at), nullptr, false);
  }

  static int64_t sum(const json& rows, const char* member) {
    int64_t total = 0;
    for (const json& row : rows) total += row[member].get<int64_t>();
    return total;
  }
};

/// Estimates come from one build, so they are equal; the model that runs the commands is within 2 % of them.
TEST_P(CliAgreement, AllReportsHaveTheSameFigures) {
  const json compiled = data("compile " + network() + target() + " -o " + path("m.pte"), "compile.json");
  const json profile = data("profile " + network() + target(), "profile.json");
  const json finished = data("profile " + path("m.pte"), "finished.json");
  const json swept =
      data("sweep " + network() + " --targets " + GetParam() + ",ethos-n78-1tops-4ple", "sweep.json");
  const json ran = data("run " + path("m.pte") + " --input " + model("mobile.npz"), "run.json");
  const json difference = data("diff " + path("m.pte") + " " + path("profile.json"), "diff.json");
  const json checked = data("check " + path("m.pte"), "check.json");
  ASSERT_EQ(run("report " + network() + target() + " -o " + path("r.html")).status, 0);
  const json shown = page("r.html")["profile"];

  const auto cycles = compiled["cycles"].get<int64_t>();
  const json& part = profile["parts"][0];
  EXPECT_EQ(part["cycles"], cycles);
  EXPECT_EQ(sum(part["layers"], "cycles"), cycles);
  EXPECT_EQ(finished["parts"][0]["cycles"], cycles);
  EXPECT_EQ(shown["parts"][0]["cycles"], cycles);
  EXPECT_EQ(shown["parts"][0]["layers"].size(), part["layers"].size());
  for (const char* side : {"a", "b"}) {
    EXPECT_EQ(difference[side]["cycles"], cycles);
    EXPECT_EQ(difference[side]["macs"], compiled["macs"]);
    EXPECT_EQ(difference[side]["arena_bytes"], compiled["bytes"]["arena"]);
  }
  const json& row = swept["rows"][0];
  EXPECT_EQ(row["cycles"], cycles);
  EXPECT_EQ(row["macs"], compiled["macs"]);
  EXPECT_EQ(row["bytes"], part["bytes"]);
  EXPECT_EQ(part["bytes"], compiled["bytes"]);
  EXPECT_EQ(checked["file_bytes"], compiled["program_bytes"]);
  EXPECT_EQ(std::filesystem::file_size(path("m.pte")), compiled["program_bytes"].get<size_t>());

  // The whole inference, to the cycle.
  json whole = profile["inference"];
  whole.erase("steps");
  EXPECT_EQ(whole, compiled["inference"]);
  for (const json* other : {&finished, &shown, &row}) {
    json inference = (*other)["inference"];
    EXPECT_EQ(inference["cycles"], whole["cycles"]);
    EXPECT_EQ(inference["milliseconds"], whole["milliseconds"]);
  }

  // What actually ran.
  EXPECT_EQ(ran["inference"]["cpu_cycles"], whole["cpu_cycles"]);
  EXPECT_EQ(ran["inference"]["call_cycles"], whole["call_cycles"]);
  EXPECT_EQ(ran["inference"]["npu_cycles"], ran["npu_cycles"]);
  EXPECT_NEAR(ran["npu_cycles"].get<double>(), static_cast<double>(cycles),
              0.02 * static_cast<double>(cycles));
  EXPECT_EQ(sum(ran["delegates"], "macs"), compiled["macs"].get<int64_t>());
  EXPECT_EQ(ran["bytes"]["pools"][0], checked["methods"][0]["pool_bytes"][0]);
  EXPECT_EQ(ran["bytes"]["temporary"], checked["methods"][0]["temporary_bytes"]);
  EXPECT_EQ(ran["bytes"]["method"], checked["methods"][0]["runtime_bytes"]);
}

/// carina ci builds the same program.
TEST_P(CliAgreement, ProjectsHaveTheFiguresOfTheCommands) {
  const json compiled = data("compile " + network() + target() + " -o " + path("m.pte"), "compile.json");
  writeText("carina.toml", "[[network]]\nmodel = \"" + model("mobile.pt2") + "\"\ncalibrate = \"" +
                               model("mobile.npz") + "\"\ntargets = [\"" + GetParam() + "\"]\n");
  const Outcome ran = run("ci " + path("carina.toml") + " -o " + path("out") + " --json " + path("ci.json"));
  ASSERT_EQ(ran.status, 0) << ran.err << ran.out;
  const json jobs = json::parse(contentsOf(path("ci.json")))["jobs"];
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0]["npu_cycles"], compiled["cycles"]);
  EXPECT_EQ(jobs[0]["inference_ms"], compiled["inference"]["milliseconds"]);
  EXPECT_EQ(jobs[0]["program_bytes"], compiled["program_bytes"]);
}

TEST_P(CliAgreement, ThePlatformCountsTheCyclesOfRun) {
  if (std::system("command -v arm-none-eabi-g++ >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "there is no arm-none-eabi-g++";
  ASSERT_EQ(run("compile " + network() + target() + " -o " + path("m.pte")).status, 0);
  const json ran = data("run " + path("m.pte") + " --input " + model("mobile.npz"), "run.json");
  const std::string board =
      std::string(GetParam()).starts_with("ethos-u85") ? "corstone-320" : "corstone-300";
  const Outcome built = run("firmware " + path("m.pte") + " --platform " + board + " -o " + path("m.elf"));
  ASSERT_EQ(built.status, 0) << built.err;
  const json platform = data("run " + path("m.elf"), "platform.json");
  EXPECT_EQ(platform["npu_cycles"], ran["npu_cycles"]);
  EXPECT_EQ(sum(platform["npu_jobs"], "macs"), sum(ran["delegates"], "macs"));
}

INSTANTIATE_TEST_SUITE_P(Targets, CliAgreement,
                         testing::Values("ethos-u55-128", "ethos-u65-512", "ethos-u85-256"),
                         [](const auto& target) {
                           std::string name = target.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

class CliAgreementEthosN : public CliAgreement {};

/// For an Ethos-N there are cycles from formulas, and what the model counts stripe by stripe.
TEST_P(CliAgreementEthosN, ReportsAndRun) {
  const std::string variant = "ethos-n78-4tops-4ple", chosen = " --target " + variant;
  const json profile = data("profile " + network() + chosen, "profile.json");
  const json swept = data("sweep " + network() + " --targets " + variant + ",ethos-u55-128", "sweep.json");
  ASSERT_EQ(run("compile " + network() + chosen + " -o " + path("m.pte")).status, 0);
  const json ran = data("run " + path("m.pte") + " --input " + model("mobile.npz"), "run.json");
  const auto row = std::find_if(swept["rows"].begin(), swept["rows"].end(),
                                [&](const json& each) { return each["target"] == variant; });
  ASSERT_NE(row, swept["rows"].end());
  EXPECT_EQ((*row)["cycles"], profile["cycles"]);
  EXPECT_EQ((*row)["bytes"]["constants"], profile["parts"][0]["constant_bytes"]);
  EXPECT_EQ((*row)["bytes"]["commands"], profile["parts"][0]["command_bytes"]);
  EXPECT_EQ(sum(ran["ethos_n_delegates"], "macs"), (*row)["macs"].get<int64_t>());
  EXPECT_EQ(ran["target"], variant);
}

INSTANTIATE_TEST_SUITE_P(Targets, CliAgreementEthosN, testing::Values("ethos-n78-4tops-4ple"));

}  // namespace
}  // namespace carina
