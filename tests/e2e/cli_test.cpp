// SPDX-License-Identifier: Apache-2.0
// The command line as scripts see it: exit status, stdout, stderr, files.
#include "cli.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "base/file.hpp"
#include "base/npy.hpp"
#include "base/zip.hpp"
#include "pte/bundle.hpp"
#include "pte/program.hpp"
#include "pte/tensor_data.hpp"

namespace carina {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using namespace test;

TEST_F(Cli, RulesGiveMixedPrecisionAndAreReported) {
  writeText("rules.json", R"({ "rules": [ { "module": "classify", "precision": "int16x8" },
                                          { "op": "softmax", "precision": "int16x8" } ] })");
  const std::string options =
      " --target ethos-u55-128" + calibrate("digits8") + " --quantize-config " + path("rules.json");
  const Outcome compiled = run("compile " + model("digits8.pt2") + options + " -o " + path("m.pte") +
                               " --report " + path("report"));
  ASSERT_EQ(compiled.status, 0) << compiled.err;
  EXPECT_THAT(compiled.err, HasSubstr("carina: warning: " + path("rules.json") +
                                      ": rules[1]: no operator type of the network matches 'softmax'"));
  EXPECT_THAT(contentsOf(path("report/quantization.txt")), HasSubstr("i16"));
  EXPECT_THAT(contentsOf(path("report/report.json")), HasSubstr("\"sqnr_db\""));
  const Outcome verified = run("verify " + model("digits8.pt2") + options);
  EXPECT_EQ(verified.status, 0) << verified.err;
  EXPECT_THAT(verified.out, HasSubstr("agree bit for bit"));
}

TEST_F(Cli, WeightBitsOfALayerAreReported) {
  writeText("rules.json", R"({ "rules": [ { "op": "relu", "weight_bits": 4 },
                                          { "module": "classify", "weight_bits": 4 } ] })");
  const std::string compile = "compile " + model("digits8.pt2") + " --target ethos-u55-128" +
                              calibrate("digits8") + " --quantize-config " + path("rules.json") + " -o " +
                              path("m.pte");
  const Outcome compiled = run(compile + " --report " + path("report"));
  ASSERT_EQ(compiled.status, 0) << compiled.err;
  EXPECT_THAT(compiled.err, HasSubstr("carina: warning: " + path("rules.json") +
                                      ": rules[0]: weight_bits changes nothing: no operator that 'relu' "
                                      "matches has weights"));
  EXPECT_THAT(contentsOf(path("report/quantization.txt")), HasSubstr("i8 per channel, 4 bits"));
  EXPECT_THAT(contentsOf(path("report/report.json")), HasSubstr("\"weight_bits\": 4"));
  // The file overrides the option.
  writeText("rules.json", R"({ "global": { "weight_bits": 8 } })");
  ASSERT_EQ(run(compile + " --weight-bits 4 --report " + path("report")).status, 0);
  EXPECT_THAT(contentsOf(path("report/quantization.txt")), Not(HasSubstr("4 bits")));
}

TEST_F(Cli, NonTensorResultsAreReported) {
  const std::string file = (test::dataDir() / "pt2" / "state.pt2").string();
  const Outcome compiled = run("compile " + file + " --target cpu -o " + path("m.pte"));
  ASSERT_EQ(compiled.status, 0) << compiled.err;
  EXPECT_THAT(compiled.err, HasSubstr("result 2 is 7, not a tensor"));
  EXPECT_THAT(compiled.err, HasSubstr("result 3 is None, not a tensor"));
}

TEST_F(Cli, BadRulesAreRefusedWithTheirPlace) {
  writeText("rules.json", R"({ "rules": [ { "op": "conv2d", "precision": "int4" } ] })");
  expectRefused(model("digits8.pt2"),
                "--target ethos-u55-128" + calibrate("digits8") + " --quantize-config " + path("rules.json"),
                path("rules.json") + ": rules[0].precision: there is no 'int4'");
}

TEST_F(Cli, IntegerInputsAndFloatOutputs) {
  const Outcome compiled =
      run("compile " + model("digits8.pt2") + " --target ethos-u55-128 --quantize int16x8 --io-inputs int8" +
          calibrate("digits8") + " -o " + path("i.pte"));
  ASSERT_EQ(compiled.status, 0) << compiled.err;
  EXPECT_THAT(compiled.out, Not(HasSubstr("quantized_decomposed::quantize_per_tensor")));
  EXPECT_THAT(compiled.out, HasSubstr("quantized_decomposed::dequantize_per_tensor.out x1"));
  EXPECT_THAT(run("inspect " + path("i.pte")).out, HasSubstr("int8[1,1,8,8]"));
}

