// SPDX-License-Identifier: Apache-2.0
// Runs compiled TFLite files: small ones built here, and recorded programs with known results.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.hpp"
#include "device/tflite_runner.hpp"
#include "npu/isa/payload.hpp"
#include "npu/model/small_program.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"
#include "tflite/file_builder.hpp"

namespace carina {
namespace {

using namespace npu;
using device::TfliteRunner;
using test::npuFile;
using test::SmallProgram;
using test::TfliteFile;
using testing::HasSubstr;

std::string payloadOf(const SmallProgram& program) {
  const auto bytes = require(buildPayload(program.target(), program.words()));
  return {bytes.begin(), bytes.end()};
}

Tensor int8Tensor(const std::vector<int8_t>& values) {
  return Tensor::from({1, static_cast<int64_t>(values.size())}, values);
}

std::vector<int8_t> valuesOf(const Tensor& tensor) {
  const auto data = tensor.as<int8_t>();
  return {data.begin(), data.end()};
}

/// A file that copies 16 bytes from x to y.
TfliteFile copyFile(const char* target) {
  SmallProgram program(target);
  const KernelOperation op = program.copy(1, 1, 16, ElementType::Int8, std::vector<int64_t>(16, 0));
  program.add(op);
  program.add(Stop{});
  const auto scratch = static_cast<int32_t>(program.arena().size());
  return npuFile(payloadOf(program), std::string(16, 'c'), scratch, 16, static_cast<int32_t>(op.ifm.base[0]),
                 16, static_cast<int32_t>(op.ofm.base[0]));
}

const std::vector<int8_t> kValues = {1, -2, 3, -4, 5, -6, 7, -8, 9, -10, 11, -12, 127, -128, 0, 42};

TEST(TfliteRunner, RunsOnTheNpuThatThePayloadNames) {
  for (const char* target : {"ethos-u55-32", "ethos-u65-512", "ethos-u85-1024"}) {
    const std::string bytes = copyFile(target).bytes();
    device::RunOptions options;
    options.model.check = true;
    auto runner = require(TfliteRunner::open(asBytes(bytes), options));
    EXPECT_EQ(runner.inputs()[0].shape, (Shape{1, 16}));
    for (int again = 0; again < 2; ++again) {
      const auto outcome = require(runner.run(std::vector<Tensor>{int8Tensor(kValues)}));
      EXPECT_EQ(valuesOf(outcome.outputs[0]), kValues);
      EXPECT_EQ(outcome.stats.target, target);
      EXPECT_GT(outcome.stats.npuCycles, 0);
      EXPECT_TRUE(outcome.stats.delegates[0].findings.empty());
    }
  }
}

TEST(TfliteRunner, OperatorsRunInOrder) {
  TfliteFile file = copyFile("ethos-u55-128");
  // A second operator with the same commands on its own scratch: its input is the first one's output.
  const int32_t scratch = file.tensors[2].shape[0];
  TfliteFile::Tensor second = file.tensors[2], z = file.tensors[5];
  second.offset = file.tensors[5].offset - file.tensors[4].offset;
  z.offset = second.offset + file.tensors[5].offset;
  second.name = "scratch 2";
  z.name = "z";
  ASSERT_GT(scratch, 0);
  file.tensors.push_back(second);
  file.tensors.push_back(z);
  file.operators.push_back({"ethos-u", 0, {0, 1, 6, 6, 5}, {7}});
  file.outputs = {7};
  const std::string bytes = file.bytes();
  auto runner = require(TfliteRunner::open(asBytes(bytes), {}));
  const auto outcome = require(runner.run(std::vector<Tensor>{int8Tensor(kValues)}));
  EXPECT_EQ(valuesOf(outcome.outputs[0]), kValues);
  EXPECT_EQ(outcome.stats.delegates.size(), 2u);
}

TEST(TfliteRunner, FastScratchIsRegionTwo) {
  SmallProgram program("ethos-u65-256");
  KernelOperation in = program.copy(1, 1, 16, ElementType::Int8, std::vector<int64_t>(16, 0)), out = in;
  in.ofm.region = 2;
  in.ofm.base[0] = 0;
  out.ifm = in.ofm;
  program.add(in);
  program.add(out);
  program.add(Stop{});
  const auto scratch = static_cast<int32_t>(program.arena().size());
  TfliteFile file = npuFile(payloadOf(program), "c", scratch, 16, static_cast<int32_t>(in.ifm.base[0]), 16,
                            static_cast<int32_t>(out.ofm.base[0]));
  file.tensors[3].shape = {16};
  const std::string bytes = file.bytes();
  auto runner = require(TfliteRunner::open(asBytes(bytes), {}));
  const auto outcome = require(runner.run(std::vector<Tensor>{int8Tensor(kValues)}));
  EXPECT_EQ(valuesOf(outcome.outputs[0]), kValues);
  EXPECT_EQ(outcome.stats.fastScratchBytes, 16);
}

TEST(TfliteRunner, SaysWhatIsWrong) {
  const auto fails = [](const TfliteFile& file, const device::RunOptions& options,
                        const std::vector<Tensor>& inputs, const char* why) {
    const std::string bytes = file.bytes();
    auto runner = TfliteRunner::open(asBytes(bytes), options);
    if (!runner) {
      EXPECT_THAT(runner.error().str(), HasSubstr(why));
      return;
    }
    EXPECT_THAT(errorOf(runner->run(inputs)), HasSubstr(why)) << why;
  };
  const std::vector<Tensor> good = {int8Tensor(kValues)};
  device::RunOptions other;
  other.target = "ethos-u85-256";
  fails(copyFile("ethos-u55-128"), other, good, "compiled for ethos-u55-128, but the NPU is ethos-u85-256");
  fails(copyFile("ethos-u55-128"), {}, {}, "got 0 inputs, expected 1");
  fails(copyFile("ethos-u55-128"), {}, {int8Tensor({1, 2})}, "the program takes");
  TfliteFile file = copyFile("ethos-u55-128");
  file.tensors[0].data = "COP1";
  fails(file, {}, good, "no command stream");
  file = copyFile("ethos-u55-128");
  file.tensors[2].shape = file.tensors[3].shape = {16};  // the scratch is smaller than the commands need
  fails(file, {}, good, "operator 0: ");
}

TEST(TfliteRunner, RecordedProgramsAreBitExact) {
  CARINA_NEED_FIXTURES(fixtures);
  int count = 0;
  for (const auto& path : test::filesIn(fixtures / "vectors" / "programs", ".tflite")) {
    SCOPED_TRACE(path.string());
    const auto file = require(MappedFile::open(path));
    const auto input = require(MappedFile::open(path.parent_path() / "input.bin"));
    const auto expected = require(MappedFile::open(path.parent_path() / "expected.bin"));
    device::RunOptions options;
    options.model.check = true;
    auto runner = require(TfliteRunner::open(file->bytes(), options));
    const device::Runner::Io& io = runner.inputs()[0];
    const Tensor tensor = Tensor::borrow(io.dtype, io.shape, input->bytes(), input);
    const auto outcome = require(runner.run(std::vector<Tensor>{tensor}));
    const ByteSpan got = outcome.outputs[0].bytes(), wanted = expected->bytes();
    EXPECT_TRUE(std::equal(got.begin(), got.end(), wanted.begin(), wanted.end()));
    for (const device::DelegateRun& run : outcome.stats.delegates) EXPECT_TRUE(run.findings.empty());
    ++count;
  }
  EXPECT_GE(count, 6);
}

}  // namespace
}  // namespace carina
