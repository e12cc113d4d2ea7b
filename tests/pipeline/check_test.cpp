// SPDX-License-Identifier: Apache-2.0
// What the check reports about good programs and about corrupted ones.
#include "pipeline/check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.hpp"
#include "pipeline/pipeline.hpp"
#include "pte/delegate_blob.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"

namespace carina::pipeline {
namespace {

using testing::Contains;
using testing::HasSubstr;

const pte::Program& digits() {
  static const pte::Program program = [] {
    Options options;
    options.model = test::modelFile("digits8.pt2");
    options.calibration = test::modelFile("digits8.npz");
    options.target = "ethos-u55-128";
    auto built = require(build(options));
    return std::move(built.program);
  }();
  return program;
}

Check checked(const pte::Program& program) {
  const auto bytes = require(pte::writeProgram(program));
  return require(checkProgram(asBytes(bytes)));
}

TEST(Check, AGoodProgramIsOkAndFullyDescribed) {
  const Check check = checked(digits());
  EXPECT_TRUE(check.ok()) << check.problems.front();
  ASSERT_EQ(check.methods.size(), 1u);
  const CheckedMethod& method = check.methods[0];
  EXPECT_EQ(method.pools.size(), 1u);
  EXPECT_GT(method.temporaryBytes, 0);
  EXPECT_GT(method.methodBytes, 0);
  ASSERT_EQ(method.inputs.size(), 1u);
  EXPECT_THAT(method.inputs[0].type, HasSubstr("float32"));
  ASSERT_EQ(method.delegates.size(), 1u);
  EXPECT_EQ(method.delegates[0].target, "ethos-u55-128");
  EXPECT_EQ(method.delegates[0].memoryMode, "Shared_Sram");
  EXPECT_EQ(check.commandStreams, 1u);
  ASSERT_EQ(method.kernels.size(), 2u);
  for (const CheckedKernel& kernel : method.kernels) EXPECT_TRUE(kernel.present) << kernel.name;
}

TEST(Check, ReportsAMissingKernel) {
  pte::Program program = digits();
  program.methods[0].operators[0].name = "aten::nothing";
  const Check check = checked(program);
  EXPECT_THAT(check.problems, Contains(HasSubstr("no kernel aten::nothing.out")));
}

TEST(Check, ReportsAMissingBackend) {
  pte::Program program = digits();
  program.methods[0].delegates[0].id = "OtherBackend";
  EXPECT_THAT(checked(program).problems, Contains(HasSubstr("needs the backend OtherBackend")));
}

TEST(Check, ReportsTooFewKernelArguments) {
  pte::Program program = digits();
  for (pte::Instruction& instruction : program.methods[0].chains[0].instructions) {
    if (auto* call = std::get_if<pte::KernelCall>(&instruction))
      call->arguments.erase(call->arguments.begin() + 1);
  }
  EXPECT_THAT(checked(program).problems, Contains(HasSubstr("arguments where its schema has")));
}

TEST(Check, ReportsCommandsForAnotherNpu) {
  pte::Program program = digits();
  for (pte::CompileSpec& spec : program.methods[0].delegates[0].specs) {
    if (spec.key == "target") spec.value = "ethos-u65-256";
  }
  EXPECT_THAT(checked(program).problems, Contains(HasSubstr("it says it is for ethos-u65-256")));
}

TEST(Check, ReportsScratchThatIsTooSmall) {
  pte::Program program = digits();
  pte::Delegate& delegate = program.methods[0].delegates[0];
  auto blob = require(pte::parseDelegateBlob(delegate.blob));
  blob.scratchBytes /= 2;
  delegate.blob = pte::buildDelegateBlob(blob);
  EXPECT_FALSE(checked(program).ok());
}

TEST(Check, RefusesOtherFiles) {
  EXPECT_FALSE(checkProgram(asBytes("this is no program at all, it only has some bytes to look at")).ok());
}

TEST(Check, ProgramsOfExecuTorchAreOk) {
  CARINA_NEED_FIXTURES(fixtures);
  const auto files = test::filesIn(fixtures / "vectors" / "executorch", ".pte");
  ASSERT_FALSE(files.empty());
  for (const auto& path : files) {
    if (test::isMiscompiled(path)) continue;
    const auto file = require(MappedFile::open(path));
    const auto check = checkProgram(file->bytes());
    ASSERT_TRUE(check.ok()) << path << ": " << check.error().str();
    EXPECT_TRUE(check->ok()) << path << ": " << check->problems.front();
  }
}

}  // namespace
}  // namespace carina::pipeline
