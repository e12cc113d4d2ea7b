// SPDX-License-Identifier: Apache-2.0
// The TOSA graphs that ExecuTorch passes to its NPU compiler, with reference outputs: each compiles for its
// target, and its outputs equal the reference bit for bit.
#include <gtest/gtest.h>

#include <chrono>

#include "base/npy.hpp"
#include "compiler/program_runner.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"
#include "tosa_io/tosa_reader.hpp"

namespace carina::test {
namespace {

TEST(ExecuTorchGraphs, MatchTheirReferenceOutputs) {
  CARINA_NEED_FIXTURES(shared);
  int64_t compared = 0;
  for (const auto& path : filesIn(shared / "vectors" / "executorch", ".tosa")) {
    const std::string folder = path.parent_path().filename().string();
    const std::string target = folder.substr(0, folder.find('_'));
    SCOPED_TRACE(path.string());
    auto graph = require(tosa_io::readTosa(path));
    auto machine = require(npu::makeMachine(target, "", ""));
    auto program = compiler::compile(graph, machine);
    if (!program.ok()) {
      ADD_FAILURE() << program.error().str();
      continue;
    }
    const auto reference = path.parent_path() / (path.stem().string() + "_ref.npz");
    if (!std::filesystem::exists(reference)) continue;
    auto arrays = require(readNpz(reference));
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < program->inputs.size(); ++i) {
      const Tensor* input = findTensor(arrays, fmt::format("in{}", i));
      ASSERT_NE(input, nullptr);
      inputs.push_back(input->reshaped(program->inputs[i].shape));
    }
    auto run = runProgram(*program, inputs, true);
    if (!run.ok()) {
      ADD_FAILURE() << run.error().str();
      continue;
    }
    for (const std::string& finding : run->findings) ADD_FAILURE() << finding;
    for (size_t i = 0; i < run->outputs.size(); ++i) {
      const Tensor* expected = findTensor(arrays, fmt::format("out{}", i));
      ASSERT_NE(expected, nullptr);
      EXPECT_TRUE(run->outputs[i] == expected->reshaped(run->outputs[i].shape())) << "output " << i;
      ++compared;
    }
  }
  EXPECT_GT(compared, 0);
}

}  // namespace
}  // namespace carina::test
