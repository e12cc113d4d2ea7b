// SPDX-License-Identifier: Apache-2.0
// carina ci on a project, as continuous integration runs it.
#include "cli.hpp"

namespace carina::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class CliCi : public Cli {
 protected:
  /// A project of one network; `more` is appended.
  std::string project(const std::string& more) const {
    return "[[network]]\nmodel = \"" + model("digits8.pt2") + "\"\ncalibrate = \"" + model("digits8.npz") +
           "\"\ntargets = [\"ethos-u55-128\"]\n" + more;
  }
};

TEST_F(CliCi, WritesEverythingAndComparesWithThePreviousRun) {
  writeText("carina.toml",
            project("data = \"" + model("digits8_eval.npz") + "\"\nsamples = 20\ngates.min-top1 = 80\n"));
  const Outcome first = run("ci " + path("carina.toml") + " -o " + path("one"));
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("digits8 ethos-u55-128  ok"));
  for (const std::string file : {"ci.json", "summary.md", "junit.xml", "digits8-ethos-u55-128/report.json",
                                 "digits8-ethos-u55-128/evaluate.json", "digits8-ethos-u55-128/digits8.pte"})
    EXPECT_TRUE(std::filesystem::exists(path("one") + "/" + file)) << file;

  writeText("carina.toml", project("quantize = \"int16x8\"\ngates.max-cycles = 10\n"));
  const Outcome second =
      run("ci " + path("carina.toml") + " -o " + path("two") + " --baseline " + path("one"));
  EXPECT_EQ(second.status, 3);
  EXPECT_THAT(second.err, HasSubstr("gate missed: digits8 ethos-u55-128: --max-cycles 10 cycles"));
  EXPECT_THAT(contentsOf(path("two/summary.md")),
              AllOf(HasSubstr("### digits8 ethos-u55-128"), HasSubstr("conv2d")));
  EXPECT_FALSE(std::filesystem::exists(path("two/digits8-ethos-u55-128/digits8.pte")));
  EXPECT_THAT(contentsOf(path("two/junit.xml")), HasSubstr(R"(tests="2" failures="1")"));
}

TEST_F(CliCi, AFailedJobDoesNotStopTheOthers) {
  writeText(
      "carina.toml",
      "[[network]]\nname = \"gone\"\nmodel = \"gone.pt2\"\ntargets = [\"ethos-u55-128\"]\n" + project(""));
  const Outcome result = run("ci " + path("carina.toml") + " --json -");
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("gone ethos-u55-128: "), HasSubstr("gone.pt2")));
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("\"schema\": \"carina.ci/1\""), HasSubstr("digits8 ethos-u55-128")));
  EXPECT_THAT(run("ci " + path("carina.toml") + " --csv -").out,
              StartsWith("job,result,cycles,inference_ms,sram_bytes,flash_bytes,sqnr_db,top1_percent\n"
                         "gone ethos-u55-128,FAILED,,,,,,\ndigits8 ethos-u55-128,ok,"));
}

TEST_F(CliCi, MistakesInTheProject) {
  EXPECT_EQ(run("ci " + path("none.toml")).status, 1);
  writeText("bad.toml", "[[network]]\nmodle = \"x\"\n");
  const Outcome bad = run("ci " + path("bad.toml") + " -o " + path("out"));
  EXPECT_EQ(bad.status, 1);
  EXPECT_THAT(bad.err, HasSubstr("bad.toml"));
  EXPECT_FALSE(std::filesystem::exists(path("out")));
  // A gate that nothing measures.
  writeText("unreachable.toml", project("gates.min-top1 = 90\n"));
  const Outcome unreachable = run("ci " + path("unreachable.toml"));
  EXPECT_EQ(unreachable.status, 1);
  EXPECT_THAT(unreachable.err, HasSubstr("--min-top1"));
}

}  // namespace
}  // namespace carina::test