TEST_F(Cli, CompilesAndRuns) {
  const Outcome compiled = run("compile " + model("digits8.pt2") + " --target ethos-u55-128 -o " +
                               path("d.pte") + calibrate("digits8") + " --report " + path("report"));
  ASSERT_EQ(compiled.status, 0) << compiled.err;
  EXPECT_THAT(compiled.out, HasSubstr("ethos-u55-128, Ethos_U55_High_End_Embedded, Shared_Sram"));
  EXPECT_THAT(compiled.err, IsEmpty());
  EXPECT_THAT(contentsOf(path("report/layers.txt")), HasSubstr("cycles"));
  EXPECT_THAT(contentsOf(path("report/report.json")), HasSubstr("\"wholly_on_npu\": true"));

  const Outcome ran = run("run " + path("d.pte") + " --input " + model("digits8_eval.npz") + " --output " +
                          path("r.npz") + " --json " + path("s.json"));
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("200 samples"));
  EXPECT_THAT(ran.out, HasSubstr("top-1"));
  EXPECT_THAT(contentsOf(path("s.json")), HasSubstr("\"npu_cycles\""));
  auto results = readNpz(path("r.npz"));
  ASSERT_TRUE(results.ok());
  EXPECT_EQ(findTensor(*results, "out0")->shape(), (Shape{200, 10}));
}

TEST_F(Cli, ProfilesNetworksAndPrograms) {
  const Outcome network =
      run("profile " + model("digits8.pt2") + " --target ethos-u85-128" + calibrate("digits8") + " --json " +
          path("p.json") + " --trace " + path("t.json") + " --memory-map");
  ASSERT_EQ(network.status, 0) << network.err;
  EXPECT_THAT(network.out, HasSubstr("limited by"));
  EXPECT_THAT(network.out, HasSubstr("block1.depthwise"));
  EXPECT_THAT(network.out, HasSubstr("arena use peaks at"));
  EXPECT_THAT(contentsOf(path("t.json")), HasSubstr("traceEvents"));
  EXPECT_THAT(contentsOf(path("p.json")), HasSubstr("\"bound\""));

  // The finished program shows the same cycles, without names.
  ASSERT_EQ(run("compile " + model("digits8.pt2") + " --target ethos-u85-128 -o " + path("d.pte") +
                calibrate("digits8"))
                .status,
            0);
  const Outcome program = run("profile " + path("d.pte") + " --operations");
  ASSERT_EQ(program.status, 0) << program.err;
  const auto cyclesLine = [](const std::string& text) {
    const size_t at = text.rfind('\n', text.find(" MACs, ")) + 1;
    return text.substr(at, text.find('\n', at) - at);
  };
  EXPECT_EQ(cyclesLine(program.out), cyclesLine(network.out));
  EXPECT_EQ(run("profile " + path("d.pte") + " --target ethos-u55-128").status, 1);

  // So does a file of only the commands.
  ASSERT_EQ(run("compile " + model("digits8.pt2") + " --target ethos-u85-128 -o " + path("d.bin") +
                calibrate("digits8"))
                .status,
            0);
  EXPECT_EQ(cyclesLine(run("profile " + path("d.bin")).out), cyclesLine(network.out));
  EXPECT_EQ(run("profile " + path("p.json")).status, 1);
  EXPECT_EQ(run("profile " + model("digits8.pt2") + calibrate("digits8")).status, 1);
}

TEST_F(Cli, ReportsTheTimeOfAWholeInferenceFirst) {
  const std::string network = model("digits8.pt2") + calibrate("digits8");
  const auto firstLine = [](const std::string& text) { return text.substr(0, text.find('\n')); };
  const Outcome compiled = run("compile " + network + " --target ethos-u55-128 -o " + path("d.pte"));
  ASSERT_EQ(compiled.status, 0) << compiled.err;
  EXPECT_THAT(compiled.out, testing::StartsWith("inference "));
  EXPECT_THAT(firstLine(compiled.out), HasSubstr("Cortex-M55 without Helium"));
  // The program alone reports the same, and so does its run.
  EXPECT_EQ(firstLine(run("profile " + path("d.pte")).out), firstLine(compiled.out));
  EXPECT_THAT(run("run " + path("d.pte") + " --input " + model("digits8_eval.npz")).out,
              testing::StartsWith("inference "));
  const Outcome helium = run("profile " + path("d.pte") + " --cpu cortex-m55");
  EXPECT_THAT(firstLine(helium.out), HasSubstr("Cortex-M55 with Helium"));
  EXPECT_NE(firstLine(helium.out), firstLine(compiled.out));
  EXPECT_EQ(run("profile " + path("d.pte") + " --cpu cortex-a53").status, 2);
  // The gate uses it.
  EXPECT_EQ(run("profile " + path("d.pte") + " --max-inference-ms 0.0001").status, 3);
  EXPECT_EQ(run("profile " + path("d.pte") + " --max-inference-ms 10").status, 0);
}

