// SPDX-License-Identifier: Apache-2.0
// Images on the virtual platform: our firmware on an emulated Cortex-M produces the same bytes and NPU cycles
// as the same program in process, and reading and writing the program reproduces the file.
#include "device/run.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>

#include "base/file.hpp"
#include "base/npy.hpp"
#include "pipeline/batch.hpp"
#include "pipeline/verify.hpp"
#include "pte/program.hpp"
#include "ran_images.hpp"
#include "support/contents.hpp"
#include "support/require.hpp"
#include "support/temp_dir.hpp"

namespace carina::firmware {
namespace {

using testing::HasSubstr;
using testing::Not;

class Firmware : public testing::Test {
 protected:
  /// Compiles a shipped network and runs `count` samples of it in process.
  void prepare(const std::string& network, const std::string& target, const std::string& mode,
               size_t count = 2) {
    prepareFile(test::modelFile(network + ".pt2"), target, mode, count);
  }

  /// The same for a .pt2 file with its samples next to it.
  void prepareFile(const std::filesystem::path& network, const std::string& target, const std::string& mode,
                   size_t count) {
    pipeline::Options options;
    options.model = network;
    options.calibration = std::filesystem::path(network).replace_extension(".npz");
    options.target = target;
    options.memoryMode = mode;
    auto build = require(pipeline::build(options));
    ASSERT_TRUE(pipeline::writeOutput(build, program()).ok());
    auto arrays = require(readNpz(options.calibration));
    auto samples = require(pipeline::verificationSamples(build, arrays));
    samples.resize(std::min(count, samples.size()));
    runInProcess(samples);
  }

  /// Runs program() on the samples and records its outputs and NPU cycles.
  void runInProcess(const std::vector<std::vector<Tensor>>& samples) {
    auto file = require(MappedFile::open(program()));
    auto runner = require(device::Runner::open(file->bytes()));
    std::vector<std::vector<Tensor>> inputs(runner.inputs().size()), outputs(runner.outputs().size());
    for (const auto& sample : samples) {
      auto run = require(runner.run(sample));
      for (size_t i = 0; i < inputs.size(); ++i) inputs[i].push_back(sample[i]);
      for (size_t i = 0; i < outputs.size(); ++i) outputs[i].push_back(run.outputs[i]);
      cycles_ += run.stats.npuCycles;
      calls_ += run.stats.delegates.size();
    }
    for (size_t i = 0; i < inputs.size(); ++i)
      inputs_.emplace_back(fmt::format("in{}", i), pipeline::stack(inputs[i]));
    for (size_t i = 0; i < outputs.size(); ++i)
      expected_.emplace_back(fmt::format("out{}", i), pipeline::stack(outputs[i]));
  }

  std::filesystem::path program() const { return folder_ / "x.pte"; }
  std::filesystem::path elf() const { return folder_ / "x.elf"; }

  ImageOptions linked(const std::string& platform) const {
    ImageOptions options = imageOptions(program(), platform);
    options.plan.inputs = inputs_;
    options.plan.expected = expected_;
    return options;
  }

  /// Builds the image and runs it with semihosting in the folder. `npu` overrides the program's NPU.
  Ran run(const ImageOptions& options, const std::string& arguments = "", const std::string& npu = "") {
    platform::Options platform;
    platform.timingAdapters = timingAdapters_;
    platform.semihostingFolder = folder_.path();
    platform.commandLine = "x.elf" + (arguments.empty() ? "" : " " + arguments);
    return runImage(options, elf(), std::move(platform), npu);
  }

  /// The number after `name` in a line "I [carina] NAMEnumber ...".
  static int64_t printed(const std::string& text, const std::string& name) {
    const size_t at = text.find("I [carina] " + name);
    return at == std::string::npos ? -1 : std::stoll(text.substr(at + 11 + name.size()));
  }

