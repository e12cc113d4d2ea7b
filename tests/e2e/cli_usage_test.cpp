// SPDX-License-Identifier: Apache-2.0
// Options of the command line: what is accepted, and messages about wrong usage.
#include <fmt/format.h>

#include "base/npy.hpp"
#include "cli.hpp"

namespace carina {
namespace {

using test::contentsOf;
using test::model;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class CliUsage : public test::Cli {
 protected:
  /// Arguments that compile dense.pt2 for ethos-u55-128, to which `more` is added.
  std::string compileDense(const std::string& more) const {
    return "compile " + model("dense.pt2") + " --target ethos-u55-128 -o " + path("d.pte") +
           calibrate("dense") + " " + more;
  }
};

TEST_F(CliUsage, WrongValuesListTheChoices) {
  const Outcome quantize = run(compileDense("--quantize int4"));
  EXPECT_EQ(quantize.status, 2);
  EXPECT_EQ(quantize.err,
            "carina: error[E0201]: --quantize: there is no 'int4'\n  choices: int8, int16x8, none\n");
  EXPECT_EQ(run(compileDense("--quantize 2")).status, 2);
  EXPECT_THAT(run(compileDense("--io bf16")).err, HasSubstr("choices: float, int8, int16"));
  EXPECT_THAT(run(compileDense("--dump-after reed")).err, HasSubstr("choices: read, decompose"));
}

TEST_F(CliUsage, MisspeltOptionsSuggestTheNearest) {
  const std::string arguments =
      "compile " + model("dense.pt2") + " --target ethos-u55-128 -o " + path("d.pte") + " --calibrat x.npz";
  EXPECT_EQ(run(arguments).err,
            "carina: error[E0201]: unexpected arguments: --calibrat x.npz\n  did you mean --calibrate?\n");
  // The message is about the misspelt option, not about the one that is missing as a result.
  EXPECT_EQ(run("compile x.pt2 --taget ethos-u55-128 -o y.pte").err,
            "carina: error[E0201]: unexpected arguments: --taget ethos-u55-128\n  did you mean --target?\n");
  EXPECT_THAT(run("run x.pte --semihosting-dri .").err, HasSubstr("did you mean --semihosting-dir?"));
}

TEST_F(CliUsage, TargetsInAnySpelling) {
  const std::string base = "compile " + model("dense.pt2") + " -o " + path("d.pte") + calibrate("dense");
  const Outcome odd = run(base + " --target Ethos_U55_128");
  EXPECT_EQ(odd.status, 0) << odd.err;
  EXPECT_THAT(odd.out, HasSubstr("ethos-u55-128"));
  EXPECT_EQ(run("run " + path("d.pte") + " --target ETHOS_U55_128 --input " + model("dense.npz")).status, 0);
  EXPECT_EQ(run(base + " --target CPU").status, 0);
  EXPECT_EQ(
      run("sweep " + model("dense.pt2") + calibrate("dense") + " --targets Ethos_U55_64,ethos-u55-32").status,
      0);
  EXPECT_THAT(run(base + " --target ethos-u55-127").err, HasSubstr("did you mean ethos-u55-128? targets: "));
}

TEST_F(CliUsage, BytesInUnits) {
  for (const char* size : {"262144", "256K", "256KiB", "0.25M", "256kB"})
    EXPECT_EQ(run(compileDense(std::string("--arena-size ") + size)).status, 0) << size;
  for (const char* size : {"0", "-1K", "1X", "256 K", "0.1K", "K", "1e9", "9999999G"}) {
    const Outcome refused = run(compileDense(std::string("--arena-size '") + size + "'"));
    EXPECT_EQ(refused.status, 2) << size;
    EXPECT_THAT(refused.err, HasSubstr("for example 262144, 256K or 1.5M")) << size;
  }
  EXPECT_THAT(run(compileDense("--arena-size 0.0625K")).err, HasSubstr("the limit is 64"));
}

TEST_F(CliUsage, OppositesExcludeEachOther) {
  const Outcome both = run(compileDense("--per-channel --per-tensor"));
  EXPECT_EQ(both.status, 2);
  EXPECT_THAT(both.err, HasSubstr("--per-channel excludes --per-tensor"));
  EXPECT_EQ(run(compileDense("--fit-weights --no-fit-weights")).status, 2);
  EXPECT_EQ(run(compileDense("--bias-correction --no-bias-correction")).status, 2);
  EXPECT_EQ(run(compileDense("--per-tensor --no-fit-weights --no-bias-correction")).status, 0);
}

TEST_F(CliUsage, WeightsHaveTwoToEightBits) {
  for (const char* bits : {"1", "9", "int4"})
    EXPECT_EQ(run(compileDense(std::string("--weight-bits ") + bits)).status, 2) << bits;
  EXPECT_EQ(run(compileDense("--weight-bits 4")).status, 0);
  const Outcome idle =
      run("compile " + model("dense.pt2") + " --target cpu --weight-bits 4 -o " + path("d.pte"));
  EXPECT_EQ(idle.status, 0);
  EXPECT_THAT(idle.err, HasSubstr("--weight-bits: has no effect: nothing is quantized"));
}

TEST_F(CliUsage, UnwritableOutputsAreReportedFirst) {
  const std::string base = "compile " + path("missing.pt2") + " --target ethos-u55-128 -o ";
  EXPECT_THAT(run(base + path("none/x.pte")).err, HasSubstr("none/x.pte: the folder"));
  EXPECT_THAT(run(base + path("")).err, HasSubstr("is a folder, expected a file name"));
  EXPECT_THAT(run(base + path("x.xyz")).err, HasSubstr("outputs are .pte"));
  EXPECT_THAT(run(base + path("x.pte") + " --report " + path("stdout") + "/r").err,
              HasSubstr("is a file, not a folder"));
  EXPECT_THAT(run("profile " + path("x.pt2") + " --json " + path("none/p.json")).err,
              HasSubstr("none/p.json"));
  EXPECT_THAT(run("sweep " + path("x.pt2") + " --json " + path("none/s.json")).err, HasSubstr("none/s.json"));
  EXPECT_THAT(run("run " + path("x.pte") + " --etdump " + path("none/e.etdp")).err, HasSubstr("none/e.etdp"));
}

TEST_F(CliUsage, FoldersAreRefusedAsInputs) {
  const std::string folder = path("");
  EXPECT_THAT(run("compile " + folder + " --target ethos-u55-128 -o " + path("x.pte")).err,
              HasSubstr("is a folder, not a file"));
  EXPECT_THAT(run("run " + folder).err, HasSubstr("is a folder"));
  EXPECT_THAT(run("inspect " + folder).err, HasSubstr("is a folder"));
  EXPECT_THAT(run(compileDense("--calibrate " + folder)).err, Not(IsEmpty()));
}

TEST_F(CliUsage, RunOutputsFollowTheirFileExtension) {
  ASSERT_EQ(run(compileDense("")).status, 0);
  const std::string base = "run " + path("d.pte") + " --input " + model("dense.npz") + " --output ";
  const Outcome json = run(base + path("out.json"));
  EXPECT_EQ(json.status, 1);
  EXPECT_THAT(json.err,
              AllOf(HasSubstr("out.json: outputs are written as .npz or .npy"), HasSubstr("--json")));
  EXPECT_FALSE(std::filesystem::exists(path("out.json")));
  ASSERT_EQ(run(base + path("out.npy")).status, 0);
  const auto array = readArrays(path("out.npy"));
  ASSERT_TRUE(array.ok());
  EXPECT_EQ(array->front().first, "");
  EXPECT_EQ(array->front().second.shape(), (Shape{1, 60}));
}

TEST_F(CliUsage, InputsCanBePipes) {
  const std::string carina = std::string(" | ") + CARINA_BINARY + " ";
  const Outcome shown = shell("cat " + model("dense.npz") + carina + "inspect /dev/stdin");
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("calib0: f32[8,1,60]"));
  const Outcome compiled =
      shell("cat " + model("dense.pt2") + carina + "compile /dev/stdin --target ethos-u55-128 -o " +
            path("d.pte") + calibrate("dense"));
  EXPECT_EQ(compiled.status, 0) << compiled.err;
  const Outcome ran = shell("cat " + path("d.pte") + carina + "run /dev/stdin --input " + model("dense.npz"));
  EXPECT_EQ(ran.status, 0) << ran.err;
}

TEST_F(CliUsage, VerboseTimesTheStagesOfEveryCommand) {
  const std::string network = model("dense.pt2") + calibrate("dense") + " --target ethos-u55-128 -v";
  for (const char* command : {"compile", "verify", "ops", "profile"}) {
    const std::string output = command == std::string("compile") ? " -o " + path("d.pte") : "";
    const Outcome result = run(fmt::format("{} {}{}", command, network, output));
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_THAT(result.err, AllOf(HasSubstr("  read "), HasSubstr("  total "))) << command;
  }
  EXPECT_THAT(run("profile -v " + path("d.pte")).err, HasSubstr("  total "));
  EXPECT_THAT(run("sweep -v " + model("dense.pt2") + calibrate("dense") + " --targets ethos-u55-64").err,
              AllOf(HasSubstr("  read "), HasSubstr("  compile "), HasSubstr("  total ")));
}

TEST_F(CliUsage, ConfigFilesThatAreNotUsedAreRefused) {
  writeText("board.ini",
            "[System_Config.Board]\ncore_clock=1e8\naxi0_port=Sram\naxi1_port=OffChipFlash\n"
            "[Memory_Mode.Board_Sram]\nconst_mem_area=Axi1\narena_mem_area=Axi0\ncache_mem_area=Axi0\n");
  const Outcome unused = run(compileDense("--config " + path("board.ini")));
  EXPECT_EQ(unused.status, 1);
  EXPECT_THAT(unused.err,
              AllOf(HasSubstr("board.ini: describes neither"), HasSubstr("--system-config (Board)"),
                    HasSubstr("--memory-mode (Board_Sram)")));
  const Outcome used = run(compileDense("--config " + path("board.ini") + " --system-config Board"));
  EXPECT_EQ(used.status, 0) << used.err;
  EXPECT_THAT(used.out, HasSubstr("at 100 MHz"));
  EXPECT_EQ(run("sweep " + model("dense.pt2") + calibrate("dense") + " --config " + path("board.ini")).status,
            1);
}

TEST_F(CliUsage, OptionsWithoutEffectOnTheCpuAreNamed) {
  const Outcome result = run("compile " + model("dense.pt2") +
                             " --target cpu --memory-mode Sram_Only --arena-size 4K -o " + path("d.pte"));
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("--memory-mode: has no effect"), HasSubstr("--arena-size: has no effect")));
}

