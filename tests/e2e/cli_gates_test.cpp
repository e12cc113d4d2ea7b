// SPDX-License-Identifier: Apache-2.0
// Gates, diff and the destinations of results, as scripts use them.
#include "cli.hpp"

namespace carina::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

class CliGates : public Cli {
 protected:
  std::string compileDigits(const std::string& target, const std::string& output) const {
    return "compile " + model("digits8.pt2") + " --target " + target + calibrate("digits8") + " -o " +
           path(output);
  }
};

TEST_F(CliGates, AMissExitsWithThreeOneLineAndNoProgram) {
  const Outcome missed = run(compileDigits("ethos-u55-128", "d.pte") +
                             " --max-cycles 100 --max-flash 1K --min-sqnr 10 --junit " + path("j.xml"));
  EXPECT_EQ(missed.status, 3) << missed.err;
  EXPECT_THAT(missed.err,
              AllOf(HasSubstr("carina: gate missed: digits8.pt2: --max-cycles 100 cycles: found "),
                    HasSubstr("--max-flash 1024 bytes"), Not(HasSubstr("--min-sqnr"))));
  EXPECT_THAT(missed.out, HasSubstr("(not written)"));
  EXPECT_FALSE(std::filesystem::exists(path("d.pte")));
  EXPECT_THAT(contentsOf(path("j.xml")), HasSubstr(R"(tests="3" failures="2")"));

  const Outcome kept =
      run(compileDigits("ethos-u55-128", "d.pte") +
          " --max-cycles 1000000 --max-inference-ms 100 --max-sram 64K --max-flash 1M --require-npu");
  EXPECT_EQ(kept.status, 0) << kept.err;
  EXPECT_TRUE(std::filesystem::exists(path("d.pte")));
}

TEST_F(CliGates, EveryMeasuringCommandHasThem) {
  ASSERT_EQ(run(compileDigits("ethos-u55-128", "d.pte")).status, 0);
  const std::string network = model("digits8.pt2") + calibrate("digits8");
  EXPECT_EQ(run("profile " + path("d.pte") + " --max-cycles 10").status, 3);
  EXPECT_EQ(run("profile " + path("d.pte") + " --max-cycles 1000000 --max-flash 1M").status, 0);
  EXPECT_EQ(run("profile " + network + " --target ethos-u55-128 --min-sqnr 90").status, 3);
  EXPECT_EQ(run("verify " + network + " --target ethos-u55-128 --samples 1 --min-sqnr 90").status, 3);
  EXPECT_EQ(run("verify " + network + " --target ethos-u55-128 --samples 1 --min-sqnr 20").status, 0);
  const std::string ran = "run " + path("d.pte") + " --input " + model("digits8_eval.npz");
  EXPECT_EQ(run(ran + " --min-top1 100").status, 3);
  EXPECT_EQ(run(ran + " --min-top1 80 --max-cycles 1000000 --require-npu").status, 0);
  EXPECT_EQ(run(ran + " --max-sram 100").status, 3);
  EXPECT_EQ(run("profile " + path("d.pte") + " --require-npu --max-sram 64K --max-inference-ms 1").status, 0);
  const std::string page = "report " + network + " --target ethos-u55-128 -o " + path("r.html");
  EXPECT_EQ(run(page + " --max-cycles 10 --junit " + path("r.xml")).status, 3);
  EXPECT_THAT(contentsOf(path("r.xml")), HasSubstr(R"(tests="1" failures="1")"));
  EXPECT_THAT(contentsOf(path("r.html")), HasSubstr("<html"));
  EXPECT_EQ(run(page + " --max-cycles 1000000 --min-sqnr 20 --require-npu --max-flash 1M").status, 0);
  const std::string fits = "fit " + network + " --board corstone-300 --header " + path("fit.h");
  EXPECT_EQ(run(fits + " --max-sram 100").status, 3);
  EXPECT_FALSE(std::filesystem::exists(path("fit.h"))) << "a program that misses a gate is not linked";
  EXPECT_EQ(run(fits + " --max-sram 64K --max-inference-ms 1 --min-sqnr 20").status, 0);
  EXPECT_TRUE(std::filesystem::exists(path("fit.h")));
  EXPECT_EQ(run("ops " + network + " --target ethos-u55-128 --require-npu").status, 0);
  const Outcome listed = run("ops " + network + " --target ethos-u55-128 --cpu-op add --require-npu");
  EXPECT_EQ(listed.status, 3);
  EXPECT_THAT(listed.err, HasSubstr("(aten.add.Tensor (add): kept off the NPU on request)"));
  const std::string judged =
      "evaluate " + path("d.pte") + " --data " + model("digits8_eval.npz") + " --samples 2";
  EXPECT_EQ(run(judged + " --require-npu --max-inference-ms 1").status, 0);
  EXPECT_EQ(run(judged + " --max-inference-ms 0.001").status, 3);
  const Outcome swept =
      run("sweep " + network + " --targets ethos-u55-32,ethos-u55-256 --max-cycles 13000 --junit " +
          path("s.xml"));
  EXPECT_EQ(swept.status, 3);
  EXPECT_THAT(swept.err, AllOf(HasSubstr("ethos-u55-32 "), Not(HasSubstr("ethos-u55-256 "))));
  EXPECT_THAT(contentsOf(path("s.xml")), HasSubstr(R"(tests="2" failures="1")"));
}

