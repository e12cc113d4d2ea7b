// SPDX-License-Identifier: Apache-2.0
// Whole programs written by ExecuTorch: our loader, kernels, driver and delegate on the NPU model against the
// outputs of the real ExecuTorch runtime with an exact NPU, bit for bit.
#include <gtest/gtest.h>

#include "base/file.hpp"
#include "base/npy.hpp"
#include "device/run.hpp"
#include "pte/program.hpp"
#include "support/contents.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"

namespace carina {
namespace {

/// How many elements differ, and the first of them.
std::string difference(const Tensor& got, const Tensor& wanted) {
  if (got.dtype() != wanted.dtype() || got.shape() != wanted.shape()) {
    return fmt::format("{}{} instead of {}{}", dtypeName(got.dtype()), shapeText(got.shape()),
                       dtypeName(wanted.dtype()), shapeText(wanted.shape()));
  }
  int64_t count = 0, first = -1;
  for (int64_t i = 0; i < got.numElements(); ++i) {
    if (got.realAt(i) == wanted.realAt(i)) continue;
    ++count;
    if (first < 0) first = i;
  }
  if (count == 0) return "";
  return fmt::format("{} of {} elements differ, first {}: {} instead of {}", count, got.numElements(), first,
                     got.realAt(first), wanted.realAt(first));
}

std::filesystem::path vectors() {
  const auto fixtures = test::fixturesDir();
  return fixtures ? *fixtures / "vectors" / "executorch" : std::filesystem::path();
}

/// Runs `program` on the inputs recorded in `folder`: delegate calls and outputs must equal those of the
/// original runtime.
void expectRecorded(ByteSpan program, const std::filesystem::path& folder) {
  auto expected = require(readNpz(folder / "e2e.npz"));
  const auto io = require(readNpz(folder / "io.npz"));

  device::RunOptions options;
  options.keepDelegateIo = true;
  options.model.check = true;
  auto runner = require(device::Runner::open(program, options));
  // Programs with integer inputs take the delegate's inputs.
  const bool quantized = isInteger(runner.inputs().front().dtype);
  const auto outcome =
      require(runner.run(quantized ? test::arraysNamed(expected, "d0_in") : test::arraysNamed(io, "input")));

  for (size_t call = 0; call < outcome.stats.delegates.size(); ++call) {
    const device::DelegateRun& run = outcome.stats.delegates[call];
    const std::string prefix = fmt::format("d{}_", call);
    const std::vector<Tensor> inputs = test::arraysNamed(expected, prefix + "in"),
                              outputs = test::arraysNamed(expected, prefix + "out");
    ASSERT_EQ(run.inputs.size(), inputs.size());
    ASSERT_EQ(run.outputs.size(), outputs.size());
    for (size_t i = 0; i < inputs.size(); ++i)
      EXPECT_EQ(difference(run.inputs[i].reshaped(inputs[i].shape()), inputs[i]), "") << prefix << "in" << i;
    for (size_t i = 0; i < outputs.size(); ++i)
      EXPECT_EQ(difference(run.outputs[i].reshaped(outputs[i].shape()), outputs[i]), "")
          << prefix << "out" << i;
    EXPECT_GT(run.pmuCycles, 0u);
  }
  EXPECT_FALSE(outcome.stats.delegates.empty());
  EXPECT_TRUE(test::arraysNamed(expected, fmt::format("d{}_in", outcome.stats.delegates.size())).empty())
      << "fewer delegate calls than recorded";
  const std::vector<Tensor> outputs = test::arraysNamed(expected, "output");
  ASSERT_EQ(outcome.outputs.size(), outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i)
    EXPECT_EQ(difference(outcome.outputs[i], outputs[i]), "") << "output" << i;
}

class ExecutorchProgram : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    auto mapped = require(MappedFile::open(vectors() / GetParam()));
    file_ = std::move(mapped);
  }
  std::filesystem::path folder() const { return (vectors() / GetParam()).parent_path(); }
  std::shared_ptr<const MappedFile> file_;
};

TEST_P(ExecutorchProgram, RunsBitForBit) {
  expectRecorded(file_->bytes(), folder());
}

TEST_P(ExecutorchProgram, SurvivesWritingAndReading) {
  const auto program = require(pte::readProgram(file_->bytes()));
  const auto written = require(pte::writeProgram(program));
  const auto again = require(pte::readProgram(asBytes(written)));
  EXPECT_EQ(again, program);
  EXPECT_EQ(*pte::writeProgram(again), written);
  expectRecorded(asBytes(written), folder());
}

std::vector<std::string> programs() {
  std::vector<std::string> names;
  for (const auto& path : test::filesIn(vectors(), ".pte")) {
    if (!test::isMiscompiled(path)) names.push_back(path.lexically_relative(vectors()).string());
  }
  return names;
}
std::string testName(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param.substr(0, info.param.size() - 4);
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}
INSTANTIATE_TEST_SUITE_P(Vectors, ExecutorchProgram, testing::ValuesIn(programs()), testName);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ExecutorchProgram);

}  // namespace
}  // namespace carina
