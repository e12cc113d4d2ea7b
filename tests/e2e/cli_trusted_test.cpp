// SPDX-License-Identifier: Apache-2.0
// Limits on what a file may request, and --trusted, an option of every command that executes files.
#include "base/npy.hpp"
#include "cli.hpp"
#include "pte/program.hpp"

namespace carina::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class CliTrusted : public Cli {
 protected:
  /// A program that computes x @ x and requests a gigabyte of memory, and an x for it.
  void SetUp() override {
    pte::Tensor square;
    square.sizes = {8, 8};
    square.dimOrder = {0, 1};
    square.allocation = pte::Allocation{1, 0};
    pte::Tensor result = square;
    result.allocation = pte::Allocation{1, 256};
    pte::Method method;
    method.values = {square, result};
    method.inputs = {0};
    method.outputs = {1};
    method.pools = {0, int64_t{1} << 30};
    method.operators = {{"aten::mm", "out"}};
    pte::Chain chain;
    chain.instructions.push_back(pte::KernelCall{0, {0, 0, 1, 1}});
    method.chains = {chain};
    pte::Program program;
    program.methods = {method};
    const auto bytes = pte::writeProgram(program);
    ASSERT_TRUE(bytes.ok());
    writeText("large.pte", *bytes);
    writeText("x.npz", formatNpz({{"in0", Tensor::zeros(DType::Float32, {1, 8, 8})},
                                  {"labels", Tensor::zeros(DType::Int64, {1})}}));
  }

  void expectOnlyTrusted(const std::string& command) const {
    const Outcome refused = run(command);
    EXPECT_EQ(refused.status, 1);
    EXPECT_THAT(refused.err, AllOf(HasSubstr("limit"), HasSubstr("--trusted")));
    const Outcome trusted = run(command + " --trusted");
    EXPECT_EQ(trusted.status, 0) << trusted.err;
  }
};

TEST_F(CliTrusted, ProgramsBeyondTheLimitsRunWithIt) {
  expectOnlyTrusted("run " + path("large.pte") + " --input " + path("x.npz"));
  expectOnlyTrusted("evaluate " + path("large.pte") + " --task classify --data " + path("x.npz"));
}

TEST_F(CliTrusted, IsAnOptionOfEveryExecutingCommand) {
  for (const char* command : {"run", "generate", "evaluate", "verify", "compile", "profile", "sweep",
                              "report", "fit", "ops", "opt"})
    EXPECT_THAT(run(std::string(command) + " --help").out, HasSubstr("--trusted")) << command;
}

}  // namespace
}  // namespace carina::test
