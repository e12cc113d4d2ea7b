// SPDX-License-Identifier: Apache-2.0
// Profiles of finished programs list every operation of a stream, or report that there are too many.
#include "pipeline/profile.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/file.hpp"
#include "npu/isa/payload.hpp"
#include "npu/isa/stream.hpp"
#include "report/profile.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"
#include "support/temp_dir.hpp"

namespace carina::pipeline {
namespace {

/// The profile of a payload that transfers the same 16 bytes `times` times.
Result<Profile> profileOfTransfers(size_t times) {
  const npu::Target& target = **npu::findTarget("ethos-u65-256");
  npu::StreamWriter writer(target);
  npu::DmaOperation transfer;
  transfer.source.region = 0;
  transfer.destination.region = 1;
  transfer.length = 16;
  for (size_t i = 0; i < times; ++i) EXPECT_TRUE(writer.add(transfer).ok());
  EXPECT_TRUE(writer.add(npu::Stop{}).ok());
  CARINA_TRY(const auto payload, npu::buildPayload(target, writer.words()));
  const test::TempDir folder;
  CARINA_RETURN_IF_ERROR(writeFile(folder / "stream.bin", std::as_bytes(std::span(payload))));
  return profileProgram(folder / "stream.bin", {});
}

TEST(Profile, ListsEveryOperationWithItsOwnTime) {
  const auto profile = require(profileOfTransfers(3));
  ASSERT_EQ(profile.parts.size(), 1u);
  const std::vector<ProfiledOperation>& operations = profile.parts[0].operations;
  ASSERT_EQ(operations.size(), 3u);
  for (size_t i = 1; i < 3; ++i) EXPECT_GE(operations[i].timing.start, operations[i - 1].timing.end);
}

/// Kernels write the feature maps in the cache: transfers alone do not show how much of it a program uses.
TEST(Profile, CountsWhatKernelsKeepInTheCache) {
  Options options;
  options.model = test::modelFile("residual.pt2");
  options.calibration = test::modelFile("residual.npz");
  options.target = "ethos-u65-256";
  options.memoryMode = "Dedicated_Sram_384KB";
  const Build built = require(build(options));
  const test::TempDir folder;
  ASSERT_TRUE(writeOutput(built, folder / "residual.pte").ok());
  const Profile compiled = profileBuild(built);
  Options finished;
  finished.model = folder / "residual.pte";
  const Profile profiled = require(profile(finished));
  EXPECT_GT(compiled.parts[0].cacheBytes, 0);
  // The planned size is rounded up to the alignment of addresses.
  EXPECT_LE(profiled.parts[0].cacheBytes, compiled.parts[0].cacheBytes);
  EXPECT_GT(profiled.parts[0].cacheBytes + 64, compiled.parts[0].cacheBytes);
}

/// Without indexed transfers, the NPU reads a whole table for one of its rows.
TEST(Profile, AdvisesToReadRowsOnTheCpuWhereTheNpuReadsTheTable) {
  for (const char* target : {"ethos-u55-128", "ethos-u85-256"}) {
    Options options;
    options.model = test::modelFile("language.pt2");
    options.calibration = test::modelFile("language.npz");
    options.target = target;
    const Profile profile = profileBuild(require(build(options)));
    const auto& layers = profile.parts[0].layers;
    const auto embedding = std::find_if(layers.begin(), layers.end(), [](const Layer& layer) {
      return layer.op == "aten.embedding.default";
    });
    ASSERT_NE(embedding, layers.end());
    EXPECT_TRUE(
        std::any_of(layers.begin(), layers.end(), [](const Layer& l) { return l.op == "aten.softmax.int"; }));
    const report::Advice advice = report::adviceFor(profile.parts[0], *embedding, profile.machine);
    const bool whole = std::string(target) == "ethos-u55-128";
    EXPECT_EQ(advice.text.find("--cpu-op embedding") != std::string::npos, whole) << advice.text;
    EXPECT_TRUE(!whole || advice.gain == embedding->cycles);
  }
}

TEST(Profile, RefusesStreamsThatAreTooLongToList) {
  constexpr size_t kMost = size_t{1} << 16;
  const auto whole = require(profileOfTransfers(kMost));
  EXPECT_EQ(whole.parts[0].operations.size(), kMost);
  const auto refused = profileOfTransfers(kMost + 1);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::TooLarge);
}

}  // namespace
}  // namespace carina::pipeline