TEST_F(CliGates, CheckAppliesThemToTheFile) {
  ASSERT_EQ(run(compileDigits("ethos-u55-128", "d.pte")).status, 0);
  ASSERT_EQ(run(compileDigits("ethos-u55-128", "add.pte") + " --cpu-op add").status, 0);
  const Outcome kept = run("check " + path("d.pte") + " --require-npu --max-sram 8512 --max-flash 12320");
  EXPECT_EQ(kept.status, 0) << kept.err;
  const Outcome missed = run("check " + path("add.pte") +
                             " --require-npu --max-sram 100 --max-flash 1K --junit " + path("j.xml"));
  EXPECT_EQ(missed.status, 3);
  EXPECT_THAT(missed.err,
              AllOf(HasSubstr("add.pte: --require-npu"), HasSubstr("kernel aten::add"),
                    HasSubstr("--max-sram 100 bytes: found "), HasSubstr("--max-flash 1024 bytes")));
  EXPECT_THAT(contentsOf(path("j.xml")), HasSubstr(R"(<testsuites tests="3" failures="3")"));
  const std::string svdf = (dataDir() / "tflite_mixed" / "svdf.tflite").string();
  ASSERT_EQ(run("compile " + svdf + " --target ethos-u55-128 -o " + path("svdf.tflite")).status, 0);
  const Outcome tflite = run("check " + path("svdf.tflite") + " --require-npu --max-flash 1M");
  EXPECT_EQ(tflite.status, 3);
  EXPECT_THAT(tflite.err, HasSubstr("not entirely on the NPU (operator SVDF)"));
  EXPECT_EQ(run("check " + path("d.pte") + " --min-sqnr 3").status, 2)
      << "a file does not record its accuracy";
}

TEST_F(CliGates, VerifyAgainstAGraphAppliesThem) {
  ASSERT_EQ(run(compileDigits("ethos-u55-128", "d.pte")).status, 0);
  ASSERT_EQ(run(compileDigits("ethos-u55-128", "d.tosa")).status, 0);
  const std::string verify = "verify " + path("d.pte") + " --against " + path("d.tosa");
  const Outcome kept = run(verify + " --require-npu --max-cycles 13000 --max-flash 16K --json - ");
  EXPECT_EQ(kept.status, 0) << kept.err;
  EXPECT_THAT(kept.out, StartsWith("{\n  \"schema\": \"carina.against/1\","));
  const Outcome missed =
      run(verify + " --max-cycles 100 --max-sram 100 --max-inference-ms 0.001 --csv " + path("parts.csv"));
  EXPECT_EQ(missed.status, 3);
  EXPECT_THAT(missed.err, AllOf(HasSubstr("d.pte: --max-cycles 100"), HasSubstr("--max-sram"),
                                HasSubstr("--max-inference-ms")));
  EXPECT_EQ(contentsOf(path("parts.csv")),
            "part,graph,samples,elements,differ,values,values_seen\n"
            "delegate 0 of forward,d.tosa,1,10,0,26,11\n");
  EXPECT_EQ(run(verify + " --min-sqnr 3").status, 2) << "there is no float network";
}

