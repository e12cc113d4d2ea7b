// SPDX-License-Identifier: Apache-2.0
// Every delegate of the ExecuTorch vectors computes its recorded outputs from its recorded inputs.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/npy.hpp"
#include "npu/model/programs.hpp"
#include "support/contents.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"

namespace carina::test {
namespace {

/// Whether the program's inputs have the sizes of these tensors.
bool accepts(const NpuProgram& program, const std::vector<Tensor>& inputs) {
  return std::equal(program.inputs.begin(), program.inputs.end(), inputs.begin(), inputs.end(),
                    [](const ProgramIo& io, const Tensor& tensor) { return io.bytes == tensor.numBytes(); });
}

void runFolder(const std::filesystem::path& pte, int& delegates) {
  SCOPED_TRACE(pte.string());
  NamedTensors recorded = require(readNpz(pte.parent_path() / "e2e.npz"));
  std::vector<NpuProgram> programs = require(delegatesIn(pte));
  for (size_t n = 0; n < programs.size(); ++n) {
    SCOPED_TRACE(fmt::format("delegate call {}", n));
    const std::string call = fmt::format("d{}", n);
    const std::vector<Tensor> inputs = arraysNamed(recorded, fmt::format("{}_in", call)),
                              outputs = arraysNamed(recorded, fmt::format("{}_out", call));
    ASSERT_FALSE(inputs.empty());
    // The file order is not the call order: the matching delegate is the one that accepts these inputs and
    // computes these outputs.
    bool exact = false;
    std::string why = "no delegate of the file accepts these inputs";
    for (const NpuProgram& program : programs) {
      if (!accepts(program, inputs) || program.outputs.size() != outputs.size()) continue;
      std::vector<ByteSpan> bytes;
      bytes.reserve(inputs.size());
      for (const Tensor& input : inputs) bytes.push_back(input.bytes());
      npu::ModelOptions options;
      options.check = true;
      ProgramRun run = require(runProgram(program, bytes, options));
      if (!run.result.ok()) {
        why = run.result.fault->str();
        continue;
      }
      for (const npu::Finding& finding : run.result.findings) {
        ADD_FAILURE() << program.target->name << " offset " << finding.offset << ": " << finding.message;
      }
      exact = true;
      for (size_t i = 0; i < outputs.size(); ++i) {
        const ByteSpan expected = outputs[i].bytes();
        if (!std::equal(expected.begin(), expected.end(), run.outputs[i].begin(), run.outputs[i].end())) {
          exact = false;
          size_t at = 0;
          while (at < expected.size() && at < run.outputs[i].size() && expected[at] == run.outputs[i][at])
            ++at;
          why = fmt::format("output {} differs from byte {}", i, at);
        }
      }
      if (exact) break;
    }
    EXPECT_TRUE(exact) << why;
    ++delegates;
  }
}

TEST(ModelDelegates, EveryRecordedDelegateCallIsBitExact) {
  CARINA_NEED_FIXTURES(fixtures);
  int delegates = 0;
  for (const auto& pte : filesIn(fixtures / "vectors/executorch", ".pte")) {
    if (isMiscompiled(pte)) continue;
    if (std::filesystem::exists(pte.parent_path() / "e2e.npz")) runFolder(pte, delegates);
  }
  EXPECT_GE(delegates, 60);
}

}  // namespace
}  // namespace carina::test