TEST_F(Cli, FitsNetworksToBoards) {
  const std::string network = model("digits8.pt2") + calibrate("digits8");
  const Outcome fits = run("fit " + network + " --board himax-we2 --header " + path("carina_memory.h") +
                           " --linker " + path("c.ld"));
  EXPECT_EQ(fits.status, 0) << fits.err;
  EXPECT_THAT(fits.out, HasSubstr("ethos-u55-64, Himax_WE2, Shared_Sram"));
  EXPECT_THAT(contentsOf(path("carina_memory.h")), HasSubstr("CARINA_ARENA_BYTES"));
  EXPECT_THAT(contentsOf(path("c.ld")), HasSubstr("CARINA_SRAM (rw) : ORIGIN = 0x34000000"));
  const Outcome unknown = run("fit " + network + " --board himax-we3");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean 'himax-we2'?"));
  EXPECT_EQ(run("fit " + network).status, 2);
  // The program for the board, with its clock, as later commands accept it.
  ASSERT_EQ(run("fit " + network + " --board himax-we2 -o " + path("we2.pte")).status, 0);
  EXPECT_THAT(run("run " + path("we2.pte") + " --input " + model("digits8.npz")).out,
              HasSubstr("on ethos-u55-64 ("));
  EXPECT_EQ(run("fit " + path("we2.pte") + " --board himax-we2").status, 0);
  const Outcome compiled = run("fit " + path("we2.pte") + " --board himax-we2 -o " + path("again.pte"));
  EXPECT_EQ(compiled.status, 1);
  EXPECT_THAT(compiled.err, HasSubstr("the program is already compiled"));
  EXPECT_FALSE(std::filesystem::exists(path("again.pte")));
  const Outcome neutron = run("fit " + network + " --board nxp-imx95 --header " + path("none.h"));
  EXPECT_EQ(neutron.status, 1);
  EXPECT_THAT(neutron.err, HasSubstr("Neutron"));
  EXPECT_FALSE(std::filesystem::exists(path("none.h")));
  EXPECT_EQ(run("fit " + path("carina_memory.h") + " --board himax-we2").status, 1);
  EXPECT_THAT(run("boards").out, HasSubstr("renesas-ra8p1"));
}

TEST_F(Cli, SweepsTargetsAndMemoryModes) {
  const Outcome result =
      run("sweep " + model("digits8.pt2") + calibrate("digits8") +
          " --targets ethos-u55-128,ethos-u85-256 --memory-modes Sram_Only,Dedicated_Sram --json " +
          path("s.json"));
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("fastest"));
  EXPECT_THAT(result.out, HasSubstr("least SRAM"));
  const std::string json = contentsOf(path("s.json"));
  size_t rows = 0;
  for (size_t at = json.find("\"target\""); at != std::string::npos; at = json.find("\"target\"", at + 1))
    ++rows;
  EXPECT_EQ(rows, 3u);  // U55 has no dedicated cache
  EXPECT_EQ(run("sweep " + model("digits8.pt2") + calibrate("digits8") + " --targets ethos-u99").status, 1);
}

TEST_F(Cli, VerifyReportsThatNpuAndTosaAgree) {
  const Outcome result =
      run("verify " + model("mixed.pt2") + " --target ethos-u85-256 --layers" + calibrate("mixed"));
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("NPU and TOSA agree bit for bit"));
  EXPECT_THAT(result.out, Not(HasSubstr("DIFFER")));
}

TEST_F(Cli, TosaIsAnOutputAndAnInput) {
  ASSERT_EQ(run("compile " + model("dense.pt2") + " --target ethos-u65-256 -o " + path("d.tosa") +
                calibrate("dense"))
                .status,
            0);
  const Outcome verified = run("verify " + path("d.tosa") + " --target ethos-u55-64");
  EXPECT_EQ(verified.status, 0) << verified.err << verified.out;
  EXPECT_EQ(run("compile " + path("d.tosa") + " --target ethos-u55-64 -o " + path("d.pte")).status, 0);
  EXPECT_THAT(run("inspect " + path("d.tosa")).out, HasSubstr("tosa.RESCALE"));
  EXPECT_THAT(run("inspect " + path("d.pte")).out, HasSubstr("NPU_OP_CONV"));
}

TEST_F(Cli, InspectShowsWhereANodeComesFrom) {
  const Outcome result = run("inspect " + model("residual.pt2"));
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.out, HasSubstr("aten.conv2d.default"));
  EXPECT_THAT(result.out, HasSubstr("(module stem.0)"));
}

