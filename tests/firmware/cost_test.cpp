// SPDX-License-Identifier: Apache-2.0
// Estimated inference times against the virtual platform: networks with samples of their calibration data, on
// every core.
#include "cpu/cost.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "base/file.hpp"
#include "images.hpp"
#include "measured_costs.hpp"
#include "pipeline/batch.hpp"
#include "pipeline/inference_time.hpp"
#include "pipeline/integer_io.hpp"
#include "pipeline/part_turns.hpp"
#include "pipeline/verify.hpp"
#include "support/require.hpp"
#include "support/temp_dir.hpp"

namespace carina::firmware {
namespace {

struct Case {
  const char *network, *target;
  pipeline::ProgramIo io = pipeline::ProgramIo::Float;
  enum class From : uint8_t { Models, Fixtures, Loops } from = From::Models;
  /// All cores if empty.
  std::optional<cpu::Core> core{};
};

class Inference : public testing::TestWithParam<Case> {
 protected:
  /// Compiles the network and takes a sample.
  void prepare(const std::filesystem::path& network) {
    pipeline::Options options;
    options.model = network;
    options.calibration = std::filesystem::path(network).replace_extension(".npz");
    options.target = GetParam().target;
    options.inputs = options.outputs = GetParam().io;
    options.unroll = 99;  // recurrences stay loops, whatever they cost
    auto build = require(pipeline::build(options));
    ASSERT_TRUE(pipeline::writeOutput(build, program()).ok());
    auto arrays = require(readNpz(options.calibration));
    const auto samples = require(pipeline::verificationSamples(build, arrays));
    for (size_t i = 0; i < samples.front().size(); ++i)
      inputs_.emplace_back(fmt::format("in{}", i),
                           pipeline::asInput(samples.front()[i], *build.graph().inputs()[i]));
    build_ = std::move(build);
  }
  std::filesystem::path program() const { return folder_ / "x.pte"; }

  pipeline::InferenceTime timeOn(cpu::Core core) const {
    const npu::Machine* machine = build_.machine ? &*build_.machine : nullptr;
    return pipeline::inferenceTime(build_.program.methods.front(), pipeline::npuCycles(build_), machine,
                                   core);
  }

  std::vector<pipeline::InferenceStep> stepsOn(cpu::Core core) const {
    std::vector<int64_t> parts;
    for (const compiler::CompiledProgram& part : build_.compiled) parts.push_back(part.cycles);
    return pipeline::inferenceSteps(build_.program.methods.front(), parts, core);
  }

  /// Estimated cycles of kernels by the name that the firmware prints.
  static std::map<std::string, double> kernelsOf(const pipeline::InferenceTime& time) {
    std::map<std::string, double> kernels;
    for (const pipeline::KernelTime& kernel : time.kernels)
      kernels[kernel.kernel.substr(0, kernel.kernel.rfind('.'))] += kernel.cycles;
    return kernels;
  }

  test::TempDir folder_;
  pipeline::Build build_;
  NamedTensors inputs_;
};

/// Relative difference; short times are compared relative to a thousand cycles.
double difference(double estimated, int64_t measured) {
  return std::fabs(estimated - static_cast<double>(measured)) /
         std::max<double>(1000, static_cast<double>(measured));
}

TEST_P(Inference, TakesTheEstimatedTime) {
  CARINA_NEED_CROSS_COMPILER();
  const Case& c = GetParam();
  const std::string file = std::string(c.network) + ".pt2";
  if (c.from == Case::From::Fixtures) {
    CARINA_NEED_FIXTURES(fixtures);
    prepare(fixtures / "fixtures" / "models" / file);
  } else if (c.from == Case::From::Loops) {
    prepare(test::dataDir() / "recurrences" / file);
  } else {
    prepare(test::modelFile(file));
  }
  if (HasFatalFailure()) return;
  std::vector<cpu::Core> cores;
  for (const cpu::CoreInfo& info : cpu::coreInfos()) {
    if (!c.core || c.core == info.core) cores.push_back(info.core);
  }
  const auto runs = require(measure(program(), inputs_, cores));
  for (size_t i = 0; i < cores.size(); ++i) {
    const MeasuredRun& run = runs[i];
    const pipeline::InferenceTime time = timeOn(cores[i]);
    SCOPED_TRACE(cpu::coreInfo(cores[i]).text);
    // In every call, the driver's counter is off by a few cycles.
    int64_t calls = 0;
    for (const pipeline::InferenceStep& step : stepsOn(cores[i]))
      calls += step.kind == pipeline::InferenceStep::Kind::Npu ? step.turns : 0;
    EXPECT_LE(std::abs(time.npuCycles - run.npu), 16 * std::max<int64_t>(calls, 1));
    for (const auto& [name, cycles] : kernelsOf(time)) {
      ASSERT_EQ(run.kernels.count(name), 1u) << name;
      EXPECT_LE(difference(cycles, run.kernels.at(name)), 0.10)
          << name << ": " << cycles << " estimated, " << run.kernels.at(name) << " measured";
    }
    EXPECT_EQ(kernelsOf(time).size(), run.kernels.size());
    EXPECT_LE(difference(static_cast<double>(time.callCycles), run.calls()), 0.10)
        << time.callCycles << " estimated between kernels, " << run.calls() << " measured";
    const double off = difference(static_cast<double>(time.cycles()), run.runtime);
    EXPECT_LE(off, 0.05) << time.cycles() << " estimated, " << run.runtime << " measured";
    EXPECT_LE(off, time.error + 1e-9) << "outside the stated error";
    fmt::print("inference: {} {} {}: {} cycles estimated, {} measured, {:.2f} % off\n", c.network, c.target,
               cpu::coreInfo(cores[i]).name, time.cycles(), run.runtime, 100 * off);
  }
}

std::string caseName(const testing::TestParamInfo<Case>& at) {
  std::string name = fmt::format("{}_{}{}", at.param.network, at.param.target,
                                 at.param.io == pipeline::ProgramIo::Int8 ? "_int8" : "");
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

constexpr auto kInt8 = pipeline::ProgramIo::Int8;
INSTANTIATE_TEST_SUITE_P(Networks, Inference,
                         testing::Values(Case{"digits8", "cpu"}, Case{"dense", "cpu"},
                                         Case{"residual", "cpu"}, Case{"mobile", "cpu"},
                                         Case{"digits8", "ethos-u55-128"}, Case{"residual", "ethos-u65-512"},
                                         Case{"mobile", "ethos-u85-256"},
                                         Case{"mobile", "ethos-u55-256", kInt8},
                                         Case{"digits8", "ethos-u85-128", kInt8}),
                         caseName);
INSTANTIATE_TEST_SUITE_P(Fixtures, Inference,
                         testing::Values(Case{"keyword_ds_cnn", "ethos-u55-128", {}, Case::From::Fixtures},
                                         Case{"resnet8", "ethos-u85-256", {}, Case::From::Fixtures},
                                         Case{"autoencoder", "cpu", {}, Case::From::Fixtures},
                                         Case{"digits_cnn", "cpu", {}, Case::From::Fixtures}),
                         caseName);
// Instructions that run more than once.
INSTANTIATE_TEST_SUITE_P(Loops, Inference,
                         testing::Values(Case{"gru", "ethos-u55-128", {}, Case::From::Loops, cpu::Core::M33}),
                         caseName);

}  // namespace
}  // namespace carina::firmware