TEST_F(CliGates, OutputsOfVerifyAreATable) {
  const Outcome table = run("verify " + model("digits8.pt2") + calibrate("digits8") +
                            " --target ethos-u55-128 --samples 1 --csv -");
  EXPECT_EQ(table.status, 0) << table.err;
  EXPECT_THAT(table.out, StartsWith("method,output,elements,npu_differs_from_tosa,beyond_one_lsb,worst_lsb,"
                                    "sqnr_db_ends,sqnr_db_simulated,sqnr_db\n,out0,10,0,0,0,"));
}

TEST_F(CliGates, TargetsAndFindingsAsCsvAndJson) {
  const Outcome table = run("targets --csv -");
  EXPECT_EQ(table.status, 0) << table.err;
  EXPECT_THAT(table.out, StartsWith("target,family,macs,memory_mode,default\n"
                                    "ethos-u55-32,Ethos-U55,32,Sram_Only,no\n"
                                    "ethos-u55-32,Ethos-U55,32,Shared_Sram,yes\n"));
  EXPECT_THAT(run("targets --json").out, StartsWith("{\n  \"schema\": \"carina.targets/1\","));
  ASSERT_EQ(run(compileDigits("ethos-u55-128", "d.pte")).status, 0);
  const Outcome sound = run("inspect " + path("d.pte") + " --check --json -");
  EXPECT_EQ(sound.status, 0) << sound.err;
  EXPECT_THAT(sound.out, AllOf(HasSubstr("carina.inspect/1"), HasSubstr("\"ok\": true")));
}

/// The gates of a comparison apply to the second side.
TEST_F(CliGates, DiffAppliesThemToTheSecondSide) {
  ASSERT_EQ(run(compileDigits("ethos-u55-128", "fast.pte") + " --report " + path("fast")).status, 0);
  ASSERT_EQ(run(compileDigits("ethos-u55-32", "slow.pte") + " --cpu-op add --report " + path("slow")).status,
            0);
  const std::string gates = " --max-cycles 13000 --require-npu --max-inference-ms 0.1";
  EXPECT_EQ(run("diff " + path("slow.pte") + " " + path("fast.pte") + gates).status, 0);
  const Outcome programs = run("diff " + path("fast.pte") + " " + path("slow.pte") + gates);
  EXPECT_EQ(programs.status, 3);
  EXPECT_THAT(programs.err, AllOf(HasSubstr("slow.pte: --max-cycles"), HasSubstr("slow.pte: --max-inference"),
                                  HasSubstr("(aten::add")));
  const std::string accurate = " --min-sqnr 20 --max-sram 64K --max-flash 64K";
  EXPECT_EQ(run("diff " + path("slow") + " " + path("fast") + gates + accurate).status, 0);
  EXPECT_EQ(run("diff " + path("fast") + " " + path("slow") + gates).status, 3);
  EXPECT_EQ(run("diff " + path("slow") + " " + path("fast") + " --max-sram 100").status, 3);
  EXPECT_EQ(run("diff " + path("fast.pte") + " " + path("slow.pte") + " --min-sqnr 1").status, 1);
}