/// An archive with the network of dense.pt2 twice, as programs "encode" and "decode".
std::string twoPrograms() {
  const auto file = MappedFile::open(test::modelFile("dense.pt2"));
  const auto zip = ZipArchive::open((*file)->bytes(), *file);
  std::vector<std::pair<std::string, std::string>> members;
  for (const auto& member : zip->members()) {
    const std::string bytes(asText(zip->read(member)->bytes));
    const size_t name = std::min({member.name.find("/model."), member.name.find("/model_")});
    if (name == std::string::npos) {
      members.emplace_back(member.name, bytes);
      continue;
    }
    for (const char* program : {"/encode", "/decode"}) {
      members.emplace_back(std::string(member.name).replace(name, 6, program), bytes);
    }
  }
  return writeZip(members);
}

TEST_F(Cli, ChoosesOneOfSeveralPrograms) {
  std::ofstream(path("two.pt2"), std::ios::binary) << twoPrograms();
  EXPECT_THAT(run("inspect " + path("two.pt2")).out,
              testing::AllOf(HasSubstr("model 'encode'"), HasSubstr("model 'decode'")));
  const std::string compile =
      "compile " + path("two.pt2") + " --target ethos-u55-128 -o " + path("two.pte") + calibrate("dense");
  const Outcome unnamed = run(compile);
  EXPECT_EQ(unnamed.status, 1);
  EXPECT_THAT(unnamed.err, testing::AllOf(HasSubstr("'encode', 'decode'"), HasSubstr("--program")));
  EXPECT_EQ(run(compile + " --program other").status, 1);
  EXPECT_FALSE(std::filesystem::exists(path("two.pte")));
  EXPECT_EQ(run(compile + " --program decode").status, 0);
  EXPECT_TRUE(std::filesystem::exists(path("two.pte")));
}

TEST_F(Cli, DumpsStages) {
  const Outcome result = run("compile " + model("dense.pt2") + " --target ethos-u55-128 -o " + path("d.pte") +
                             calibrate("dense") + " --dump-after quantize,tosa");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("// after quantize"));
  EXPECT_THAT(result.out, HasSubstr("quantized_decomposed.quantize_per_tensor.default"));
  EXPECT_THAT(result.out, HasSubstr("// after tosa"));
  EXPECT_THAT(result.out, Not(HasSubstr("// after read")));
}

TEST_F(Cli, OpsListsWhereOperatorsRunAndWhy) {
  const Outcome whole = run("ops " + model("residual.pt2") + " --target ethos-u55-128");
  EXPECT_EQ(whole.status, 0) << whole.err;
  EXPECT_THAT(whole.out, HasSubstr("aten.conv2d.default"));
  EXPECT_THAT(whole.out, HasSubstr("stem.0"));
  EXPECT_THAT(whole.out, HasSubstr("0 on the CPU"));
  const Outcome split = run("ops " + model("residual.pt2") + " --target ethos-u55-128 --cpu-op add --json");
  EXPECT_EQ(split.status, 0) << split.err;
  EXPECT_THAT(split.out, HasSubstr("\"runs_on\": \"cpu\""));
  EXPECT_THAT(split.out, HasSubstr("kept off the NPU on request"));
  EXPECT_THAT(split.out, HasSubstr("aten::add.out"));
  const Outcome none = run("ops " + model("residual.pt2") + " --target ethos-u55-128 --cpu-module nowhere");
  EXPECT_EQ(none.status, 1);
  EXPECT_THAT(none.err, HasSubstr("'nowhere'"));
}

TEST_F(Cli, Targets) {
  const Outcome result = run("targets");
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.out, HasSubstr("ethos-u85-2048"));
  EXPECT_THAT(result.out, HasSubstr("Dedicated_Sram_384KB*"));
}

TEST_F(Cli, WrongUsageIsStatusTwo) {
  EXPECT_EQ(run("").status, 2);
  EXPECT_EQ(run("compile").status, 2);
  EXPECT_EQ(run("compile x.pt2 --target ethos-u55-128 -o y.pte --quantize int3").status, 2);
  EXPECT_EQ(run("frobnicate").status, 2);
  EXPECT_EQ(run("--help").status, 0);
}

TEST_F(Cli, WrongUsageSuggestsAlternatives) {
  EXPECT_THAT(run("").err, HasSubstr("carina compile model.pt2"));
  EXPECT_EQ(run("compyle x.pt2").err,
            "carina: error[E0203]: unknown command 'compyle'\n  did you mean 'carina compile'?\n");
  EXPECT_EQ(run("frobnicate").err,
            "carina: error[E0203]: unknown command 'frobnicate'\n  carina --help lists the commands\n");
  EXPECT_EQ(
      run("inspect x.pte --mode fast").err,
      "carina: error[E0201]: unexpected arguments: --mode fast\n  carina inspect --help lists the options\n");
  EXPECT_EQ(run("compile --target ethos-u55-128 -o x.pte").err,
            "carina: error[E0201]: MODEL is required\n  carina compile --help lists the options\n");
}