TEST_F(CliUsage, NetworksMustBeCompiledBeforeTheyRun) {
  const Outcome network = run("run " + model("dense.pt2"));
  EXPECT_EQ(network.status, 1);
  EXPECT_THAT(network.err, AllOf(HasSubstr("dense.pt2: is a network, not a program"),
                                 HasSubstr("compile it first: carina compile ")));
  EXPECT_THAT(run("run " + model("dense.npz")).err, HasSubstr("a NumPy archive (.npz) cannot be run"));
}

TEST_F(CliUsage, InspectRecognisesOtherFiles) {
  writeText("report.json", "{}\n");
  EXPECT_THAT(run("inspect " + path("report.json")).err, HasSubstr("is a JSON file"));
  ASSERT_EQ(run(compileDense("")).status, 0);
  ASSERT_EQ(
      run("run " + path("d.pte") + " --input " + model("dense.npz") + " --etdump " + path("d.etdp")).status,
      0);
  EXPECT_THAT(run("inspect " + path("d.etdp")).err, HasSubstr("ETDump"));
  writeText("broken.elf", "\177ELF");
  EXPECT_THAT(run("inspect " + path("broken.elf")).err, HasSubstr("broken.elf: "));
}

TEST_F(CliUsage, TheReportNamesTheProgram) {
  ASSERT_EQ(run(compileDense("--report " + path("report"))).status, 0);
  EXPECT_THAT(contentsOf(path("report/summary.txt")), HasSubstr("\ndense.pt2 -> " + path("d.pte") + "\n"));
}