TEST_F(CliGates, GenerateAppliesThem) {
  const std::string folder = (dataDir() / "language").string();
  ASSERT_EQ(
      run("compile " + folder + "/language.pt2 --calibrate " + folder +
          "/language.npz --target ethos-u85-256 --constant-method get_max_context_len=16 -o " + path("l.pte"))
          .status,
      0);
  const std::string generate =
      "generate " + path("l.pte") + " --tokenizer " + folder + "/tokenizer.json --prompt GNU --tokens 4";
  const Outcome missed =
      run(generate + " --max-cycles 10 --max-sram 10 --max-flash 10 --max-inference-ms 0.001");
  EXPECT_EQ(missed.status, 3);
  EXPECT_THAT(missed.err, AllOf(HasSubstr("l.pte: --max-cycles 10 "), HasSubstr("--max-sram"),
                                HasSubstr("--max-flash"), HasSubstr("--max-inference-ms")));
  const Outcome kept = run(generate + " --max-cycles 1000000 --json -");
  EXPECT_EQ(kept.status, 0) << kept.err;
  EXPECT_THAT(kept.out, StartsWith("{\n  \"schema\": \"carina.generate/1\","));
  EXPECT_EQ(run(generate).out.substr(0, 3), "GNU");
}

TEST_F(CliGates, OutOfRangeValuesAreReportedWithTheRange) {
  const std::string compile = "compile " + model("digits8.pt2") + calibrate("digits8") +
                              " --target ethos-u55-128 -o " + path("x.pte") + " ";
  const Outcome noNumber = run(compile + "--max-cycles many");
  EXPECT_EQ(noNumber.status, 2);
  EXPECT_THAT(noNumber.err, HasSubstr("--max-cycles: 'many' is not a number of at least 0\n"));
  EXPECT_THAT(run(compile + "--max-inference-ms -1").err, HasSubstr("'-1' is not a number of at least 0\n"));
  EXPECT_THAT(run(compile + "--min-top1 101").err, HasSubstr("'101' is not a number from 0 to 100\n"));
  EXPECT_THAT(run(compile + "--weight-bits 9").err, HasSubstr("'9' is not a number from 2 to 8\n"));
}

/// A file that lacks the requested section is named, with its contents.
TEST_F(CliGates, AnIniWithoutTheSectionIsReported) {
  writeText("my.ini", "[System_Config.Mine]\ncore_clock=1e8\naxi0_port=Sram\naxi1_port=OffChipFlash\n");
  const std::string digits = "--target ethos-u55-128" + calibrate("digits8") + " --config " + path("my.ini");
  expectRefused(model("digits8.pt2"), digits + " --system-config Other",
                "there is no section [System_Config.Other], and ethos-u55-128 has no system configuration");
  expectRefused(model("digits8.pt2"), digits + " --system-config Mine --memory-mode Other",
                "there is no section [Memory_Mode.Other], and ethos-u55-128 has no memory mode");
  expectRefused(model("digits8.pt2"), digits, "it would not be used");
}

TEST_F(CliGates, GatesThatNothingMeasuresAreErrors) {
  ASSERT_EQ(run(compileDigits("ethos-u55-128", "d.pte")).status, 0);
  const Outcome unmeasured = run("profile " + path("d.pte") + " --min-sqnr 20 --json " + path("p.json"));
  EXPECT_EQ(unmeasured.status, 1);
  EXPECT_THAT(unmeasured.err, HasSubstr("--min-sqnr"));
  EXPECT_FALSE(std::filesystem::exists(path("p.json")));
  EXPECT_EQ(run("profile " + path("d.pte") + " --max-cycles -1").status, 2);
  const Outcome loaded =
      run("compile " + path("d.pte") + " --target ethos-u55-128 -o " + path("l.pte") + " --max-cycles 1");
  EXPECT_EQ(loaded.status, 1);
  EXPECT_THAT(loaded.err, HasSubstr("--max-cycles: has no effect on a program"));
  EXPECT_EQ(run("ops --target ethos-u55-128 --require-npu").status, 2);
  EXPECT_EQ(run("profile " + path("d.pte") + " --max-cycles many").status, 2);
  EXPECT_EQ(run("profile " + path("d.pte") + " --junit " + path("j.xml")).status, 2);
  EXPECT_EQ(run("run " + path("d.pte") + " --input " + model("digits8.npz") + " --min-top1 101").status, 2);
}