TEST_F(Cli, RefusesOtherAndDamagedFiles) {
  writeText("text.pt2", "this is not an archive");
  expectRefused(path("text.pt2"), "--target ethos-u55-128", "text.pt2");
  expectRefused(path("missing.pt2"), "--target ethos-u55-128", "missing.pt2");
  expectRefused(path("stdout"), "--target ethos-u55-128", "what kind of network");
  const std::string whole = contentsOf(model("dense.pt2"));
  writeText("half.pt2", whole.substr(0, whole.size() / 2));
  expectRefused(path("half.pt2"), "--target ethos-u55-128", "half.pt2");
}

TEST_F(Cli, RefusesUnknownTargetsModesAndOutputs) {
  expectRefused(model("dense.pt2"), "--target ethos-u99-7" + calibrate("dense"),
                "unknown target 'ethos-u99-7'");
  expectRefused(model("dense.pt2"),
                "--target ethos-u55-128 --memory-mode Dedicated_Sram" + calibrate("dense"),
                "memory mode 'Dedicated_Sram' puts the arena on Axi1, which Ethos-U55 only reads");
  expectRefused(model("dense.pt2"),
                "--target ethos-u55-128 --system-config Ethos_U85_SYS_DRAM_Mid" + calibrate("dense"),
                "no system configuration");
  const Outcome extension = run("compile " + model("dense.pt2") + " --target ethos-u55-128 -o " +
                                path("out.xyz") + calibrate("dense"));
  EXPECT_EQ(extension.status, 1);
  EXPECT_THAT(extension.err, HasSubstr("outputs are .pte"));
  const Outcome folder = run("compile " + model("dense.pt2") + " --target ethos-u55-128 -o " +
                             path("none/out.pte") + calibrate("dense"));
  EXPECT_EQ(folder.status, 1);
  EXPECT_THAT(folder.err, HasSubstr("none/out.pte"));
}

// Two feature maps of 5 MiB: more than Corstone-320's SRAM, or than the user's limit.
TEST_F(Cli, ArenasBeyondTheNamedMemoryWarnOrFail) {
  const std::string network = (dataDir() / "sram" / "wide").string();
  const std::string base =
      "compile " + network + ".pt2 --calibrate " + network + ".npz -o " + path("out.pte") + " --target ";
  Outcome result = run(base + "ethos-u85-128");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("bytes of Sram (arena 10485760"));
  EXPECT_THAT(result.err, HasSubstr("has 4194304"));
  std::filesystem::remove(path("out.pte"));

  result = run(base + "ethos-u55-128 --max-sram 2M");
  EXPECT_EQ(result.status, 3);
  EXPECT_THAT(result.err, HasSubstr("--max-sram 2097152 bytes: found 10485760 bytes (arena 10485760"));
  EXPECT_FALSE(std::filesystem::exists(path("out.pte")));

  result = run(base + "ethos-u55-128 --max-sram 10M");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(std::filesystem::exists(path("out.pte")));
}

TEST_F(Cli, WritesProgramAndReportTogetherOrNeither) {
  ASSERT_TRUE(writeFile(path("file"), std::string_view("in the way")).ok());
  const Outcome outcome = run("compile " + model("dense.pt2") + " --target ethos-u55-128 -o " +
                              path("d.pte") + calibrate("dense") + " --report " + path("file"));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_FALSE(std::filesystem::exists(path("d.pte")));
}

TEST_F(Cli, OutputsDoNotOverwriteInputs) {
  namespace fs = std::filesystem;
  fs::copy_file(model("dense.pt2"), path("net.pte"));  // an input's kind does not depend on its name here
  fs::copy_file(model("dense.npz"), path("c.npz"));
  fs::create_symlink("net.pte", path("link.pte"));
  fs::create_hard_link(path("net.pte"), path("hard.pte"));
  const std::string network = contentsOf(path("net.pte"));
  const std::string compile =
      "compile " + path("net.pte") + " --target ethos-u55-128 --calibrate " + path("c.npz");
  for (const char* name : {"net.pte", "./net.pte", "link.pte", "hard.pte"}) {
    const Outcome refused = run(compile + " -o " + path(name));
    EXPECT_EQ(refused.status, 1) << name;
    EXPECT_EQ(refused.err, "carina: error[E0102]: " + path(name) + ": would overwrite the input " +
                               path("net.pte") + " (MODEL)\n  name another file\n");
  }
  fs::create_directory(path("report"));
  fs::create_hard_link(path("c.npz"), path("report/layers.txt"));
  EXPECT_THAT(run(compile + " -o " + path("d.pte") + " --report " + path("report")).err,
              HasSubstr("would overwrite the input " + path("c.npz") + " (--calibrate)"));
  ASSERT_EQ(run("compile " + model("dense.pt2") + " --target ethos-u55-128 -o " + path("d.pte") +
                calibrate("dense"))
                .status,
            0);
  EXPECT_THAT(run("run " + path("d.pte") + " --input " + path("c.npz") + " --output " + path("c.npz")).err,
              HasSubstr("would overwrite the input"));
  EXPECT_THAT(run("profile " + path("d.pte") + " --trace " + path("d.pte")).err,
              HasSubstr("would overwrite"));
  fs::copy_file(path("d.pte"), path("app.elf"));
  EXPECT_THAT(run("run " + path("app.elf") + " --platform corstone-300 --trace " + path("app.elf")).err,
              HasSubstr("would overwrite"));
  EXPECT_EQ(contentsOf(path("net.pte")), network);
  EXPECT_EQ(contentsOf(path("c.npz")), contentsOf(model("dense.npz")));
  EXPECT_EQ(contentsOf(path("app.elf")), contentsOf(path("d.pte")));
  // Reading one file twice and writing to devices are allowed.
  EXPECT_EQ(run("run " + path("d.pte") + " --input " + path("c.npz") + " --json /dev/null").status, 0);
}