  test::TempDir folder_;
  NamedTensors inputs_, expected_;
  int64_t cycles_ = 0;
  size_t calls_ = 0;
  bool timingAdapters_ = false;
};

struct RunCase {
  const char *network, *target, *mode, *platform;
};
class ThreeWays : public Firmware, public testing::WithParamInterface<RunCase> {
 protected:
  /// After prepare(): rewriting the container reproduces the file, and the firmware produces the same bytes
  /// and NPU cycles.
  void expectThreeWays(const RunCase& c);
};
class Networks : public ThreeWays {};
class FixtureNetworks : public ThreeWays {};

TEST_P(Networks, ThreeWays) {
  CARINA_NEED_CROSS_COMPILER();
  const RunCase& c = GetParam();
  prepare(c.network, c.target, c.mode);
  expectThreeWays(c);
}

TEST_P(FixtureNetworks, ThreeWays) {
  CARINA_NEED_FIXTURES(fixtures);
  CARINA_NEED_CROSS_COMPILER();
  const RunCase& c = GetParam();
  prepareFile(fixtures / "fixtures" / "models" / (std::string(c.network) + ".pt2"), c.target, c.mode, 1);
  expectThreeWays(c);
}

void ThreeWays::expectThreeWays(const RunCase& c) {
  if (HasFatalFailure()) return;
  const auto file = require(MappedFile::open(program()));
  const auto read = require(pte::readProgram(file->bytes()));
  const auto written = require(pte::writeProgram(read));
  EXPECT_TRUE(asText(file->bytes()) == written) << "reading and writing the program changes the file";

  const Ran ran = run(linked(c.platform));
  EXPECT_EQ(ran.outcome.reason, platform::EndReason::Exit) << ran.outcome.explanation;
  EXPECT_EQ(ran.outcome.exitCode, 0) << ran.text;
  EXPECT_THAT(ran.text, HasSubstr("Test_result: PASS"));
  EXPECT_THAT(ran.text, HasSubstr("Application exit code: 0."));
  EXPECT_EQ(printed(ran.text, "NPU Inferences : "), expected_.front().second.dim(0));
  EXPECT_EQ(printed(ran.text, "NPU delegations: "), static_cast<int64_t>(calls_));
  EXPECT_EQ(printed(ran.text, "ethosu_pmu_cycle_cntr : "), cycles_);
  EXPECT_EQ(ran.outcome.jobs.size(), calls_);
  EXPECT_GT(printed(ran.text, "ethosu_pmu_cntr0 : "), 0);
  EXPECT_GT(printed(ran.text, "Inference runtime: "), cycles_);
  EXPECT_LE(printed(ran.text, "stack_used: "), 3072) << "the image nearly exhausts its stack";
  int64_t bytes = 0;
  for (const auto& [name, tensor] : expected_) bytes += static_cast<int64_t>(tensor.bytes().size());
  fmt::print("three ways: {} {} {}: {} output bytes, {} NPU cycles\n", c.network, c.target, c.mode, bytes,
             cycles_);
}

std::string runCaseName(const testing::TestParamInfo<RunCase>& at) {
  std::string name = std::string(at.param.network) + "_" + at.param.target;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    All, Networks,
    testing::Values(RunCase{"digits8", "ethos-u55-128", "Shared_Sram", "corstone-300"},
                    RunCase{"residual", "ethos-u55-256", "Sram_Only", "corstone-300"},
                    RunCase{"dense", "ethos-u65-512", "Dedicated_Sram_384KB", "corstone-300"},
                    RunCase{"mobile", "ethos-u65-256", "Shared_Sram", "corstone-300"},
                    RunCase{"mobile", "ethos-u85-256", "Sram_Only", "corstone-320"},
                    RunCase{"residual", "ethos-u85-1024", "Dedicated_Sram_256KB", "corstone-320"}),
    runCaseName);

std::vector<RunCase> fixtureCases() {
  std::vector<RunCase> cases;
  for (const char* network : {"digits_cnn", "mobilenet_v2", "keyword_ds_cnn", "resnet8", "autoencoder"}) {
    cases.push_back({network, "ethos-u55-128", "Sram_Only", "corstone-300"});
    cases.push_back({network, "ethos-u65-256", "Dedicated_Sram_384KB", "corstone-300"});
    cases.push_back({network, "ethos-u85-256", "Sram_Only", "corstone-320"});
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(All, FixtureNetworks, testing::ValuesIn(fixtureCases()), runCaseName);

TEST_F(Firmware, RunsWithoutNpu) {
  CARINA_NEED_CROSS_COMPILER();
  prepare("dense", "cpu", "");
  ImageOptions options = linked("corstone-320");
  options.source.tolerance = 1e-6;
  const Ran ran = run(options);
  EXPECT_EQ(ran.outcome.exitCode, 0) << ran.text;
  EXPECT_THAT(ran.text, HasSubstr("Test_result: PASS"));
  EXPECT_THAT(ran.text, HasSubstr("aten::addmm : cycle_cnt : "));
  EXPECT_THAT(ran.text, Not(HasSubstr("ethosu")));
  EXPECT_TRUE(ran.outcome.jobs.empty());
}

TEST_F(Firmware, CortexM55RunsCpuPrograms) {
  CARINA_NEED_CROSS_COMPILER();
  prepare("dense", "cpu", "", 1);
  ASSERT_TRUE(writeFile(folder_ / "i0.bin", inputs_.front().second.bytes()).ok());
  ImageOptions options = imageOptions(program(), "corstone-300");
  options.source.core = "cortex-m55";
  options.plan.semihosted = true;
  const Ran ran = run(options, "-i i0.bin -o out");
  EXPECT_EQ(ran.outcome.exitCode, 0) << ran.text;
  EXPECT_THAT(ran.text, HasSubstr("Program complete, exiting."));
  auto written = MappedFile::open(folder_ / "out-0.bin");
  ASSERT_TRUE(written.ok()) << ran.text;
  const Tensor& expected = expected_.front().second;
  ASSERT_EQ((*written)->bytes().size(), expected.bytes().size());
  for (int64_t i = 0; i < expected.numElements(); ++i) {
    float value;
    std::memcpy(&value, (*written)->bytes().data() + 4 * i, 4);
    EXPECT_NEAR(static_cast<double>(value), expected.realAt(i), 1e-6) << i;
  }
}

struct Foreign {
  const char *folder, *name, *platform;
};
class ExecuTorchPrograms : public Firmware, public testing::WithParamInterface<Foreign> {};

TEST_P(ExecuTorchPrograms, RunInOurFirmware) {
  CARINA_NEED_FIXTURES(fixtures);
  CARINA_NEED_CROSS_COMPILER();
  const Foreign& foreign = GetParam();
  const auto folder = fixtures / "vectors" / "executorch" / foreign.folder;
  std::filesystem::copy_file(folder / foreign.name, program());
  auto arrays = require(readNpz(folder / "io.npz"));
  runInProcess({test::arraysNamed(arrays, "input")});
  const Ran ran = run(linked(foreign.platform));
  EXPECT_EQ(ran.outcome.exitCode, 0) << ran.text;
  EXPECT_THAT(ran.text, HasSubstr("Test_result: PASS"));
  EXPECT_EQ(printed(ran.text, "ethosu_pmu_cycle_cntr : "), cycles_);
}

INSTANTIATE_TEST_SUITE_P(
    All, ExecuTorchPrograms,
    testing::Values(Foreign{"cnn/ethos-u55-128", "cnn.pte", "corstone-300"},
                    Foreign{"softmax/ethos-u65-512", "softmax_segments.pte", "corstone-300"},
                    Foreign{"softmax/ethos-u85-256_a16w8", "softmax.pte", "corstone-320"}),
    [](const testing::TestParamInfo<Foreign>& at) {
      std::string name = at.param.folder;
      std::replace_if(
          name.begin(), name.end(), [](char c) { return c == '-' || c == '/'; }, '_');
      return name;
    });

TEST_F(Firmware, PollingTakesTheSameCycles) {
  CARINA_NEED_CROSS_COMPILER();
  prepare("dense", "ethos-u85-128", "");
  ImageOptions options = linked("corstone-320");
  options.source.poll = true;
  const Ran ran = run(options);
  EXPECT_EQ(ran.outcome.exitCode, 0) << ran.text;
  EXPECT_EQ(printed(ran.text, "ethosu_pmu_cycle_cntr : "), cycles_);
}

TEST_F(Firmware, TimingAdaptersMatchTheSystemConfiguration) {
  CARINA_NEED_CROSS_COMPILER();
  prepare("residual", "ethos-u55-128", "Shared_Sram");
  timingAdapters_ = true;
  const Ran ran = run(linked("corstone-300"));
  EXPECT_EQ(ran.outcome.exitCode, 0) << ran.text;
  const int64_t cycles = printed(ran.text, "ethosu_pmu_cycle_cntr : ");
  EXPECT_NEAR(static_cast<double>(cycles), static_cast<double>(cycles_), 0.1 * static_cast<double>(cycles_));
}

TEST_F(Firmware, AWrongOutputFailsTheTest) {
  CARINA_NEED_CROSS_COMPILER();
  prepare("dense", "ethos-u55-128", "");
  Tensor& expected = expected_.front().second;
  float last;
  std::byte* at = expected.mutableBytes().data() + expected.numBytes() - 4;
  std::memcpy(&last, at, 4);
  last += 0.5f;
  std::memcpy(at, &last, 4);
  ImageOptions options = linked("corstone-300");
  Ran ran = run(options);
  EXPECT_EQ(ran.outcome.exitCode, 1);
  EXPECT_THAT(ran.text, HasSubstr("Test_result: FAIL"));
  EXPECT_THAT(ran.text, HasSubstr(" max_absolute_error: 0.5000"));
  EXPECT_THAT(ran.text, HasSubstr(" different_elements: 1\n"));
  EXPECT_THAT(ran.text, HasSubstr("Application exit code: 1."));
  options.source.tolerance = 0.51;
  ran = run(options);
  EXPECT_EQ(ran.outcome.exitCode, 0) << ran.text;
}

TEST_F(Firmware, FilesBySemihosting) {
  CARINA_NEED_CROSS_COMPILER();
  prepare("digits8", "ethos-u55-64", "", 1);
  const ByteSpan input = inputs_.front().second.bytes(), output = expected_.front().second.bytes();
  ASSERT_TRUE(writeFile(folder_ / "i0.bin", input).ok());
  for (const bool programByFile : {false, true}) {
    ImageOptions options = imageOptions(program(), "corstone-300");
    options.plan.semihosted = true;
    options.plan.programByFile = programByFile;
    std::filesystem::remove(folder_ / "out-0.bin");
    const Ran ran = run(options, programByFile ? "-m x.pte -i i0.bin -o out" : "-i i0.bin -o out");
    EXPECT_EQ(ran.outcome.exitCode, 0) << ran.text;
    auto written = MappedFile::open(folder_ / "out-0.bin");
    ASSERT_TRUE(written.ok()) << ran.text;
    EXPECT_TRUE(
        std::equal(output.begin(), output.end(), (*written)->bytes().begin(), (*written)->bytes().end()));
    EXPECT_EQ(printed(ran.text, "ethosu_pmu_cycle_cntr : "), cycles_);
  }
}

TEST_F(Firmware, CommandsOutsideTheirMemoryAreErrors) {
  CARINA_NEED_CROSS_COMPILER();
  prepare("dense", "ethos-u55-128", "", 1);
  auto file = require(MappedFile::open(program()));
  std::vector<std::byte> bytes(file->bytes().begin(), file->bytes().end());
  // The address of the first OFM: NPU_SET_OFM_BASE0, then a word.
  const std::byte command[] = {std::byte{0x10}, std::byte{0x40}, std::byte{0}, std::byte{0}};
  const auto at = std::search(bytes.begin(), bytes.end(), std::begin(command), std::end(command));
  ASSERT_NE(at, bytes.end());
  *(at + 7) = std::byte{0x0f};
  ASSERT_TRUE(writeFile(folder_ / "hostile.pte", bytes).ok());
  ImageOptions options = imageOptions(program(), "corstone-300");
  options.plan.semihosted = options.plan.programByFile = true;
  for (const bool validate : {false, true}) {
    options.source.validate = validate;
    const Ran honest = run(options, "-m x.pte -o out");
    EXPECT_EQ(honest.outcome.exitCode, 0) << honest.text;
    const Ran ran = run(options, "-m hostile.pte -o out");
    EXPECT_EQ(ran.outcome.exitCode, 1);
    EXPECT_THAT(ran.text, HasSubstr(validate ? "E [carina] corrupt delegate: an OFM outside its region"
                                             : "E [carina] device fault: the NPU accessed memory outside"));
  }
}

TEST_F(Firmware, ReportsWhatIsWrongWithItsFiles) {
  CARINA_NEED_CROSS_COMPILER();
  prepare("dense", "ethos-u55-128", "", 1);
  ASSERT_TRUE(writeFile(folder_ / "short.bin", std::string_view("abc")).ok());
  ImageOptions options = imageOptions(program(), "corstone-300");
  options.plan.semihosted = true;
  const auto expectError = [&](const std::string& arguments, const std::string& message) {
    const Ran ran = run(options, arguments);
    EXPECT_EQ(ran.outcome.exitCode, 1) << arguments;
    EXPECT_THAT(ran.text, HasSubstr("E [carina] " + message));
  };
  expectError("-i none.bin -o out", "cannot read none.bin");
  expectError("-i short.bin -o out", "cannot read short.bin, or it does not have");
  expectError("-i short.bin -i short.bin", "2 inputs given, the program has 1");
  expectError("--server_mode true", "cannot understand '--server_mode'");
  expectError("-m x.pte", "this image has no memory for a program");
  options.plan.programByFile = true;
  expectError("", "no program is linked in: name one with -m");
  expectError("-m short.bin", "truncated: the file is shorter than a program header");
}

TEST_F(Firmware, RefusesAnNpuThatTheProgramWasNotCompiledFor) {
  CARINA_NEED_CROSS_COMPILER();
  prepare("dense", "ethos-u55-128", "", 1);
  const Ran ran = run(linked("corstone-300"), "", "ethos-u55-256");
  EXPECT_EQ(ran.outcome.exitCode, 1);
  EXPECT_THAT(
      ran.text,
      HasSubstr("E [carina] wrong target: compiled for another number of MACs per cycle than the NPU has"));
}

TEST_F(Firmware, AJobThatTakesTooLongIsAnError) {
  CARINA_NEED_CROSS_COMPILER();
  prepare("mobile", "ethos-u55-32", "", 1);
  ASSERT_GT(cycles_, 50000);
  for (const bool poll : {false, true}) {
    ImageOptions options = linked("corstone-300");
    options.source.poll = poll;
    options.source.timeoutMilliseconds = 1;  // 25,000 cycles
    const Ran ran = run(options);
    EXPECT_EQ(ran.outcome.exitCode, 1) << ran.text;
    EXPECT_THAT(ran.text,
                HasSubstr("E [carina] device timeout: the NPU did not finish the command stream in time"));
  }
}

TEST_F(Firmware, StackOverflowIsReported) {
  CARINA_NEED_CROSS_COMPILER();
  prepare("dense", "ethos-u55-128", "", 1);
  ImageOptions options = linked("corstone-300");
  options.plan.stackBytes = 256;
  const Ran ran = run(options);
  EXPECT_EQ(ran.outcome.exitCode, 1) << ran.text;
  // The frame of the hard fault does not fit within the stack limit, so the faulting address is lost.
  EXPECT_THAT(ran.text, HasSubstr("Hard fault. irq=-13, pc=0x"));
  EXPECT_THAT(ran.text, HasSubstr("cfsr=0x00100000"));
  EXPECT_THAT(ran.text, HasSubstr("Application exit code: 1."));
}

TEST_F(Firmware, WithoutInputsEveryElementIsOne) {
  CARINA_NEED_CROSS_COMPILER();
  prepare("dense", "ethos-u55-128", "", 1);
  ImageOptions options = imageOptions(program(), "corstone-300");
  options.source.printed = 2;
  const Ran ran = run(options);
  EXPECT_EQ(ran.outcome.exitCode, 0) << ran.text;
  EXPECT_THAT(ran.text, HasSubstr("Output[0][1]: (float) "));
  EXPECT_THAT(ran.text, Not(HasSubstr("Output[0][2]")));
}

}  // namespace
}  // namespace carina::firmware