TEST_F(CliGates, ResultsGoToStandardOutputAlone) {
  ASSERT_EQ(run(compileDigits("ethos-u55-128", "d.pte")).status, 0);
  for (const std::string option : {"--json -", "--json"}) {
    const Outcome result = run("profile " + path("d.pte") + " " + option);
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_THAT(result.out, StartsWith("{\n  \"schema\": \"carina.profile/1\","));
    EXPECT_EQ(result.out.back(), '\n');
    EXPECT_THAT(result.out, Not(HasSubstr("limited by")));
  }
  EXPECT_THAT(run("profile " + path("d.pte") + " --csv -").out, StartsWith("part,layer,module,source,kind"));
  EXPECT_THAT(run("check " + path("d.pte") + " --json " + path("c.json")).out, HasSubstr("OK: "));
  EXPECT_THAT(contentsOf(path("c.json")), StartsWith("{\n  \"schema\": \"carina.check/1\","));
  EXPECT_THAT(run(compileDigits("ethos-u55-128", "e.pte") + " --json").out,
              StartsWith("{\n  \"schema\": \"carina.report/1\","));
  EXPECT_THAT(run("boards --csv -").out, StartsWith("board,cpu,npus,memory,address"));
  const Outcome fits = run("fit " + path("d.pte") + " --board corstone-300 --csv -");
  EXPECT_THAT(fits.out, AllOf(StartsWith("memory,what,bytes,available_bytes"), HasSubstr("SRAM,arena,")));
  const Outcome both = run("profile " + path("d.pte") + " --json - --csv -");
  EXPECT_EQ(both.status, 1);
  EXPECT_THAT(both.err, HasSubstr("2 results would go to standard output"));
  EXPECT_THAT(both.out, IsEmpty());
}

TEST_F(CliGates, DiffComparesProgramsProfilesAndReports) {
  ASSERT_EQ(run(compileDigits("ethos-u55-128", "a.pte") + " --report " + path("a")).status, 0);
  ASSERT_EQ(run(compileDigits("ethos-u55-128", "b.pte") + " --quantize int16x8 --report " + path("b")).status,
            0);
  const Outcome same = run("diff " + path("a.pte") + " " + path("a.pte"));
  EXPECT_EQ(same.status, 0) << same.err;
  EXPECT_THAT(same.out, HasSubstr("layers are equal"));
  const Outcome programs = run("diff " + path("a.pte") + " " + path("b.pte"));
  EXPECT_EQ(programs.status, 0) << programs.err;
  EXPECT_THAT(programs.out, AllOf(HasSubstr("NPU cycles"), HasSubstr("matched by kind and shape")));
  const Outcome reports =
      run("diff " + path("a") + " " + path("b/report.json") + " --json " + path("d.json") + " --markdown -");
  EXPECT_EQ(reports.status, 0) << reports.err;
  EXPECT_THAT(reports.out, AllOf(HasSubstr("| conv2d\\_3 | down.0 | CONV | NPU |"), HasSubstr("SQNR")));
  EXPECT_THAT(contentsOf(path("d.json")), HasSubstr("\"matched_by_name\": true"));
  EXPECT_EQ(run("diff " + path("a.pte") + " " + model("digits8.pt2")).status, 1);
  EXPECT_EQ(run("diff " + path("a.pte") + " " + model("digits8.npz")).status, 1);
  EXPECT_EQ(run("diff " + path("a.pte")).status, 2);
  writeText("bad.json", "{\"schema\": \"other/1\"}");
  const Outcome bad = run("diff " + path("a.pte") + " " + path("bad.json"));
  EXPECT_EQ(bad.status, 1);
  EXPECT_THAT(bad.err, AllOf(HasSubstr("bad.json"), HasSubstr("other/1")));
}

}  // namespace
}  // namespace carina::test