TEST_F(Cli, RefusesMissingAndWrongCalibration) {
  expectRefused(model("dense.pt2"), "--target ethos-u55-128", "no calibration data");
  expectRefused(model("dense.pt2"), "--target ethos-u55-128" + calibrate("mixed"), "mixed.npz");
  expectRefused(model("dense.pt2"), "--target ethos-u55-128 --calibrate " + path("none.npz"), "none.npz");
}

TEST_F(Cli, RefusesUnsupportedNetworks) {
  Tensor samples = Tensor::zeros(DType::Float32, {2, 2, 4});
  ASSERT_TRUE(writeFile(path("c.npz"), formatNpz({{"calib0", samples}})).ok());
  const std::string options = "--target ethos-u85-256 --calibrate " + path("c.npz");
  expectRefused(odd("dynamic.pt2"), options, "dynamic");
  expectRefused(odd("complex.pt2"), options, "complex");
  expectRefused(odd("custom.pt2"), options, "odd.twice");
  expectRefused(odd("scan.pt2"), options, "a loop over slices of tensors (scan) is not supported");
  expectRefused(odd("deform.pt2"), options, "torchvision.deform_conv2d.default is a torchvision operator");
  // The many calls that two torch.vmap expand to are reported as one reason.
  EXPECT_EQ(run("compile " + odd("vmap.pt2") + " --target cpu -o " + path("v.pte")).err,
            "carina: error[E0305]: " + odd("vmap.pt2") +
                ": lazy_load_decompositions: torch.vmap or another transform of torch.func is not resolved "
                "(torch._functorch.predispatch.lazy_load_decompositions)\n"
                "  Call program.run_decompositions() before saving.\n");
  expectRefused(odd("nan_weights.pt2"), options, "weight");
}

TEST_F(Cli, RunRefusesAnotherTargetAndWrongInputs) {
  ASSERT_EQ(run("compile " + model("dense.pt2") + " --target ethos-u55-128 -o " + path("d.pte") +
                calibrate("dense"))
                .status,
            0);
  const Outcome other = run("run " + path("d.pte") + " --target ethos-u85-256 --input " + model("dense.npz"));
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(other.err, HasSubstr("ethos-u55-128"));
  const Outcome wrong =
      run("run " + path("d.pte") + " --input " + model("mixed.npz") + " --output " + path("o.npz"));
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.err, HasSubstr("in0"));
  EXPECT_FALSE(std::filesystem::exists(path("o.npz")));
  const Outcome none = run("run " + path("d.pte"));
  EXPECT_EQ(none.status, 1);
  EXPECT_THAT(none.err, HasSubstr("'in0' is missing"));
  const std::string whole = contentsOf(path("d.pte"));
  writeText("half.pte", whole.substr(0, whole.size() / 2));
  EXPECT_EQ(run("run " + path("half.pte") + " --input " + model("dense.npz")).status, 1);
}

TEST_F(Cli, WritesProfilesForExecutorchTools) {
  ASSERT_EQ(run("compile " + model("dense.pt2") + " --target ethos-u55-128 -o " + path("d.pte") +
                calibrate("dense"))
                .status,
            0);
  const Outcome ran = run("run " + path("d.pte") + " --method forward --input " + model("dense.npz") +
                          " --etdump " + path("d.etdp"));
  EXPECT_EQ(ran.status, 0) << ran.err;
  const std::string dump = contentsOf(path("d.etdp"));
  EXPECT_EQ(dump.substr(8, 4), "ED00");
  EXPECT_THAT(dump, HasSubstr("native_call_quantize_per_tensor.out"));
  EXPECT_THAT(dump, HasSubstr("+EthosUBackend::execute()NPU"));
  const Outcome wrong = run("run " + path("d.pte") + " --method backward --input " + model("dense.npz"));
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.err, HasSubstr("backward"));
  ASSERT_EQ(run("compile " + model("dense.pt2") + " --target ethos-u55-128 -o " + path("d.tosa") +
                calibrate("dense"))
                .status,
            0);
  for (const std::string& option : {std::string("--method forward"), "--etdump " + path("t.etdp")}) {
    const Outcome refused = run("run " + path("d.tosa") + " --input " + model("dense.npz") + " " + option);
    EXPECT_EQ(refused.status, 1) << option;
    EXPECT_THAT(refused.err, HasSubstr("is for .pte and .bpte programs only"));
  }
  EXPECT_FALSE(std::filesystem::exists(path("t.etdp")));
}