TEST_F(CliUsage, ExplainKnowsEveryCodeOfAnError) {
  const Outcome refused = run("inspect " + path("missing.pte"));
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, testing::StartsWith("carina: error[E0101]: " + path("missing.pte") + ": "));
  EXPECT_THAT(run("explain e0101").out, testing::StartsWith("E0101: an input cannot be read\n\n"));
  EXPECT_THAT(run("explain").out, HasSubstr("\nE0104  a file is damaged\n"));
  const Outcome unknown = run("explain E9999");
  EXPECT_EQ(unknown.status, 1);
  EXPECT_THAT(unknown.err, HasSubstr("there is no diagnostic 'E9999'"));
}

TEST_F(CliUsage, DiagnosticsAsJsonAreOneObjectPerLine) {
  const std::string missing = path("missing.pte");
  for (const std::string& command :
       {"--diagnostics json inspect " + missing, "inspect " + missing + " --diagnostics=json"}) {
    EXPECT_THAT(run(command).err,
                testing::MatchesRegex(
                    "\\{\"severity\":\"error\",\"code\":\"E0101\",\"message\":\"[^\"]+\",\"file\":\"" +
                    missing + "\",\"place\":\"\",\"remedy\":\"[^\"]*\"\\}\n"))
        << command;
  }
  EXPECT_THAT(run("inspekt x --diagnostics json").err,
              testing::StartsWith("{\"severity\":\"error\",\"code\":\"E0203\""));
  const Outcome usage = run("inspect x --diagnostics json --mode 3");
  EXPECT_EQ(usage.status, 2);
  EXPECT_THAT(usage.err, testing::StartsWith("{\"severity\":\"error\",\"code\":\"E0201\""));
  EXPECT_EQ(run("inspect x --diagnostics xml").status, 2);
}

}  // namespace
}  // namespace carina
