// SPDX-License-Identifier: Apache-2.0
// The one-operator networks: on an NPU with the rest on the CPU, and on the CPU alone. Needs CARINA_FIXTURES.
#include "pipeline/operators.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/file.hpp"
#include "base/npy.hpp"
#include "device/run.hpp"
#include "pipeline/verify.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"

namespace carina::pipeline {
namespace {

std::vector<std::filesystem::path> operatorFiles(const std::filesystem::path& fixtures) {
  return test::filesIn(fixtures / "fixtures" / "ops", ".pt2");
}

Options optionsFor(const std::filesystem::path& file, const std::string& target) {
  Options options;
  options.model = file;
  options.target = target;
  if (target != "cpu") options.calibration = std::filesystem::path(file).replace_extension(".npz");
  return options;
}

/// Builds, runs and compares; returns what is wrong, or "".
std::string verifyOperator(const std::filesystem::path& file, const std::string& target) {
  const auto built = build(optionsFor(file, target));
  if (!built) return built.error().str();
  const auto arrays = readNpz(std::filesystem::path(file).replace_extension(".npz"));
  if (!arrays) return arrays.error().str();
  const auto samples = verificationSamples(*built, *arrays);
  if (!samples) return samples.error().str();
  const auto result = verify(*built, *samples);
  if (!result) return result.error().str();
  if (result->delegateMismatches > 0) return "NPU and TOSA interpreter differ";
  for (const CpuResult& node : result->cpu) {
    if (node.mismatches > 0)
      return fmt::format("{} at {} differs, {:.1f} of the tolerance", node.op, node.where, node.worst);
  }
  return result->ok() ? "" : "an inner layer differs";
}

TEST(FixtureOperators, RunOnEthosU55WithTheCpu) {
  CARINA_NEED_FIXTURES(fixtures);
  const auto files = operatorFiles(fixtures);
  ASSERT_GE(files.size(), 184u);
  for (const auto& file : files) EXPECT_EQ(verifyOperator(file, "ethos-u55-128"), "") << file.stem();
}

TEST(FixtureOperators, RunOnTheCpuAsExported) {
  CARINA_NEED_FIXTURES(fixtures);
  for (const auto& file : operatorFiles(fixtures)) {
    SCOPED_TRACE(file.stem());
    const auto built = require(build(optionsFor(file, "cpu")));
    const auto arrays = require(readNpz(std::filesystem::path(file).replace_extension(".npz")));
    const auto samples = require(verificationSamples(built, arrays));
    const auto bytes = require(pte::writeProgram(built.program));
    const auto outcome = require(device::runProgram(asBytes(bytes), samples.front()));
    for (size_t i = 0; i < outcome.outputs.size(); ++i) {
      const Tensor& want = *findTensor(arrays, fmt::format("out{}", i));
      const Tensor& got = outcome.outputs[i];
      ASSERT_EQ(got.shape(), want.shape());
      double largest = 0;
      for (int64_t k = 0; k < want.numElements(); ++k) {
        if (std::isfinite(want.realAt(k))) largest = std::max(largest, std::abs(want.realAt(k)));
      }
      for (int64_t k = 0; k < want.numElements(); ++k) {
        if (std::isnan(want.realAt(k)) ? std::isnan(got.realAt(k)) : want.realAt(k) == got.realAt(k))
          continue;
        ASSERT_LE(std::abs(got.realAt(k) - want.realAt(k)), 1e-5 * largest + 1e-6)
            << "output " << i << " element " << k;
      }
    }
  }
}

TEST(FixtureOperators, ListReportsWhereEachRuns) {
  CARINA_NEED_FIXTURES(fixtures);
  for (const auto& file : operatorFiles(fixtures)) {
    SCOPED_TRACE(file.stem());
    Options options = optionsFor(file, "ethos-u55-128");
    options.calibration.clear();
    const auto list = require(listOperators(options));
    ASSERT_FALSE(list.operators.empty());
    for (const OperatorPlace& op : list.operators) {
      EXPECT_TRUE(op.missing.empty()) << op.op << ": " << op.missing.front();
      if (op.place != Place::Cpu && op.place != Place::Both) continue;
      EXPECT_FALSE(op.refusals.empty()) << op.op << " is on the CPU without a reason";
      for (const partition::Refusal& refusal : op.refusals) EXPECT_NE(refusal.reason, "");
    }
  }
}

}  // namespace
}  // namespace carina::pipeline