TEST_F(Cli, BundlesRunOnTheirTestCases) {
  ASSERT_EQ(run("compile " + model("dense.pt2") + " --target ethos-u85-256 -o " + path("d.pte") +
                calibrate("dense"))
                .status,
            0);
  ASSERT_EQ(
      run("run " + path("d.pte") + " --input " + model("dense.npz") + " --output " + path("o.npz")).status,
      0);
  auto inputs = readNpz(model("dense.npz"));
  auto outputs = readNpz(path("o.npz"));
  ASSERT_TRUE(inputs.ok() && outputs.ok());
  const Tensor* in = findTensor(*inputs, "in0");
  const Tensor* out = findTensor(*outputs, "out0");
  ASSERT_TRUE(in != nullptr && out != nullptr);
  pte::Bundle bundle;
  const std::string program = contentsOf(path("d.pte"));
  bundle.program.assign(asBytes(program).begin(), asBytes(program).end());
  pte::BundleTensor wrong = pte::fromTensor(*out);
  const float nothing = 1e6F;
  std::memcpy(wrong.bytes.data(), &nothing, 4);
  bundle.suites.push_back({"forward", {{{pte::fromTensor(*in)}, {pte::fromTensor(*out)}}}});
  ASSERT_TRUE(writeFile(path("good.bpte"), *pte::writeBundle(bundle)).ok());
  bundle.suites[0].cases.push_back({{pte::fromTensor(*in)}, {wrong}});
  ASSERT_TRUE(writeFile(path("bad.bpte"), *pte::writeBundle(bundle)).ok());

  const Outcome good = run("run " + path("good.bpte") + " --json " + path("s.json"));
  EXPECT_EQ(good.status, 0) << good.err;
  EXPECT_THAT(good.out, HasSubstr("forward case 0: PASS, largest difference 0\n"));
  EXPECT_THAT(contentsOf(path("s.json")), HasSubstr("\"passed\": true"));
  const Outcome bad = run("run " + path("bad.bpte"));
  EXPECT_EQ(bad.status, 1);
  EXPECT_THAT(bad.out, HasSubstr("forward case 0: PASS"));
  EXPECT_THAT(bad.out, HasSubstr("forward case 1: FAIL"));
  EXPECT_THAT(bad.out, HasSubstr("the first at 0"));
  EXPECT_THAT(bad.err, HasSubstr("outputs are not the expected ones"));
  const Outcome own = run("run " + path("bad.bpte") + " --input " + model("dense.npz"));
  EXPECT_EQ(own.status, 0) << own.err;
  const Outcome shown = run("inspect " + path("bad.bpte"));
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("test cases of forward: 2"));
  EXPECT_THAT(shown.out, HasSubstr("NPU_OP_CONV"));
}

TEST_F(Cli, ProgramsUseTensorDataFiles) {
  pte::Tensor weight;
  weight.sizes = {2};
  weight.dimOrder = {0};
  weight.extra = pte::ExtraTensorInfo{0, "weight", true};
  pte::Method method;
  method.values = {weight};
  method.outputs = {0};
  method.chains.push_back({});
  pte::Program program;
  program.methods.push_back(method);
  ASSERT_TRUE(writeFile(path("p.pte"), *pte::writeProgram(program)).ok());
  pte::TensorData data;
  data.entries.push_back({"weight", std::nullopt, pte::ByteVector(8)});
  ASSERT_TRUE(writeFile(path("w.ptd"), *pte::writeTensorData(data)).ok());

  const std::string given = " --tensor-data " + path("w.ptd");
  const Outcome alone = run("run " + path("p.pte"));
  EXPECT_EQ(alone.status, 1);
  EXPECT_THAT(alone.err, HasSubstr("which was not given (weight"));
  EXPECT_THAT(alone.err, HasSubstr("--tensor-data"));
  const Outcome whole = run("run " + path("p.pte") + given + " --output " + path("o.npz"));
  EXPECT_EQ(whole.status, 0) << whole.err;
  EXPECT_TRUE(readNpz(path("o.npz")).ok());
  EXPECT_EQ(run("check " + path("p.pte")).status, 1);
  EXPECT_EQ(run("check " + path("p.pte") + given).status, 0);
  ASSERT_TRUE(writeFile(path("w.ptd"), contentsOf(path("w.ptd")).substr(0, 100)).ok());
  EXPECT_THAT(run("run " + path("p.pte") + given).err, HasSubstr("truncated"));
  EXPECT_THAT(run("run " + path("x.tosa") + given).err, HasSubstr("x.tosa"));
}

