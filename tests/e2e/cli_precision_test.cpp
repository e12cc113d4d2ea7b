// SPDX-License-Identifier: Apache-2.0
// compile --auto-precision as scripts use it.
#include <nlohmann/json.hpp>

#include "cli.hpp"

namespace carina::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class CliPrecision : public Cli {
 protected:
  std::string search(const std::string& options, const std::string& output = "a.pte") const {
    return "compile " + model("residual.pt2") + calibrate("residual") + " --target ethos-u55-128 -o " +
           path(output) + " --auto-precision " + options;
  }
};

TEST_F(CliPrecision, WritesProgramRulesAndTable) {
  const Outcome outcome =
      run(search("--min-sqnr 54 --write-rules " + path("r.json") + " --json " + path("p.json")));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("int8"), HasSubstr("16x8"), HasSubstr("residual.pt2 -> ")));
  EXPECT_THAT(contentsOf(path("r.json")),
              StartsWith("// residual.pt2 for ethos-u55-128, chosen by --auto-precision: "));
  const auto json = nlohmann::json::parse(contentsOf(path("p.json")));
  const Outcome table = run(search("--min-sqnr 54 --csv -", "t.pte"));
  EXPECT_EQ(table.status, 0) << table.err;
  EXPECT_THAT(
      table.out,
      StartsWith("program,layers_in_16x8,sqnr_db,sqnr_db_npu,top1_percent,cycles,sram_bytes,flash_bytes,"
                 "chosen,beaten\nint8,0,"));
  EXPECT_EQ(std::count(table.out.begin(), table.out.end(), '\n'),
            static_cast<ptrdiff_t>(json["programs"].size()) + 1);
  EXPECT_EQ(json["schema"], "carina.precision/1");
  EXPECT_EQ(json["reached"], true);
  const Outcome again = run("compile " + model("residual.pt2") + calibrate("residual") +
                            " --target ethos-u55-128 --quantize-config " + path("r.json") + " -o " +
                            path("b.pte") + " --min-sqnr 54");
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_THAT(again.err, Not(HasSubstr("overrides")));
  EXPECT_TRUE(contentsOf(path("a.pte")) == contentsOf(path("b.pte")));
}

TEST_F(CliPrecision, AnUnreachableGoalExitsWithThreeAndNamesTheNearest) {
  const Outcome outcome =
      run(search("--min-sqnr 140 --write-rules " + path("r.json") + " --junit " + path("j.xml")));
  EXPECT_EQ(outcome.status, 3) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("no choice of precision reaches the goal; the most accurate has "),
                                 HasSubstr("carina: gate missed: residual.pt2: --min-sqnr 140 dB: found ")));
  EXPECT_FALSE(std::filesystem::exists(path("a.pte")));
  EXPECT_FALSE(std::filesystem::exists(path("r.json")));
  EXPECT_THAT(contentsOf(path("j.xml")), HasSubstr(R"(failures="1")"));
  const Outcome cycles = run(search("--max-cycles 10"));
  EXPECT_EQ(cycles.status, 3) << cycles.err;
  EXPECT_THAT(cycles.err, HasSubstr("the cheapest "));
}

TEST_F(CliPrecision, WrongUsage) {
  for (const char* options : {"", "--min-top1 90", "--min-sqnr 30 --data x.npz",
                              "--min-sqnr 30 --quantize int16x8", "--min-sqnr 30 --quantize none"}) {
    const Outcome outcome = run(search(options));
    EXPECT_EQ(outcome.status, 2) << options << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(path("a.pte")));
  }
  const std::string plain = "compile " + model("residual.pt2") + calibrate("residual") +
                            " --target ethos-u55-128 -o " + path("a.pte");
  for (const char* options : {"--write-rules r.json", "--data x.npz", "--min-top1 90", "--csv x.csv"})
    EXPECT_EQ(run(plain + " " + options).status, 2) << options;
}

TEST_F(CliPrecision, NetworksWithoutAChoiceOfPrecisionAreRefused) {
  const std::string goal = " --auto-precision --min-sqnr 30 -o " + path("a.pte");
  const Outcome quantized =
      run("compile " + (dataDir() / "qdq" / "add.pt2").string() + " --target ethos-u55-128" + goal);
  EXPECT_EQ(quantized.status, 1);
  EXPECT_THAT(quantized.err, HasSubstr("the network is already quantized"));
  for (const char* target : {"cpu", "ethos-n78-4tops-4ple-ratio"}) {
    const Outcome refused =
        run("compile " + model("residual.pt2") + calibrate("residual") + " --target " + target + goal);
    EXPECT_EQ(refused.status, 1) << target;
    EXPECT_THAT(refused.err, HasSubstr("--auto-precision"));
  }
  const Outcome uncalibrated = run("compile " + model("residual.pt2") + " --target ethos-u55-128" + goal);
  EXPECT_EQ(uncalibrated.status, 1);
  EXPECT_THAT(uncalibrated.err, HasSubstr("--calibrate"));
  const Outcome overwriting = run(search("--min-sqnr 30 --write-rules " + model("residual.npz")));
  EXPECT_EQ(overwriting.status, 1);
  EXPECT_THAT(overwriting.err, HasSubstr("would overwrite the input"));
}

}  // namespace
}  // namespace carina::test
