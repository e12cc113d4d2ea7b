// SPDX-License-Identifier: Apache-2.0
// Every program under vectors/programs computes the known output bytes of its network.
#include "npu/model/programs.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "npu/isa/payload.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"

namespace carina::test {
namespace {

Result<NpuProgram> readProgram(const std::filesystem::path& folder) {
  std::ifstream file(folder / "manifest.json");
  const nlohmann::json manifest = nlohmann::json::parse(file);
  NpuProgram program;
  program.name = folder.filename().string();
  const std::vector<std::byte> bytes = fileBytes(folder / "payload.bin");
  CARINA_TRY(const npu::Payload payload, npu::readPayload(bytes));
  CARINA_TRY(program.target, npu::findTarget(manifest.at("target").get<std::string>()));
  CARINA_TRY(const npu::Target* compiledFor, npu::payloadTarget(payload));
  EXPECT_EQ(compiledFor, program.target);
  program.words = payload.words;
  program.constants = fileBytes(folder / "constants.bin");
  program.scratchBytes = manifest.at("scratch_bytes").get<uint64_t>();
  // These programs are compiled for one memory that holds both scratch and fast scratch.
  program.inputs.push_back({manifest.at("inputs")[0].at("scratch_offset").get<uint64_t>(),
                            static_cast<int64_t>(fileBytes(folder / "input.bin").size())});
  program.outputs.push_back({manifest.at("outputs")[0].at("scratch_offset").get<uint64_t>(),
                             static_cast<int64_t>(fileBytes(folder / "expected.bin").size())});
  return program;
}

TEST(ModelPrograms, EveryProgramIsBitExact) {
  CARINA_NEED_FIXTURES(fixtures);
  int count = 0;
  for (const auto& manifest : filesIn(fixtures / "vectors/programs", "manifest.json")) {
    const auto folder = manifest.parent_path();
    SCOPED_TRACE(folder.string());
    NpuProgram program = require(readProgram(folder));
    const auto input = fileBytes(folder / "input.bin");
    ProgramRun run = require(runProgram(program, {input}));
    ASSERT_TRUE(run.result.ok()) << run.result.fault->str();
    EXPECT_EQ(run.outputs[0], fileBytes(folder / "expected.bin"));
    EXPECT_GT(run.result.stats.cycles, 0);
    ++count;
  }
  EXPECT_GE(count, 6);
}

TEST(ModelPrograms, ParallelAndSerialAgreeWithAndWithoutChecker) {
  CARINA_NEED_FIXTURES(fixtures);
  for (const auto& manifest : filesIn(fixtures / "vectors/programs", "manifest.json")) {
    const auto folder = manifest.parent_path();
    SCOPED_TRACE(folder.string());
    NpuProgram program = require(readProgram(folder));
    npu::ModelOptions options;
    options.parallel = false;
    options.check = true;
    options.timing = false;
    const auto input = fileBytes(folder / "input.bin");
    Result<ProgramRun> run = runProgram(program, {input}, options);
    ASSERT_TRUE(run.ok() && run->result.ok());
    EXPECT_EQ(run->outputs[0], fileBytes(folder / "expected.bin"));
    // These streams come from a compiler that is known to be correct, so the checker must have no findings.
    for (const npu::Finding& finding : run->result.findings) {
      ADD_FAILURE() << finding.offset << ": " << finding.message;
    }
  }
}

}  // namespace
}  // namespace carina::test