TEST_F(Cli, TensorDataFilesAreShown) {
  pte::TensorData data;
  data.entries.push_back({"weight", std::nullopt, pte::ByteVector(20)});
  ASSERT_TRUE(writeFile(path("w.ptd"), *pte::writeTensorData(data)).ok());
  const Outcome result = run("inspect " + path("w.ptd"));
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out, "tensor data: 1 entry\n  weight: 20 bytes\n");
  EXPECT_EQ(run("inspect " + path("w.ptd") + " --check").status, 1);
  EXPECT_EQ(run("run " + path("w.ptd")).status, 1);
}

TEST_F(Cli, CommandsGoToTextAndBack) {
  ASSERT_EQ(run("compile " + model("digits8.pt2") + " --target ethos-u55-128 -o " + path("d.pte") +
                calibrate("digits8"))
                .status,
            0);
  const Outcome text = run("inspect " + path("d.pte") + " --commands");
  ASSERT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, testing::StartsWith("; delegate 0 of forward\n.payload cop1\n"));
  writeText("d.s", text.out);
  const Outcome assembled = run("assemble " + path("d.s") + " -o " + path("d.bin"));
  ASSERT_EQ(assembled.status, 0) << assembled.err;
  EXPECT_THAT(assembled.out, HasSubstr("driver payload"));
  EXPECT_THAT(contentsOf(path("d.pte")), HasSubstr(contentsOf(path("d.bin"))));
  EXPECT_EQ("; delegate 0 of forward\n" + run("inspect " + path("d.bin")).out, text.out);

  // Bare commands, without the 32 bytes before them: they do not name their NPU.
  writeText("raw.bin", contentsOf(path("d.bin")).substr(32));
  const Outcome unnamed = run("inspect " + path("raw.bin"));
  EXPECT_EQ(unnamed.status, 1);
  EXPECT_THAT(unnamed.err, HasSubstr("--target"));
  const Outcome raw = run("inspect " + path("raw.bin") + " --target ethos-u55-128");
  ASSERT_EQ(raw.status, 0) << raw.err;
  writeText("raw.s", raw.out);
  ASSERT_EQ(run("assemble " + path("raw.s") + " -o " + path("again.bin")).status, 0);
  EXPECT_EQ(contentsOf(path("again.bin")), contentsOf(path("raw.bin")));

  writeText("wrong.s", ".stream ethos-u55\nNPU_OP_DANCE\n");
  const Outcome wrong = run("assemble " + path("wrong.s") + " -o " + path("wrong.bin"));
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.err, HasSubstr("wrong.s: line 2: "));
  EXPECT_FALSE(std::filesystem::exists(path("wrong.bin")));
  EXPECT_EQ(run("inspect " + path("d.pte") + " --part 7").status, 1);
  writeText("broken.tflite", "this is no model");
  EXPECT_THAT(run("inspect " + path("broken.tflite")).err, HasSubstr("TFL3 is missing"));
  EXPECT_THAT(run("run " + path("broken.tflite")).err, HasSubstr("TFL3 is missing"));
  EXPECT_EQ(run("inspect " + model("dense.pt2") + " --commands").status, 1);
}

TEST_F(Cli, ChecksCommandStreams) {
  ASSERT_EQ(run("compile " + model("digits8.pt2") + " --target ethos-u55-128 -o " + path("d.pte") +
                calibrate("digits8"))
                .status,
            0);
  const Outcome clean = run("inspect " + path("d.pte") + " --check");
  EXPECT_EQ(clean.status, 0) << clean.err << clean.out;
  EXPECT_THAT(clean.out, testing::StartsWith("no findings in 1 command stream"));
  const Outcome ran = run("run " + path("d.pte") + " --check --input " + model("digits8.npz"));
  EXPECT_EQ(ran.status, 0) << ran.err << ran.out;

  std::string text = run("inspect " + path("d.pte") + " --commands").out;
  const size_t wait = text.find("NPU_OP_KERNEL_WAIT");
  ASSERT_NE(wait, std::string::npos);
  writeText("bad.s", text.erase(wait, text.find('\n', wait) + 1 - wait));
  ASSERT_EQ(run("assemble " + path("bad.s") + " -o " + path("bad.bin")).status, 0);
  const Outcome bad = run("inspect " + path("bad.bin") + " --check");
  EXPECT_EQ(bad.status, 1);
  EXPECT_THAT(bad.out, HasSubstr(": hazard: "));
  EXPECT_THAT(bad.out, HasSubstr("a KERNEL_WAIT is missing before it"));
  EXPECT_THAT(bad.err, HasSubstr("1 finding in its command streams"));
}

}  // namespace
}  // namespace carina
